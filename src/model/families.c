/* families.c: the registry: general.architecture -> family. To add one, see docs/HOWTO-family.md. */
#include "model/registry_int.h"
#include <string.h>

static const cera_family *const all[] = {&cera_family_llama};
enum { N_FAMILIES = sizeof all / sizeof all[0] };

const cera_family *cera_family_find(const char *arch) {
    for (int i = 0; i < N_FAMILIES; i++)
        if (!strcmp(all[i]->arch, arch)) return all[i];
    return NULL;
}

const char *const *cera_model_families(void) {
    static const char *names[N_FAMILIES + 1];
    for (int i = 0; i < N_FAMILIES; i++) names[i] = all[i]->arch; /* the same values whoever writes them */
    return names;
}

/* replay.c: runs a fuzzer's function over saved inputs, for builds without libFuzzer, so that every fixed finding stays a test.
 * Owns reading the folder; the fuzzer owns everything else. Prints the number of inputs; a crash is the failure. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The file's bytes in a block of exactly that size, so that a sanitizer sees a read past the end. */
static uint8_t *read_file(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    uint8_t *data = NULL;
    if (fseek(f, 0, SEEK_END) == 0) {
        long end = ftell(f);
        rewind(f);
        data = end >= 0 ? malloc(end > 0 ? (size_t)end : 1) : NULL;
        if (data && fread(data, 1, (size_t)end, f) != (size_t)end) {
            free(data);
            data = NULL;
        }
        *size = end >= 0 ? (size_t)end : 0;
    }
    fclose(f);
    return data;
}

static int replay_file(const char *path) {
    size_t size = 0;
    uint8_t *data = read_file(path, &size);
    if (!data) {
        printf("replay: cannot read %s\n", path);
        return 1;
    }
    printf("replay: %s\n", path);
    fflush(stdout); /* names the input if the next line crashes */
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s CORPUS_FOLDER\n", argv[0]);
        return 2;
    }
    DIR *folder = opendir(argv[1]);
    if (!folder) {
        printf("replay: no folder %s\n", argv[1]);
        return 1;
    }
    int n = 0, failed = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[4096];
        if (entry->d_name[0] == '.') continue;
        if (snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name) >= (int)sizeof path) continue;
        failed |= replay_file(path);
        n++;
    }
    closedir(folder);
    printf("replay: %d inputs\n", n);
    return failed || n == 0;
}

/* file.c: opens a regular file and gives its bytes, mapped or read into memory. Owns the table that tells a SIGBUS handler
 * which mapped file an address belongs to. Does not own the handler: signals are the program's.
 *
 * The size is taken once, from the open descriptor, and every reader is bounded by it. A file that grows later is read up to
 * that size; one that shrinks is CERA_ERR_IO without mmap and SIGBUS with it. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/arena.h"

enum { READ_PIECE = 8 << 20, HUGE_PAGE = 2 << 20 };

struct cera_file {
    const uint8_t *data;
    size_t size;
    char *path;
    bool mapped;  /* data is a mapping of the file */
    bool private; /* data is memory of ours */
    int slot;     /* in the table below, -1: none */
};

/* start: 0 free, 1 taken but not filled in yet, else the first address. Read by signal handlers: atomics only. */
typedef struct mapping {
    atomic_uintptr_t start, end;
    _Atomic(const char *) path;
} mapping;

static mapping mappings[CERA_FILE_MAX_MAPPED];

static int register_mapping(const cera_file *f) {
    for (int i = 0; i < CERA_FILE_MAX_MAPPED; i++) {
        uintptr_t free_slot = 0;
        if (!atomic_compare_exchange_strong(&mappings[i].start, &free_slot, 1)) continue;
        atomic_store(&mappings[i].path, f->path);
        atomic_store(&mappings[i].end, (uintptr_t)f->data + f->size);
        atomic_store(&mappings[i].start, (uintptr_t)f->data);
        return i;
    }
    return -1;
}

static void unregister_mapping(int slot) {
    atomic_store(&mappings[slot].end, 0);
    atomic_store(&mappings[slot].path, NULL);
    atomic_store(&mappings[slot].start, 0);
}

const char *cera_file_at_address(const void *address) {
    uintptr_t at = (uintptr_t)address;
    for (int i = 0; i < CERA_FILE_MAX_MAPPED; i++) {
        uintptr_t start = atomic_load(&mappings[i].start);
        /* The last page is mapped whole, so a fault may lie up to a page behind the last byte. */
        if (start > 1 && at >= start && at < ((atomic_load(&mappings[i].end) + 4095) & ~(uintptr_t)4095))
            return atomic_load(&mappings[i].path);
    }
    return NULL;
}

static cera_file *file_create(const char *path) {
    cera_file *f = cera_alloc(1, sizeof *f);
    size_t n = strlen(path);
    char *copy = cera_alloc(n + 1, 1);
    if (!f || !copy) {
        cera_free(f);
        cera_free(copy);
        return NULL;
    }
    memcpy(copy, path, n + 1);
    f->path = copy;
    f->slot = -1;
    f->data = (const uint8_t *)copy + n; /* an empty file still has an address */
    return f;
}

void cera_file_close(cera_file *f) {
    if (!f) return;
    if (f->slot >= 0) unregister_mapping(f->slot);
    if (f->mapped || f->private) munmap((void *)(uintptr_t)f->data, f->size);
    cera_free(f->path);
    cera_free(f);
}

static cera_status map_file(cera_file *f, int fd, unsigned flags, cera_error *e) {
    void *data = mmap(NULL, f->size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) return cera_fail(e, CERA_ERR_IO, "%s: cannot be mapped: %s", f->path, strerror(errno));
    f->data = data;
    f->mapped = true;
#ifdef MADV_HUGEPAGE
    if (f->size >= HUGE_PAGE) madvise(data, f->size, MADV_HUGEPAGE); /* a hint; most file systems ignore it */
#endif
    if (flags & CERA_FILE_PREFETCH) madvise(data, f->size, MADV_WILLNEED);
    f->slot = register_mapping(f);
    if (f->slot < 0)
        return cera_fail(e, CERA_ERR_LIMIT, "%s: more than %d mapped files are open", f->path, CERA_FILE_MAX_MAPPED);
    return CERA_OK;
}

/* One piece into the file's memory, whole or not at all. */
static cera_status read_piece(cera_file *f, int fd, size_t at, size_t n, cera_error *e) {
    uint8_t *to = (uint8_t *)(uintptr_t)f->data + at;
    while (n > 0) {
        ssize_t got = pread(fd, to, n, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return cera_fail(e, CERA_ERR_IO, "%s: reading at byte %zu: %s", f->path, at, strerror(errno));
        if (got == 0)
            return cera_fail(e, CERA_ERR_IO, "%s: ends at byte %zu; it had %zu bytes when it was opened", f->path, at, f->size);
        to += got;
        at += (size_t)got;
        n -= (size_t)got;
    }
    return CERA_OK;
}

static cera_status read_whole(cera_file *f, int fd, cera_file_progress progress, void *ctx, cera_error *e) {
    void *memory = mmap(NULL, f->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return cera_fail(e, CERA_ERR_MEMORY, "%s: no memory to read its %zu bytes", f->path, f->size);
    f->data = memory;
    f->private = true;
#ifdef MADV_HUGEPAGE
    if (f->size >= HUGE_PAGE) madvise(memory, f->size, MADV_HUGEPAGE);
#endif
    for (size_t at = 0; at < f->size;) {
        size_t n = f->size - at < READ_PIECE ? f->size - at : READ_PIECE;
        CERA_TRY(read_piece(f, fd, at, n, e));
        at += n;
        if (progress && !progress(ctx, at, f->size))
            return cera_fail(e, CERA_ERR_CANCELLED, "%s: loading was cancelled", f->path);
    }
    mprotect(memory, f->size, PROT_READ); /* weights are read-only, mapped or not */
    return CERA_OK;
}

static cera_status check_kind(const char *path, int fd, size_t *size, cera_error *e) {
    struct stat s;
    if (fstat(fd, &s) != 0) return cera_fail(e, CERA_ERR_IO, "%s: %s", path, strerror(errno));
    if (S_ISDIR(s.st_mode)) return cera_fail(e, CERA_ERR_IO, "%s: is a folder, not a file", path);
    if (!S_ISREG(s.st_mode)) return cera_fail(e, CERA_ERR_IO, "%s: is not a regular file (a pipe or device?)", path);
    if (s.st_size < 0 || (uint64_t)s.st_size > SIZE_MAX / 2)
        return cera_fail(e, CERA_ERR_IO, "%s: %lld bytes do not fit in the address space", path, (long long)s.st_size);
    *size = (size_t)s.st_size;
    return CERA_OK;
}

static cera_status load(cera_file *f, int fd, unsigned flags, cera_file_progress progress, void *ctx, cera_error *e) {
    CERA_TRY(check_kind(f->path, fd, &f->size, e));
    if (f->size == 0) return CERA_OK;
    if (flags & CERA_FILE_NO_MMAP)
        CERA_TRY(read_whole(f, fd, progress, ctx, e));
    else
        CERA_TRY(map_file(f, fd, flags, e));
    if ((flags & CERA_FILE_MLOCK) && mlock(f->data, f->size) != 0)
        return cera_fail(e, CERA_ERR_MEMORY, "%s: its %zu bytes cannot be locked in memory: %s (see ulimit -l)", f->path,
                         f->size, strerror(errno));
    return CERA_OK;
}

cera_status cera_file_open(const char *path, unsigned flags, cera_file_progress progress, void *ctx, cera_file **out,
                           cera_error *e) {
    *out = NULL;
    if (!path || !*path) return cera_fail(e, CERA_ERR_ARGUMENT, "the file's name is empty");
    /* Without O_NONBLOCK, opening a pipe that nobody writes to would wait for ever. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return cera_fail(e, CERA_ERR_IO, "%s: %s", path, strerror(errno));
    cera_status status = CERA_ERR_MEMORY;
    cera_file *f = file_create(path);
    if (f)
        status = load(f, fd, flags, progress, ctx, e);
    else
        cera_fail(e, CERA_ERR_MEMORY, "%s: out of memory", path);
    close(fd);
    if (status != CERA_OK) {
        cera_file_close(f);
        return status;
    }
    *out = f;
    return CERA_OK;
}

cera_status cera_file_view(const char *name, const void *data, size_t size_bytes, cera_file **out, cera_error *e) {
    *out = NULL;
    cera_file *f = file_create(name);
    if (!f) return cera_fail(e, CERA_ERR_MEMORY, "%s: out of memory", name);
    if (size_bytes > 0) f->data = data;
    f->size = size_bytes;
    *out = f;
    return CERA_OK;
}

const uint8_t *cera_file_data(const cera_file *f) { return f->data; }
size_t cera_file_size(const cera_file *f) { return f->size; }
const char *cera_file_path(const cera_file *f) { return f->path; }
bool cera_file_mapped(const cera_file *f) { return f->mapped; }

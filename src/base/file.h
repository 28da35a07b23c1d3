/* file.h: a file's bytes, read-only. Mapped by default; read into memory with CERA_FILE_NO_MMAP. The size is fixed at open:
 * a mapped file that another process shortens later raises SIGBUS on access, which only the program can turn into an exit
 * (cera_file_at_address tells it which file that was); without mmap this cannot happen. */
#ifndef CERA_BASE_FILE_H
#define CERA_BASE_FILE_H

#include "base/status.h"

enum {
    CERA_FILE_NO_MMAP = 1,
    CERA_FILE_MLOCK = 2,
    CERA_FILE_PREFETCH = 4 /* ask the system to read all of a mapped file ahead; for who will use all of it */
};
enum { CERA_FILE_MAX_MAPPED = 2048 }; /* mapped files that may be open at once in this process */

/* Called while a large file is read without mmap: done and total in bytes. Return false to stop (CERA_ERR_CANCELLED). */
typedef bool (*cera_file_progress)(void *ctx, uint64_t done_bytes, uint64_t total_bytes);

typedef struct cera_file cera_file;

/* Regular files only: a folder, pipe or device is an error. Messages start with the path. */
cera_status cera_file_open(const char *path, unsigned flags, cera_file_progress progress, void *ctx, cera_file **out,
                           cera_error *e);
/* Borrows the bytes: they must outlive the file. name is used in messages. */
cera_status cera_file_view(const char *name, const void *data, size_t size_bytes, cera_file **out, cera_error *e);
void cera_file_close(cera_file *f);

const uint8_t *cera_file_data(const cera_file *f);
size_t cera_file_size(const cera_file *f);
const char *cera_file_path(const cera_file *f);
bool cera_file_mapped(const cera_file *f);
/* Async-signal-safe: the path of the open mapped file that holds this address, or NULL. */
const char *cera_file_at_address(const void *address);

#endif

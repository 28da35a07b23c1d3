/* cgroup_int.h: the limits that a Linux control group puts on this process. Only for base/cpu.c and tests: root stands in front
 * of /proc and /sys, so that a test can build a tree of its own. */
#ifndef CERA_BASE_CGROUP_INT_H
#define CERA_BASE_CGROUP_INT_H

#include <stdint.h>

/* allowed, lowered to the smallest CPU quota of the process's group and its ancestors (v1 and v2); at least 1. */
int cera_cgroup_threads(const char *root, int allowed);
/* Bytes that the group's memory limits leave, page cache that can be given back counted as free; UINT64_MAX: no limit. */
uint64_t cera_cgroup_memory(const char *root);
/* MemAvailable of /proc/meminfo in bytes, 0 when unknown. */
uint64_t cera_meminfo_available(const char *root);

#endif

/* roof.h: what the machine can do at best, measured by the plainest loops: the roof that a profile is held against. */
#ifndef CERA_PROGRAMS_ROOF_H
#define CERA_PROGRAMS_ROOF_H

/* Memory bandwidth in bytes a second of n threads that only read: a buffer several times the size of a cache, best of a few
 * passes. 0 when it could not be measured. Takes about half a second. */
double cera_roof_read_bandwidth(int n_threads);

#endif

/* pool_posix_test.c: pool_test over the waiting of systems without a futex. The pool is compiled into this program, whose
 * symbols go before the library's. */
#define CERA_POOL_NO_FUTEX 1
#include "base/pool.c"

#include "pool_test.c"

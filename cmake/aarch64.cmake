# aarch64.cmake: cross build for 64-bit ARM Linux with Debian's compiler; programs run under QEMU's user emulation.
# CERA_QEMU_CPU chooses the processor: cortex-a76 has dotprod without i8mm, max has both.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CERA_QEMU_CPU max CACHE STRING "Processor that QEMU plays")
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-aarch64;-cpu;${CERA_QEMU_CPU};-L;/usr/aarch64-linux-gnu")
# Libraries of the build machine are of no use to the target.
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

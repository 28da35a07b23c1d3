# options.cmake: the build's switches, and the compiler flags they stand for.

option(CERA_BUILD_TESTS "Unit tests, kernel checks and benchmarks" ON)
option(CERA_ALLOC_GUARD "Count every allocation made during a step as a violation" OFF)
option(CERA_FUZZ "Build the fuzzers of tests/fuzz with coverage (clang only)" OFF)
set(CERA_SANITIZE "" CACHE STRING "Sanitizers of the whole build: address,undefined or thread; empty for none")
set(CERA_EMBED_MODEL "${CMAKE_SOURCE_DIR}/models/cera-tiny.gguf" CACHE STRING
    "GGUF file that the program carries; OFF, or a file that is not there: none")

# Warnings are errors with the compilers that CI runs; a newer one may warn of more, and must not stop a stranger's build.
if((CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_C_COMPILER_VERSION VERSION_LESS 13) OR
   (CMAKE_C_COMPILER_ID STREQUAL "Clang" AND CMAKE_C_COMPILER_VERSION VERSION_LESS 15))
  set(werror_default ON)
else()
  set(werror_default OFF)
endif()
option(CERA_WERROR "Warnings are errors" ${werror_default})

# -ffp-contract=off: the order and number of roundings are part of the contract ("Same bits" in docs/DESIGN.md).
add_compile_options(-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -ffp-contract=off -fno-math-errno)
if(CERA_WERROR)
  add_compile_options(-Werror)
endif()
if(CMAKE_C_COMPILER_ID STREQUAL "Clang")
  add_compile_options(-Wno-pass-failed) # an unrolling hint that clang does not follow is no defect of the source
endif()
add_compile_definitions(_GNU_SOURCE)
# Sections of their own let a program that links libcera.a drop what it does not call.
add_compile_options(-ffunction-sections -fdata-sections)

if(CERA_ALLOC_GUARD)
  add_compile_definitions(CERA_ALLOC_GUARD)
endif()
if(CERA_SANITIZE)
  add_compile_options(-fsanitize=${CERA_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
  add_link_options(-fsanitize=${CERA_SANITIZE})
endif()
if(CERA_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "CERA_FUZZ needs clang: use the preset 'fuzz'")
  endif()
  set(fuzz_flags -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fprofile-instr-generate -fcoverage-mapping)
  add_compile_options(${fuzz_flags} -fno-omit-frame-pointer -g)
  add_link_options(${fuzz_flags})
endif()

# tests.cmake: unit tests, kernel checks, fuzzers, benchmarks. Everything goes by its place:
#   tests/unit/<layer>/<name>_test.c     one cmocka program, linked with its layer
#   tests/unit/programs/<name>_test.c    linked with programs/common
#   tests/check/*.c                      one program, cera_check: every kernel slot against its C reference
#   tests/fuzz/<name>_fuzz.c             a fuzzer (CERA_FUZZ), else a program that replays tests/fuzz/corpus/<name>
#   tests/bench/<name>.c                 a benchmark, built and not run
# tests.txt in the build folder lists the programs ("kind name path") for tests/run_all; ctest runs the same.

find_library(CMOCKA cmocka)
find_library(PCRE2 pcre2-8)
set(test_list "")

function(cera_test kind name target)
  add_test(NAME ${kind}/${name} COMMAND ${target} ${ARGN} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  string(REPLACE ";" " " arguments "${ARGN}")
  set(test_list "${test_list}${kind} ${name} $<TARGET_FILE:${target}> ${arguments}\n" PARENT_SCOPE)
endfunction()

if(CMOCKA)
  foreach(layer base format plan kernels model backend text sample engine api programs)
    if(NOT TARGET cera_${layer})
      continue()
    endif()
    file(GLOB tests CONFIGURE_DEPENDS tests/unit/${layer}/*_test.c)
    foreach(test ${tests})
      get_filename_component(name ${test} NAME_WE)
      add_executable(${name} ${test})
      target_include_directories(${name} PRIVATE tests)
      target_link_libraries(${name} PRIVATE cera_${layer} ${CMOCKA})
      if(layer STREQUAL "programs")
        target_link_libraries(${name} PRIVATE $<LINK_ONLY:cera_api>)
      endif()
      if(layer STREQUAL "text" AND PCRE2)
        target_link_libraries(${name} PRIVATE ${PCRE2})
        target_compile_definitions(${name} PRIVATE CERA_HAVE_PCRE2)
      endif()
      string(REGEX REPLACE "_test$" "" short ${name})
      cera_test(unit ${layer}/${short} ${name})
    endforeach()
  endforeach()
endif()

file(GLOB check_sources CONFIGURE_DEPENDS tests/check/*.c)
if(check_sources)
  add_executable(cera_check ${check_sources})
  target_include_directories(cera_check PRIVATE tests)
  target_link_libraries(cera_check PRIVATE cera_kernels)
  cera_test(check kernels cera_check)
endif()

add_custom_target(fuzzers)
file(GLOB fuzz_sources CONFIGURE_DEPENDS tests/fuzz/*_fuzz.c)
foreach(source ${fuzz_sources})
  get_filename_component(stem ${source} NAME_WE)
  string(REGEX REPLACE "_fuzz$" "" name ${stem})
  if(CERA_FUZZ)
    add_executable(fuzz_${name} ${source})
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    set(test_list "${test_list}fuzzer ${name} $<TARGET_FILE:fuzz_${name}>\n")
  else()
    add_executable(fuzz_${name} ${source} tests/fuzz/replay.c)
    cera_test(fuzz ${name} fuzz_${name} tests/fuzz/corpus/${name})
  endif()
  add_dependencies(fuzzers fuzz_${name})
  target_compile_options(fuzz_${name} PRIVATE -Wno-missing-prototypes) # LLVMFuzzerTestOneInput is declared by nobody
  target_include_directories(fuzz_${name} PRIVATE tests)
  target_link_libraries(fuzz_${name} PRIVATE cera_api)
endforeach()

file(GLOB bench_sources CONFIGURE_DEPENDS tests/bench/*.c)
foreach(source ${bench_sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  target_include_directories(${name} PRIVATE tests)
  target_link_libraries(${name} PRIVATE cera_api)
endforeach()

file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/tests.txt CONTENT "${test_list}")

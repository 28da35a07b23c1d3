# library.cmake: libcera.so and libcera.a, and what a program that uses them finds them by (cera.pc, CMake package).
# Neither library shows a symbol that cera.h does not declare: the shared one by visibility, the static one because its layers
# are joined into one object whose hidden symbols are made local.

add_library(cera_shared SHARED ${CMAKE_BINARY_DIR}/generated/libcera.c)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/libcera.c CONTENT "/* libcera.c: a linker needs a file; the library is the layers. */\ntypedef int cera_empty_unit;\n")
target_link_libraries(cera_shared PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,cera_api>)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  target_link_options(cera_shared PRIVATE -Wl,--gc-sections)
  if(NOT CERA_FUZZ AND NOT CERA_SANITIZE) # a sanitizer's own symbols come from the program
    target_link_options(cera_shared PRIVATE -Wl,--no-undefined)
  endif()
endif()
set_target_properties(cera_shared PROPERTIES OUTPUT_NAME cera VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
install(TARGETS cera_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

# Instrumented objects share counters and maps between files through symbols: they do not survive being joined.
if(NOT CERA_FUZZ AND NOT CERA_SANITIZE AND CMAKE_SYSTEM_NAME STREQUAL "Linux")
  set(joined ${CMAKE_BINARY_DIR}/generated/libcera.o)
  set(archive ${CMAKE_BINARY_DIR}/libcera.a)
  set(layer_archives "")
  foreach(layer engine sample text backend model kernels plan format base)
    list(APPEND layer_archives $<TARGET_FILE:cera_${layer}>)
  endforeach()
  add_custom_command(
    OUTPUT ${archive}
    COMMAND ${CMAKE_LINKER} -r -o ${joined} --whole-archive $<TARGET_FILE:cera_api> --no-whole-archive
            --start-group ${layer_archives} --end-group
    COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${joined}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
    COMMAND ${CMAKE_AR} rcsD ${archive} ${joined}
    DEPENDS cera_api cera_engine cera_sample cera_text cera_backend cera_model cera_kernels cera_plan cera_format cera_base
    COMMENT "Joining libcera.a" VERBATIM)
  add_custom_target(cera_archive ALL DEPENDS ${archive})
  install(FILES ${archive} DESTINATION ${CMAKE_INSTALL_LIBDIR})
  set(have_archive 1)
else()
  set(have_archive 0)
endif()

install(FILES include/cera.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

# Both are relocatable: paths are relative to the file that states them.
file(RELATIVE_PATH pc_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
configure_file(cmake/cera.pc.in ${CMAKE_BINARY_DIR}/generated/cera.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/generated/cera.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/cera)
configure_package_config_file(cmake/cera-config.cmake.in ${CMAKE_BINARY_DIR}/generated/cera-config.cmake
  INSTALL_DESTINATION ${package_dir} PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/cera-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/generated/cera-config.cmake ${CMAKE_BINARY_DIR}/generated/cera-config-version.cmake
  DESTINATION ${package_dir})
install(FILES README.md LICENSE-MIT LICENSE-APACHE DESTINATION ${CMAKE_INSTALL_DOCDIR} OPTIONAL)

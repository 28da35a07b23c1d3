# program.cmake: the program `cera`, and `cera-static`, the same in one file that runs on any Linux of its processor.
# Programs see include/cera.h only: the layers are linked, their include folders are not handed on.

# The model in the box. Its bytes go into read-only data by the assembler, so that a large file costs no compile time.
set(embedded_path "")
if(CERA_EMBED_MODEL)
  get_filename_component(CERA_EMBED_MODEL ${CERA_EMBED_MODEL} ABSOLUTE BASE_DIR ${CMAKE_SOURCE_DIR})
endif()
if(CERA_EMBED_MODEL AND EXISTS ${CERA_EMBED_MODEL} AND NOT IS_DIRECTORY ${CERA_EMBED_MODEL})
  set(embedded_path ${CERA_EMBED_MODEL})
  set(embedded_template embedded_model.c.in)
else()
  set(embedded_template embedded_none.c.in)
endif()
set(embedded_source ${CMAKE_BINARY_DIR}/generated/embedded_model.c)
configure_file(cmake/${embedded_template} ${embedded_source} @ONLY)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/embedded_model.txt CONTENT "${embedded_path}")
set_property(SOURCE ${embedded_source} PROPERTY OBJECT_DEPENDS "${embedded_path}")
# The default names a file that a later pull may bring: look again when it does.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/models)

file(GLOB program_sources CONFIGURE_DEPENDS programs/*.c programs/server/*.c)
file(GLOB program_common CONFIGURE_DEPENDS programs/common/*.c)

# What the commands share, as a library, so that tests/unit/programs can link it.
if(program_common)
  add_library(cera_programs STATIC ${program_common} ${embedded_source})
  target_include_directories(cera_programs PUBLIC include programs)
  target_compile_definitions(cera_programs PUBLIC CERA_VERSION="${PROJECT_VERSION}")
  target_link_libraries(cera_programs PRIVATE $<LINK_ONLY:cera_api>)
endif()

if(program_sources AND program_common)
  add_executable(cera ${program_sources})
  target_link_libraries(cera PRIVATE cera_programs $<LINK_ONLY:cera_api>)
  install(TARGETS cera RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

  # Line editing in `cera chat`, where libedit is there; the static program does without.
  if(NOT CMAKE_CROSSCOMPILING)
    find_library(CERA_LIBEDIT edit)
    find_path(CERA_LIBEDIT_INCLUDE histedit.h)
    if(CERA_LIBEDIT AND CERA_LIBEDIT_INCLUDE)
      target_compile_definitions(cera PRIVATE CERA_HAVE_LIBEDIT)
      target_include_directories(cera PRIVATE ${CERA_LIBEDIT_INCLUDE})
      target_link_libraries(cera PRIVATE ${CERA_LIBEDIT})
    endif()
  endif()

  # A sanitizer's runtime is a shared library: no static program there.
  if(NOT CERA_SANITIZE AND NOT CERA_FUZZ AND CMAKE_SYSTEM_NAME STREQUAL "Linux")
    add_executable(cera-static ${program_sources})
    target_link_libraries(cera-static PRIVATE cera_programs $<LINK_ONLY:cera_api>)
    target_link_options(cera-static PRIVATE -static-pie)
    target_compile_options(cera-static PRIVATE -fPIE)
    install(TARGETS cera-static RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endif()

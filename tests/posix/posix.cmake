# One test per conformance case; run.py finds the same functions. Cases are independent
# (each has a store and a mount of its own), so they run in parallel.
file(GLOB posix_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/cases_*.py)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${posix_files})
foreach(file ${posix_files})
  file(STRINGS ${file} definitions REGEX "^def [a-z0-9][a-z0-9_]*\\(v\\):")
  foreach(definition ${definitions})
    string(REGEX REPLACE "^def ([a-z0-9_]+).*" "\\1" name "${definition}")
    add_test(NAME posix/${name} COMMAND ${CMAKE_CURRENT_LIST_DIR}/run.py --build
                                        ${CMAKE_BINARY_DIR} ${name})
    set_tests_properties(posix/${name} PROPERTIES LABELS posix TIMEOUT 450 SKIP_RETURN_CODE 77
                         ENVIRONMENT "${KVSYNCFS_TEST_ENVIRONMENT}")
  endforeach()
endforeach()

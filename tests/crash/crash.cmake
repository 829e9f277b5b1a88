# A bounded number of kills in the suite; kill9.py --rounds N goes on for as long as one likes.
add_test(NAME crash/kill9 COMMAND ${CMAKE_CURRENT_LIST_DIR}/kill9.py --build ${CMAKE_BINARY_DIR}
                                  --rounds 80 --seconds 150)
add_test(NAME crash/kill9_cleaner COMMAND ${CMAKE_CURRENT_LIST_DIR}/kill9.py --build
                                          ${CMAKE_BINARY_DIR} --cleaner --rounds 25 --seconds 120)
add_test(NAME crash/cleaner COMMAND ${CMAKE_CURRENT_LIST_DIR}/cleaner.py --build
                                    ${CMAKE_BINARY_DIR} --levels 70,90)
set_tests_properties(crash/kill9 crash/kill9_cleaner crash/cleaner
                     PROPERTIES LABELS crash TIMEOUT 600 SKIP_RETURN_CODE 77
                                ENVIRONMENT "${KVSYNCFS_TEST_ENVIRONMENT}")

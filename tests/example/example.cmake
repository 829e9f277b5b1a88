# The example is a program like any that links the store: a test of its own, without GoogleTest.
add_executable(kv_example ${CMAKE_CURRENT_LIST_DIR}/kv_example.cc)
target_link_libraries(kv_example PRIVATE kvsyncfs::engine)
add_dependencies(tests_unit kv_example)
add_test(NAME example/kv_example COMMAND kv_example)
set_tests_properties(example/kv_example PROPERTIES LABELS unit TIMEOUT 120
                     ENVIRONMENT "${KVSYNCFS_TEST_ENVIRONMENT}")

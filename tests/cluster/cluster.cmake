# Real etcd servers on loopback; each case starts and kills its own.
foreach(source etcd_log_test.cc membership_test.cc cluster_store_test.cc messages_test.cc)
  get_filename_component(name ${source} NAME_WE)
  add_executable(cluster_${name} ${CMAKE_CURRENT_LIST_DIR}/${source}
                                 ${CMAKE_CURRENT_LIST_DIR}/etcd_server.cc)
  target_link_libraries(cluster_${name} PRIVATE kvsyncfs_cluster kvsyncfs_testlib
                                                GTest::gtest_main)
  add_dependencies(tests_cluster cluster_${name})
  gtest_discover_tests(
    cluster_${name} TEST_PREFIX cluster/ NO_PRETTY_VALUES DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS cluster TIMEOUT 120 ENVIRONMENT "${KVSYNCFS_TEST_ENVIRONMENT}")
endforeach()
target_link_libraries(cluster_cluster_store_test PRIVATE kvsyncfs_mkfs)
target_link_libraries(cluster_messages_test PRIVATE kvsyncfs_engine)
include(${CMAKE_CURRENT_LIST_DIR}/lab/lab.cmake)

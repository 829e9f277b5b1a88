# Real etcd servers on loopback; each case starts and kills its own.
add_executable(cluster_etcd_log_test ${CMAKE_CURRENT_LIST_DIR}/etcd_log_test.cc
                                     ${CMAKE_CURRENT_LIST_DIR}/etcd_server.cc)
target_link_libraries(cluster_etcd_log_test PRIVATE kvsyncfs_etcd kvsyncfs_testlib
                                                    GTest::gtest_main)
gtest_discover_tests(
  cluster_etcd_log_test TEST_PREFIX cluster/ NO_PRETTY_VALUES DISCOVERY_MODE PRE_TEST
  DISCOVERY_TIMEOUT 60
  PROPERTIES LABELS cluster TIMEOUT 120 ENVIRONMENT "${KVSYNCFS_TEST_ENVIRONMENT}")
include(${CMAKE_CURRENT_LIST_DIR}/lab/lab.cmake)

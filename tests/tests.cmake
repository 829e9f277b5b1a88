# Registers every test by its place in the tree; a new file needs no line here.
#
#   tests/lib/*.cc                  shared by the tests (library kvsyncfs_testlib)
#   tests/engine/<room>/*_test.cc   GoogleTest, linked with its room only; label unit
#   tests/engine/*_test.cc          GoogleTest, linked with the whole engine; label unit
#   tests/fs|mkfs|tools/*_test.cc   GoogleTest, linked with kvsyncfs_<folder>; label unit
#   tests/sim/*_sim.cc              seeded simulations, linked with tests/sim/*.cc; label sim
#   tests/sim/cluster/*_sim.cc      the same of whole nodes: threads and time are simulated as well
#   tests/fuzz/*_fuzz.cc            LLVMFuzzerTestOneInput; label fuzz
#   tests/bench/*_bench.cc          Google Benchmark; built, not run
#   tests/<folder>/<folder>.cmake   what the folder registers itself (posix, crash, bench, ...)
if(NOT KVSYNCFS_TESTS)
  return()
endif()
enable_testing()
include(GoogleTest)
find_package(GTest REQUIRED)
find_package(rapidcheck REQUIRED)
find_package(benchmark REQUIRED)

# What the sanitizers are to do; one variable, since gtest_discover_tests() takes no list here.
if(KVSYNCFS_SANITIZE STREQUAL "thread")
  # The system's libraries are not instrumented. RocksDB hands its memory from thread to thread by
  # atomics that the sanitizer does not see, so what those libraries copy and compare is not looked
  # at. Their locks are, and all that our code does, also when they call it.
  set(KVSYNCFS_TEST_ENVIRONMENT "TSAN_OPTIONS=halt_on_error=1:ignore_noninstrumented_modules=1")
else()
  string(JOIN ":" KVSYNCFS_TEST_ENVIRONMENT "ASAN_OPTIONS=abort_on_error=1"
         detect_stack_use_after_return=1 check_initialization_order=1 strict_string_checks=1)
endif()

# tests_<label> builds what the tests of a label need and nothing else, tests_<prefix> those whose
# names begin so.
foreach(label unit sim fuzz)
  add_custom_target(tests_${label})
endforeach()

# Sources of `folder` that do not match `regex` become the library `name`; DEPS are linked always.
function(kvsyncfs_test_library name folder regex)
  cmake_parse_arguments(LIB "" "" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.cc)
  list(FILTER sources EXCLUDE REGEX "${regex}")
  if(sources)
    add_library(${name} STATIC ${sources})
    target_link_libraries(${name} PUBLIC ${LIB_DEPS})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE ${LIB_DEPS})
  endif()
endfunction()

# One executable per file of `folder` that ends in _`kind`.cc. A file of GoogleTest cases is
# registered case by case, another one as a whole.
function(kvsyncfs_test_folder folder prefix kind label timeout_s)
  cmake_parse_arguments(FOLDER "" "" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*_${kind}.cc)
  if(NOT TARGET tests_${prefix})
    add_custom_target(tests_${prefix})
  endif()
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    set(target ${prefix}_${name})
    add_executable(${target} ${source})
    target_link_libraries(${target} PRIVATE ${FOLDER_DEPS} kvsyncfs_testlib GTest::gtest_main)
    add_dependencies(tests_${label} ${target})
    add_dependencies(tests_${prefix} ${target})
    file(STRINGS ${source} cases REGEX "^(TYPED_)?TEST(_F|_P)?\\(|^RC_GTEST_(FIXTURE_)?PROP\\(")
    if(cases)
      gtest_discover_tests(
        ${target} TEST_PREFIX ${prefix}/ NO_PRETTY_VALUES DISCOVERY_MODE PRE_TEST
        DISCOVERY_TIMEOUT 60
        PROPERTIES LABELS ${label} TIMEOUT ${timeout_s}
                   ENVIRONMENT "${KVSYNCFS_TEST_ENVIRONMENT}")
    else()
      add_test(NAME ${prefix}/${name} COMMAND ${target})
      set_tests_properties(${prefix}/${name} PROPERTIES LABELS ${label} TIMEOUT ${timeout_s}
                           ENVIRONMENT "${KVSYNCFS_TEST_ENVIRONMENT}")
    endif()
  endforeach()
endfunction()

kvsyncfs_test_library(kvsyncfs_testlib tests/lib "_test\\.cc$" DEPS kvsyncfs_env kvsyncfs_format
                      GTest::gtest rapidcheck)
kvsyncfs_test_library(kvsyncfs_sim tests/sim "_(sim|test)\\.cc$" DEPS kvsyncfs_engine
                      kvsyncfs_etcd kvsyncfs_cluster kvsyncfs_testlib)

foreach(room base env format log catalog store policy tier net cluster sync)
  kvsyncfs_test_folder(tests/engine/${room} ${room} test unit 120 DEPS kvsyncfs_${room})
endforeach()
kvsyncfs_test_folder(tests/engine/log/etcd etcd test unit 120 DEPS kvsyncfs_etcd)
kvsyncfs_test_folder(tests/engine engine test unit 120 DEPS kvsyncfs_engine)
kvsyncfs_test_folder(tests/sim sim test unit 120 DEPS kvsyncfs_sim)
kvsyncfs_test_folder(tests/sim sim sim sim 900 DEPS kvsyncfs_sim)
# Threads under simulated time run one at a time: the thread sanitizer has nothing to see there.
if(NOT KVSYNCFS_SANITIZE STREQUAL "thread")
  kvsyncfs_test_library(kvsyncfs_sim_cluster tests/sim/cluster "_(sim|test)\\.cc$" DEPS kvsyncfs_sim
                        fmt::fmt ${CMAKE_DL_LIBS})
  kvsyncfs_test_folder(tests/sim/cluster sim test unit 120 DEPS kvsyncfs_sim_cluster)
  kvsyncfs_test_folder(tests/sim/cluster sim sim sim 900 DEPS kvsyncfs_sim_cluster)
endif()
foreach(folder fs mkfs tools)
  kvsyncfs_test_folder(tests/${folder} ${folder} test unit 120 DEPS kvsyncfs_${folder})
endforeach()

# A fuzzer runs for ever under libFuzzer, or a fixed number of inputs as a test.
file(GLOB fuzzers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/*_fuzz.cc)
foreach(source ${fuzzers})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE kvsyncfs_engine kvsyncfs_etcd kvsyncfs_cluster
                                        kvsyncfs_testlib)
  add_dependencies(tests_fuzz ${name})
  if(KVSYNCFS_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus_driver.cc)
    string(REGEX REPLACE "_fuzz$" "" corpus ${name})
    add_test(NAME fuzz/${name} COMMAND ${name} ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${corpus})
    set_tests_properties(fuzz/${name} PROPERTIES LABELS fuzz TIMEOUT 300
                         ENVIRONMENT "${KVSYNCFS_TEST_ENVIRONMENT}")
  endif()
endforeach()

file(GLOB benchmarks CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/bench/*_bench.cc)
foreach(source ${benchmarks})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE kvsyncfs_engine kvsyncfs_net kvsyncfs_testlib
                        benchmark::benchmark)
endforeach()

# Walk the state tables of a man page.
set_source_files_properties(
  ${CMAKE_SOURCE_DIR}/tests/engine/catalog/state_tables_test.cc
  ${CMAKE_SOURCE_DIR}/tests/engine/catalog/segment_tables_test.cc
  ${CMAKE_SOURCE_DIR}/tests/sim/catalog_snapshots_test.cc
  ${CMAKE_SOURCE_DIR}/tests/sim/volume_secrets_test.cc
  PROPERTIES COMPILE_DEFINITIONS
             "KVSYNCFS_PROTOCOL_PAGE=\"${CMAKE_SOURCE_DIR}/man/kvsyncfs-protocol.7\"")

foreach(rule arrows calls registered shape)
  add_test(NAME check.${rule} COMMAND python3 ${CMAKE_SOURCE_DIR}/tools/check ${rule})
  set_tests_properties(check.${rule} PROPERTIES LABELS unit TIMEOUT 60)
endforeach()

file(GLOB folders CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/*/*.cmake)
foreach(file ${folders})
  include(${file})
endforeach()

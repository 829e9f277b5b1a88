# The FUSE face: the daemon and the helper that umount(8) calls.
file(GLOB fs_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/fs/*.cc
     ${PROJECT_SOURCE_DIR}/fs/ops/*.cc)
list(FILTER fs_sources EXCLUDE REGEX "_main\\.cc$")
add_library(kvsyncfs_fs STATIC ${fs_sources})
target_link_libraries(kvsyncfs_fs PUBLIC kvsyncfs_engine PkgConfig::FUSE3 Boost::json
                      PkgConfig::PROMETHEUS spdlog::spdlog)

add_executable(kvsyncfs fs/kvsyncfs_main.cc)
target_link_libraries(kvsyncfs PRIVATE kvsyncfs_fs)
set_target_properties(kvsyncfs PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fs)
install(TARGETS kvsyncfs DESTINATION ${CMAKE_INSTALL_SBINDIR})

add_executable(umount.fuse.kvsyncfs fs/umount_main.cc)
target_link_libraries(umount.fuse.kvsyncfs PRIVATE kvsyncfs_fs)
set_target_properties(umount.fuse.kvsyncfs PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                                                      ${CMAKE_BINARY_DIR}/fs)
# umount(8) looks for helpers in /sbin only, whatever the prefix is.
install(TARGETS umount.fuse.kvsyncfs DESTINATION /sbin)

# systemd looks below /usr/local and below /usr.
configure_file(${PROJECT_SOURCE_DIR}/fs/kvsyncfs@.service.in
               ${CMAKE_BINARY_DIR}/fs/kvsyncfs@.service @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/fs/kvsyncfs@.service DESTINATION lib/systemd/system)

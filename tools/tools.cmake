# kvsyncfs-stat and kvsyncfs-ctl. `kvsyncfs::engine` is what a program links that uses the store
# without a mount.
kvsyncfs_room(kvsyncfs_tools tools DEPS kvsyncfs_engine fmt::fmt Boost::json CLI11::CLI11)
add_library(kvsyncfs::engine ALIAS kvsyncfs_engine)

foreach(command stat ctl)
  add_executable(kvsyncfs-${command} tools/kvsyncfs_${command}_main.cc)
  target_link_libraries(kvsyncfs-${command} PRIVATE kvsyncfs_tools)
  set_target_properties(kvsyncfs-${command} PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                                                       ${CMAKE_BINARY_DIR}/tools)
  install(TARGETS kvsyncfs-${command} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endforeach()

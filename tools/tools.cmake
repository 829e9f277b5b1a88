# kvsyncfs-stat. `kvsyncfs::engine` is what a program links that uses the store without a mount.
kvsyncfs_room(kvsyncfs_tools tools DEPS kvsyncfs_engine fmt::fmt Boost::json CLI11::CLI11)
add_library(kvsyncfs::engine ALIAS kvsyncfs_engine)

add_executable(kvsyncfs-stat tools/kvsyncfs_stat_main.cc)
target_link_libraries(kvsyncfs-stat PRIVATE kvsyncfs_tools)
set_target_properties(kvsyncfs-stat PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tools)
install(TARGETS kvsyncfs-stat RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

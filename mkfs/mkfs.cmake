# mkfs.kvsyncfs and fsck.kvsyncfs.
kvsyncfs_room(kvsyncfs_mkfs mkfs DEPS kvsyncfs_engine fmt::fmt CLI11::CLI11)

foreach(command mkfs fsck)
  add_executable(${command}.kvsyncfs mkfs/${command}_main.cc)
  target_link_libraries(${command}.kvsyncfs PRIVATE kvsyncfs_mkfs)
  set_target_properties(${command}.kvsyncfs PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                                                       ${CMAKE_BINARY_DIR}/mkfs)
  install(TARGETS ${command}.kvsyncfs RUNTIME DESTINATION ${CMAKE_INSTALL_SBINDIR})
endforeach()
# fsck(8) looks for the checker under the whole type of an fstab line.
install(
  CODE "set(link \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_SBINDIR}/fsck.fuse.kvsyncfs\")
        file(CREATE_LINK fsck.kvsyncfs \"\$ENV{DESTDIR}\${link}\" SYMBOLIC)
        list(APPEND CMAKE_INSTALL_MANIFEST_FILES \"\${link}\")")

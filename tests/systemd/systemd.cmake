# What systemd makes of the unit and of the lines for fstab(5) in the manual pages.
add_test(NAME systemd/units COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/units_test.py
         ${CMAKE_BINARY_DIR}/fs/kvsyncfs@.service ${CMAKE_SOURCE_DIR}/man)
set_tests_properties(systemd/units PROPERTIES LABELS unit TIMEOUT 60)

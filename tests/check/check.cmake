# The checkers are held to their rules too: each must find what it is for.
add_test(NAME check.checkers COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/checkers_test.py)
set_tests_properties(check.checkers PROPERTIES LABELS unit TIMEOUT 60)

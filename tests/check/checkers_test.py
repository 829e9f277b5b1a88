#!/usr/bin/env python3
"""tools/check finds each kind of fault in a small made tree; tools/test-summary counts right."""
import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

CLEAN = {
    'engine/base/a.h': '#pragma once\n',
    'engine/env/e.h': '#pragma once\n',
    'engine/log/l.h': '#pragma once\n',
    'engine/log/l.cc': '#include "engine/log/l.h"\n\n#include "engine/base/a.h"\n',
    'engine/store/s.h': '#pragma once\n',
    'engine/engine.h': '#pragma once\n',
    'fs/f.cc': '#include "engine/engine.h"\n#include "engine/env/e.h"\n',
    'tests/tests.cmake': 'foreach(room base log)\n',
    'tests/engine/log/l_test.cc': '#include <gtest/gtest.h>\nTEST(A, B) {}\n',
}


class Check(unittest.TestCase):
    def findings(self, changes, *rules):
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**CLEAN, **changes}.items():
                full = os.path.join(root, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, 'w', encoding='utf-8') as f:
                    f.write(text)
            run = subprocess.run([os.path.join(ROOT, 'tools/check'), '--root', root, *rules],
                                 capture_output=True, text=True, check=False)
        lines = run.stdout.splitlines()[:-1]
        self.assertEqual(run.returncode, 1 if lines else 0, run.stdout + run.stderr)
        return lines

    def assert_found(self, rule, path, text, word):
        lines = self.findings({path: text}, rule)
        self.assertEqual(len(lines), 1, lines)
        self.assertTrue(lines[0].startswith(path + ':'), lines)
        self.assertIn(word, lines[0])

    def test_a_clean_tree_has_no_findings(self):
        self.assertEqual(self.findings({}), [])

    def test_arrows_that_point_up_or_across_are_found(self):
        for path, target in (('engine/base/x.cc', 'engine/env/e.h'),
                             ('engine/log/x.cc', 'engine/store/s.h'),
                             ('engine/log/x.cc', 'engine/engine.h')):
            self.assert_found('arrows', path, f'#include "{target}"\n', 'no arrow')

    def test_the_faces_see_the_engine_by_its_door_only(self):
        self.assert_found('arrows', 'fs/x.cc', '#include "engine/log/l.h"\n', 'only engine')

    def test_nobody_includes_tests(self):
        lines = self.findings({'tests/lib/t.h': '#pragma once\n',
                               'engine/log/x.cc': '#include "tests/lib/t.h"\n'}, 'arrows')
        self.assertEqual(len(lines), 1, lines)

    def test_includes_are_paths_from_the_root(self):
        self.assert_found('arrows', 'engine/log/x.cc', '#include "l.h"\n', 'not a path')

    def test_outside_libraries_have_one_room(self):
        for path, text, word in (('engine/store/x.cc', 'rocksdb::DB* db;\n', 'RocksDB'),
                                 ('mkfs/x.cc', '#include <fuse3/fuse.h>\n', 'FUSE'),
                                 ('engine/log/x.cc', 'ibv_open_device(x);\n', 'verbs')):
            self.assert_found('arrows', path, text, word)

    def test_a_comment_names_what_it_likes(self):
        self.assertEqual(self.findings({'engine/store/x.cc': '// rocksdb::DB, ::open(x)\n'}), [])

    def test_calls_past_the_seams_are_found(self):
        for text, word in (('auto t = std::chrono::steady_clock::now();\n', 'Clock'),
                           ('auto t = time(nullptr);\n', 'Clock'),
                           ('std::thread t;\n', 'workers'),
                           ('int r = rand();\n', 'Random'),
                           ('int f = ::open(p, 0);\n', 'Disk'),
                           ('#include <fstream>\n', 'Disk')):
            self.assert_found('calls', 'engine/log/x.cc', text, word)

    def test_calls_behind_the_seams_are_free(self):
        self.assertEqual(self.findings({'engine/env/x.cc': 'int f = ::open(p, 0);\n',
                                        'engine/log/x.cc': 'auto f = disk_.open(p);\n'}), [])

    def test_tests_that_nothing_runs_are_found(self):
        test = '#include <gtest/gtest.h>\nTEST(A, B) {}\n'
        for path in ('tests/engine/log/x.cc', 'tests/engine/nowhere/x_test.cc',
                     'tests/lib/x.cc', 'tests/bench/x.cc', 'tests/fuzz/x.cc'):
            lines = self.findings({path: test}, 'registered')
            self.assertEqual(len(lines), 1, (path, lines))
        self.assert_found('registered', 'tests/engine/log/x_test.cc', 'int a;\n', 'no test case')
        self.assert_found('registered', 'tests/crash/x_test.py', '', 'not named')

    def test_shape_is_checked(self):
        for text, word in (('int a;' + ' ' * 95 + 'int b;\n', 'columns'), ('int a; \n', 'blanks'),
                           ('// TO' 'DO: later\n', 'leftover'), ('int a;', 'newline'),
                           ('\n' * 601, '601 lines')):
            self.assert_found('shape', 'engine/log/x.cc', text, word)
        self.assert_found('shape', 'engine/log/x.h', '\n', 'pragma')

    def test_an_unknown_rule_is_refused(self):
        run = subprocess.run([os.path.join(ROOT, 'tools/check'), 'nonsense'], capture_output=True,
                             check=False)
        self.assertEqual(run.returncode, 2)


PASSED = '<testcase name="a" status="run"/>'
FAILED = '<testcase name="b" status="fail"><failure message="Failed"/></testcase>'
SKIPPED = ('<testcase name="c" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>'
           '</testcase>')
NOT_BUILT = ('<testcase name="d" status="notrun"><skipped message="Unable to find executable"/>'
             '</testcase>')


class Summary(unittest.TestCase):
    def last_line(self, cases, broken=0):
        with tempfile.NamedTemporaryFile('w', suffix='.xml') as f:
            f.write(f'<testsuite>{"".join(cases)}</testsuite>')
            f.flush()
            run = subprocess.run([os.path.join(ROOT, 'tools/test-summary'), str(broken), f.name],
                                 capture_output=True, text=True, check=False)
        return run.stdout.splitlines()[-1], run.returncode

    def test_all_passed(self):
        self.assertEqual(self.last_line([PASSED, PASSED]), ('2 passed, 0 failed', 0))

    def test_a_failure_fails(self):
        self.assertEqual(self.last_line([PASSED, FAILED]), ('1 passed, 1 failed', 1))

    def test_a_skip_is_counted_and_does_not_fail(self):
        self.assertEqual(self.last_line([PASSED, SKIPPED]), ('1 passed, 0 failed, 1 skipped', 0))

    def test_what_was_not_built_has_failed(self):
        self.assertEqual(self.last_line([PASSED, NOT_BUILT]), ('1 passed, 1 failed', 1))

    def test_a_broken_build_fails(self):
        self.assertEqual(self.last_line([PASSED], broken=1), ('1 passed, 1 failed', 1))

    def test_nothing_run_is_not_success(self):
        self.assertEqual(self.last_line([]), ('0 passed, 0 failed', 1))


if __name__ == '__main__':
    unittest.main()

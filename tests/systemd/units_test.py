#!/usr/bin/env python3
"""usage: units_test.py UNIT MAN    the unit kvsyncfs@.service, the folder of the manual pages

The unit is good as systemd-analyze(1) judges it, and the lines for fstab(5) in the manual become
mounts in the promised order. Where systemd is not installed only the words are looked at.
"""
import configparser
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

GENERATOR = '/lib/systemd/system-generators/systemd-fstab-generator'
UNIT, MAN = sys.argv[1:3]


def fstab_lines():
    found = {}
    for path in glob.glob(os.path.join(MAN, '*')):
        with open(path, encoding='utf-8') as page:
            lines = re.findall(r'^/\S+\s+/\S+\s+fuse\.kvsyncfs\s.*$', page.read(), re.MULTILINE)
        if lines:
            found[os.path.basename(path)] = lines
    return found


class Units(unittest.TestCase):
    def test_unit_has_what_a_node_needs(self):
        unit = configparser.ConfigParser(strict=False, interpolation=None)
        unit.optionxform = str
        unit.read(UNIT)
        self.assertIn('network-online.target', unit['Unit']['After'].split())
        self.assertIn('network-online.target', unit['Unit']['Wants'].split())
        self.assertEqual(unit['Unit']['RequiresMountsFor'], '%f')
        self.assertRegex(unit['Service']['ExecStart'], r'^/\S*/kvsyncfs --no-mount %f ')
        self.assertEqual(unit['Service']['Restart'], 'on-failure')

    @unittest.skipUnless(shutil.which('systemd-analyze'), 'no systemd')
    def test_systemd_finds_no_fault_in_the_unit(self):
        with open(UNIT, encoding='utf-8') as file:
            text = file.read()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'kvsyncfs@srv-kv.service')
            # The daemon need not be installed.
            with open(path, 'w', encoding='utf-8') as file:
                file.write(re.sub(r'^ExecStart=/\S+', 'ExecStart=/bin/true', text, flags=re.M))
            done = subprocess.run(
                ['systemd-analyze', 'verify', '--man=no', '--recursive-errors=no', path],
                capture_output=True,
                text=True,
                timeout=50,
                check=False,
            )
        told = [line for line in (done.stdout + done.stderr).splitlines() if 'kvsyncfs' in line]
        self.assertEqual((done.returncode, told), (0, []))

    def test_manual_has_lines_for_both_kinds_of_stores(self):
        self.assertLessEqual({'kvsyncfs.8', 'kvsyncfs-cluster.7'}, set(fstab_lines()))
        for line in fstab_lines()['kvsyncfs-cluster.7']:
            self.assertIn('_netdev', line.split()[3].split(','))

    @unittest.skipUnless(os.path.exists(GENERATOR), 'no systemd')
    def test_lines_of_the_manual_become_ordered_mounts(self):
        for page, lines in fstab_lines().items():
            for line in lines:
                unit = self.generate(line)
                with self.subTest(page=page, line=line):
                    self.assertRegex(unit, r'(?m)^RequiresMountsFor=.*/srv/kv\b')
                    if '_netdev' in line:
                        self.assertRegex(unit, r'(?m)^Requires=.*\bnetwork-online\.target\b')
                        self.assertRegex(unit, r'(?m)^After=.*\bnetwork-online\.target\b')
                        self.assertRegex(unit, r'(?m)^After=.*\betcd\.service\b')

    def generate(self, line):
        """The unit of a mount at /mnt/kv."""
        with tempfile.TemporaryDirectory() as folder:
            fstab = os.path.join(folder, 'fstab')
            with open(fstab, 'w', encoding='utf-8') as file:
                file.write(line + '\n')
            environment = {**os.environ, 'SYSTEMD_FSTAB': fstab, 'SYSTEMD_LOG_TARGET': 'console'}
            subprocess.run(
                [GENERATOR, folder, folder, folder], env=environment, timeout=20, check=True
            )
            with open(os.path.join(folder, 'mnt-kv.mount'), encoding='utf-8') as file:
                return file.read()


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])

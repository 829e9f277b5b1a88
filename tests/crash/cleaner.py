#!/usr/bin/env python3
"""Random overwrites of a full store, for long: no ENOSPC while live data fit, and the cost.

usage: cleaner.py --build DIR [--size MIB] [--levels 50,70,80,90] [--turns N] [--json FILE]

Per fill level: a new store, one file of that share of what df offers, overwritten in random pages
for N times the store's size, then every page is compared, the file is deleted, and the space must
be back without a remount. Prints the write amplification per level (bytes to segment files / bytes
written).
"""
import argparse
import json
import os
import random
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), 'lib')]
sys.dont_write_bytecode = True

from volume import Volume, counter, end_in_order, find_tools, wait_until  # noqa: E402

PAGE = 4096


def page_bytes(page, version):
    return b'%015d-%015d-' % (page, version) * (PAGE // 32)


def available(path):
    space = os.statvfs(path)
    return space.f_bavail * space.f_frsize


def disk_bytes(pid):
    with open(f'/proc/{pid}/io', encoding='ascii') as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith('write_bytes'))


def overwrite(fd, versions, count, rng):
    for _ in range(count):
        page = rng.randrange(len(versions))
        versions[page] += 1
        os.pwrite(fd, page_bytes(page, versions[page]), page * PAGE)
    os.fsync(fd)


def verify(path, versions):
    with open(path, 'rb') as file:
        for page, version in enumerate(versions):
            found = file.read(PAGE)
            if found != page_bytes(page, version):
                raise AssertionError(f'page {page}: {found[:32]!r}, want version {version}')


def one_level(args, level, rng):
    volume = Volume(
        args.build, os.path.join(args.work, f'cleaner-work.{os.getpid()}'), size=f'{args.size}M'
    )
    try:
        volume.format()
        volume.mount()
        path = volume.mnt + '/file'
        empty = available(volume.mnt)
        versions = [0] * (empty * level // 100 // PAGE)
        fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o644)
        for page in range(len(versions)):
            os.pwrite(fd, page_bytes(page, 0), page * PAGE)
        os.fsync(fd)
        count = args.turns * (args.size << 20) // PAGE
        segment_before = counter(volume.stat(), 'segment_written_bytes')
        disk_before, started = disk_bytes(volume.pid()), time.monotonic()
        overwrite(fd, versions, count, rng)
        seconds = time.monotonic() - started
        written = count * PAGE
        result = {
            'fill_percent': level,
            'overwritten_bytes': written,
            'seconds': round(seconds, 2),
            'segment_amplification': round(
                (counter(volume.stat(), 'segment_written_bytes') - segment_before) / written, 3
            ),
            'disk_amplification': round((disk_bytes(volume.pid()) - disk_before) / written, 3),
        }
        os.close(fd)
        verify(path, versions)
        volume.cold()
        verify(path, versions)
        os.unlink(path)
        wait_until(lambda: available(volume.mnt) > empty * 0.95, 30, 'free space after the delete')
        volume.unmount()
        if volume.fsck(check=False).returncode != 0:
            raise AssertionError('fsck.kvsyncfs is not clean')
        return result
    finally:
        volume.destroy()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('--build', required=True)
    parser.add_argument('--work', default='')
    parser.add_argument('--size', type=int, default=256, help='of the store, MiB')
    parser.add_argument('--levels', default='90')
    parser.add_argument('--turns', type=int, default=3)
    parser.add_argument('--json', default='')
    parser.add_argument('--seed', type=int, default=1)
    args = parser.parse_args()
    args.build = os.path.abspath(args.build)
    args.work = os.path.abspath(args.work or args.build)
    if os.geteuid() != 0 or not os.path.exists('/dev/fuse'):
        print('skipped: needs root and /dev/fuse')
        return 77
    if 'kvsyncfs' not in find_tools(args.build):
        print(f'{args.build}: kvsyncfs is not built there')
        return 1
    end_in_order()
    results = []
    print(f'{"full":>5} {"amplification":>14} {"of the disk":>12} {"MiB/s":>7}')
    for level in map(int, args.levels.split(',')):
        results.append(one_level(args, level, random.Random(args.seed)))
        r = results[-1]
        speed = r['overwritten_bytes'] / r['seconds'] / (1 << 20)
        print(
            (
                f'{level:>4}%'
                f' {r["segment_amplification"]:>14} {r["disk_amplification"]:>12} {speed:>7.1f}'
            ),
            flush=True,
        )
    if args.json:
        with open(args.json, 'w', encoding='utf-8') as file:
            json.dump(results, file, indent=2)
    return 0


if __name__ == '__main__':
    sys.exit(main())

"""Little memory: for the daemon and who writes together, and for listings of huge directories."""
import contextlib
import hashlib
import os
import random
import subprocess
import sys
import threading
import time

from support import Skip, Stream, case, check, equal, put
from volume import wait_until

MIB = 1 << 20
TREE_1, TREE_2 = '/sys/fs/cgroup/memory', '/sys/fs/cgroup'

# Dirties pages of a mapping and of the page cache faster than anything can write them.
WRITER = """
import mmap, os, sys
name, megabytes, seed = sys.argv[1], int(sys.argv[2]), sys.argv[3].encode()
fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
os.ftruncate(fd, megabytes << 20)
mapping = mmap.mmap(fd, 0)
for page in range(0, megabytes << 20, 4096):
    mapping[page:page + 4096] = (seed + b'%d|' % page).ljust(4096, b'.')
mapping.close()
os.close(fd)
with open(name + '.written', 'wb', buffering=0) as file:
    for page in range(0, megabytes << 20, 4096):
        file.write((seed + b'%d|' % page).ljust(4096, b'.'))
"""


def _own_group():
    """This process's folder in the first tree of the memory controller."""
    with open('/proc/self/cgroup', encoding='ascii') as lines:
        for line in lines:
            _, controllers, path = line.strip().split(':', 2)
            if controllers == 'memory' and os.path.isdir(TREE_1 + path):
                return TREE_1 + path
    return TREE_1


@contextlib.contextmanager
def memory_group(limit):
    """A folder of the cgroup file system whose processes have so many bytes together."""
    first = os.path.exists(TREE_1 + '/memory.limit_in_bytes')
    folder = os.path.join(_own_group() if first else TREE_2, f'kvsyncfs-test-{os.getpid()}')
    try:
        if not first:
            with open(TREE_2 + '/cgroup.subtree_control', 'w', encoding='ascii') as knob:
                knob.write('+memory')
        os.mkdir(folder)
        with open(
            folder + ('/memory.limit_in_bytes' if first else '/memory.max'), 'w', encoding='ascii'
        ) as knob:
            knob.write(str(limit))
    except OSError as error:
        raise Skip(f'no memory controller for a test: {error}') from error
    try:
        yield folder
    finally:
        wait_until(lambda: _rmdir(folder), 20, 'end of the processes of the group')


def _rmdir(folder):
    try:
        os.rmdir(folder)
        return True
    except OSError:
        return False


def _times_at_the_limit(folder):
    for name, word in (('memory.failcnt', None), ('memory.events', 'max')):
        try:
            with open(os.path.join(folder, name), encoding='ascii') as lines:
                for line in lines:
                    if word is None or line.split()[0] == word:
                        return int(line.split()[-1])
        except OSError:
            pass
    return 0


def _digest(path):
    sha = hashlib.sha256()
    with open(path, 'rb') as file:
        while piece := file.read(MIB):
            sha.update(piece)
    return sha.hexdigest()


@case(mounted=True, mount=False, timeout=400)
def memory_pressure_in_a_group_loses_nothing(v):
    """In a group whose memory the writers' dirty pages fill, so that the kernel asks the daemon of
    the same group for room, all calls end, the daemon lives, and each byte is there."""
    size, count = 192, 2
    v.format()
    with memory_group(112 * MIB) as group:
        inside = ['sh', '-c', f'echo $$ >{group}/cgroup.procs && exec "$@"', 'sh']
        v.prefix = inside
        v.mount('cache_size=8M,write_buffer=4M')
        daemon = v.pid()
        words = [[*inside, sys.executable, '-c', WRITER, f'{v.mnt}/f{i}', str(size), f's{i}.']
                 for i in range(count)]
        writers = [subprocess.Popen(w, stdin=subprocess.DEVNULL) for w in words]
        equal([w.wait(timeout=300) for w in writers], [0] * count)
        check(_times_at_the_limit(group) > 0, 'the limit was not felt')
        equal(v.pid(), daemon)
        v.unmount()
        v.mount('cache_size=8M,write_buffer=4M')
        for i in range(count):
            sha = hashlib.sha256()
            for page in range(0, size * MIB, 4096):
                sha.update((b's%d.%d|' % (i, page)).ljust(4096, b'.'))
            equal(_digest(f'{v.mnt}/f{i}'), sha.hexdigest(), f'stored through mapping {i}')
            equal(_digest(f'{v.mnt}/f{i}.written'), sha.hexdigest(), f'written to file {i}')
        v.unmount()
        v.prefix = []


def _resident(pid):
    with open(f'/proc/{pid}/status', encoding='ascii') as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith('VmRSS'))


@case(mounted=True, timeout=300)
def listing_a_huge_directory_takes_no_memory(v):
    """100 000 names listed by several at once while another process creates more: each listing has
    all that was there, its first name within a second, and the daemon grows by few MiB."""
    os.mkdir('d')
    for i in range(100_000):
        put(f'd/{i}', b'')
    v.cold()
    before, over = _resident(v.pid()), threading.Event()

    def create():
        numbers = random.Random(7)
        while not over.is_set():
            put(f'd/new-{numbers.getrandbits(60)}', b'')

    creator = threading.Thread(target=create)
    creator.start()
    try:
        for _ in range(3):
            start = time.monotonic()
            stream = Stream('d')
            stream.next()
            check(time.monotonic() - start < 1, f'first after {time.monotonic() - start:.1f} s')
            names = stream.names()
            stream.close()
            equal(sum(1 for n in names if n.isdigit()), 100_000)
            equal(len(names), len(set(names)), 'repeated names')
    finally:
        over.set()
        creator.join()
    grown = _resident(v.pid()) - before
    check(grown < 64 * MIB, f'the daemon grew by {grown // MIB} MiB')

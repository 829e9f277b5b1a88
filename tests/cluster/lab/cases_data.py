"""Bytes seen from several nodes. Nobody is killed here."""
import mmap
import os
import random

from jobs import together, within
from oracle import tree
from races import append_records, judge_records
from support import PAGE, case, check, create, equal, fails, get, in_child, needs, put, sh_ok
from volume import counter, wait_until


@case(plain=True)
def appended_records_are_whole_and_in_order(c):
    """Records that three nodes append to one file at the same time: none lost, torn or doubled."""
    count = 60 * c.more
    names = [node.name for node in c.nodes]
    together(
        50 * c.more,
        *((append_records, node.path('log'), node.name, count) for node in c.nodes),
    )
    for node in c.nodes:
        judge_records(node.path('log'), names, count)


@case(plain=True)
def alternating_appends_are_in_order(c):
    """Lines that nodes append in turns, opening and closing the file each, stand in that order."""
    want = b''
    for number in range(50 * c.more):
        for node in c.nodes:
            line = f'{node.name} {number}\n'.encode()
            put(node.path('log'), line, 'ab')
            want += line
    for node in c.nodes:
        equal(get(node.path('log')), want, f'the log on {node.name}')


def _storm(folder, rounds):
    for number in range(rounds):
        put(os.path.join(folder, 'new'), b'%d' % number)
        os.rename(os.path.join(folder, 'new'), os.path.join(folder, 'old'))


def _append_lines(path, rounds):
    inode = os.stat(path).st_ino
    for _ in range(rounds):
        fd = os.open(path, os.O_WRONLY | os.O_APPEND)  # not O_CREAT: it must be there
        os.write(fd, b'x\n')
        os.close(fd)
        equal(os.stat(path).st_ino, inode, 'the inode of the log')


@case(plain=True)
def file_is_found_in_a_storm_of_names(c):
    """A file that is always there is always found, while another node renames beside it."""
    rounds = 100 * c.more
    put(c.nodes[0].path('log'), b'')
    together(
        50 * c.more,
        (_append_lines, c.nodes[0].path('log'), rounds),
        (_storm, c.nodes[1].mnt, rounds),
    )
    equal(get(c.nodes[2].path('log')), b'x\n' * rounds, 'lines')


@case(plain=True)
def size_follows_the_other_node(c):
    """A file that another node grew, cut or replaced is read with its new size: not cut short and
    without zeros behind, nor bytes that were cut, where it has a hole now."""
    one, two = c.nodes[:2]
    for size in (10, 1 << 20, 3, 5000, 4096, 0, 200_000):
        data = random.Random(size).randbytes(size)
        put(two.path('f'), data)
        equal(os.stat(one.path('f')).st_size, size, f'size on {one.name}')
        equal(get(one.path('f')), data, f'bytes on {one.name}')
        os.truncate(one.path('f'), size // 2)
        os.truncate(two.path('f'), size)
        equal(get(one.path('f')), data[: size // 2] + bytes(size - size // 2), 'cut and grown')
    put(one.path('f'), b'A' * 2 * PAGE)
    os.truncate(two.path('f'), 0)
    fd = os.open(one.path('f'), os.O_WRONLY)
    os.pwrite(fd, b'x' * PAGE, 16 * PAGE)
    os.close(fd)
    for node in c.nodes:
        page = mmap.mmap(-1, 16 * PAGE)  # aligned memory
        fd = os.open(node.path('f'), os.O_RDONLY | os.O_DIRECT)
        equal(os.preadv(fd, [page], 0), 16 * PAGE, 'bytes of the hole')
        os.close(fd)
        check(page[:] == bytes(16 * PAGE), f'{node.name} shows bytes that were cut')


@case(plain=True)
def overwrite_of_the_same_size_is_seen(c):
    """New bytes in the same place, with the times set back, are read by the next open."""
    one, two = c.nodes[:2]
    for number in range(20 * c.more):
        data = b'%08d' % number * 1000
        fd = create(one.path('f'))
        os.write(fd, data)
        os.utime(fd, ns=(10**18, 10**18))
        os.close(fd)
        equal(get(two.path('f')), data, f'bytes on {two.name}, round {number}')


@case(plain=True)
def offsets_beyond_4_gib_are_exact(c):
    """Bytes around 2, 4 and 10 GiB of a sparse file are read back on another node."""
    places = [0, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, (10 << 30) - 1]
    fd = create(c.nodes[0].path('big'))
    for number, place in enumerate(places):
        os.pwrite(fd, b'%d' % number, place)
    os.close(fd)
    for node in c.nodes:
        equal(os.stat(node.path('big')).st_size, 10 << 30, f'size on {node.name}')
        check(os.stat(node.path('big')).st_blocks < 1 << 16, 'the file is sparse')
        fd = os.open(node.path('big'), os.O_RDONLY)
        found = [os.pread(fd, 1, place) for place in places]
        equal(found, [b'%d' % i for i in range(len(places))], f'marks on {node.name}')
        equal(os.pread(fd, 100, 5 << 30), bytes(100), f'the hole on {node.name}')
        os.close(fd)


@case(plain=True)
def many_small_files_arrive_whole(c):
    """A tree of small files that one node copies in is the same on the others."""
    rng = random.Random(c.seed)
    source = '/run/source'
    for folder in range(5):
        os.makedirs(f'{source}/d{folder}')
        for number in range(30 * c.more):
            put(f'{source}/d{folder}/f{number}', rng.randbytes(rng.randrange(1, 3000)))
    sh_ok(f'cp -r {source} {c.nodes[0].mnt}/copy', timeout=50 * c.more)
    want = {path: seen[-1] for path, seen in tree(source).items()}
    for node in c.nodes:
        got = {path: seen[-1] for path, seen in tree(node.path('copy')).items()}
        equal(got, want, f'the copy on {node.name}')


@case(plain=True)
def write_in_place_reaches_every_name(c):
    """rsync --inplace of a changed and shortened file: the same inode, exact bytes, on all nodes
    and under its other name."""
    needs('rsync')
    data = bytearray(random.Random(c.seed).randbytes(3 << 20))
    put('source', data)
    one = c.nodes[0]
    put(one.path('f'), data)
    os.link(one.path('f'), one.path('g'))
    inode = os.stat(one.path('f')).st_ino
    data[1_000_000:1_100_000] = bytes(100_000)
    del data[2_500_000:]
    put('source', data)
    sh_ok(f'rsync --inplace --no-whole-file source {c.nodes[1].path("f")}')
    for node in c.nodes:
        for name in ('f', 'g'):
            equal(os.stat(node.path(name)).st_ino, inode, f'inode of {name} on {node.name}')
            equal(get(node.path(name)), bytes(data), f'bytes of {name} on {node.name}')


@case(plain=True)
def removed_file_lives_while_another_node_has_it_open(c):
    """A file open on one node and removed, or replaced, on another: reads, writes and cuts go on
    until it is closed; its folder can be removed."""
    one, two = c.nodes[:2]
    os.mkdir(one.path('d'))
    data = random.Random(1).randbytes(300_000)
    put(one.path('d', 'f'), data)
    put(one.path('e'), data)
    removed, replaced = os.open(one.path('d', 'f'), os.O_RDWR), os.open(one.path('e'), os.O_RDWR)
    equal(os.pread(removed, PAGE, 0), data[:PAGE], 'first page')
    os.unlink(two.path('d', 'f'))
    os.rmdir(two.path('d'))
    put(two.path('new'), b'new')
    os.rename(two.path('new'), two.path('e'))
    fails('ENOENT', os.stat, one.path('d'))
    for fd in (removed, replaced):
        equal(os.fstat(fd).st_nlink, 0, 'links of a removed open file')
        equal(os.pread(fd, len(data), 0), data, 'bytes of a removed open file')
        os.pwrite(fd, b'changed', 100_000)
        os.ftruncate(fd, 200_000)
        os.fsync(fd)
        want = data[:100_000] + b'changed' + data[100_007:200_000]
        equal(os.pread(fd, len(data), 0), want, 'changed bytes of a removed open file')
        os.close(fd)
    equal(get(one.path('e')), b'new', 'the file that replaced it')


@case(plain=True)
def removed_folder_and_fifo_live_while_they_are_used(c):
    """A working folder, an open folder and an open fifo that this node removed, and an open folder
    that another node removed, are there until they are closed, and gone then."""
    one, two = c.nodes[:2]

    def used():
        return counter(one.stat(), 'inodes')

    fds = []
    for name, remover in (('own', one), ('work', one), ('foreign', two)):
        os.mkdir(one.path(name))
        fds.append(os.open(one.path(name), os.O_RDONLY))
        if name == 'work':
            os.fchdir(fds[-1])
            os.close(fds.pop())
        os.rmdir(remover.path(name))
    os.mkfifo(one.path('fifo'))
    fds.append(os.open(one.path('fifo'), os.O_RDWR))
    os.unlink(one.path('fifo'))
    for _ in range(0 if c.plain else 5):  # what nobody uses is freed meanwhile
        put(two.path('nobodys'), b'x')
        os.unlink(two.path('nobodys'))
        wait_until(lambda: used() == 5, 20, 'the root and what is used')
    for node in () if c.plain else (one, two):
        wait_until(lambda n=node: counter(n.stat(), 'orphans') == 4, 20, 'a count of them')
    for fd in fds:
        equal(os.fstat(fd).st_nlink, 0, 'links')
        os.fchmod(fd, 0o700)
    equal(os.listdir('.'), [], 'the removed working folder')
    equal(os.listdir(fds[0]) + os.listdir(fds[1]), [], 'removed open folders')
    fails('ENOENT', os.mkdir, 'below')
    os.chdir('/')
    for fd in fds:
        os.close(fd)
    if not c.plain:
        wait_until(lambda: used() == 1, 20, 'the end of what was used')
        wait_until(lambda: counter(one.stat(), 'orphans') == 0, 20, 'a count of none')


@case(plain=True)
def open_file_reads_on_while_it_is_rewritten(c):
    """A file that another node rewrites in small pieces reads old or new bytes through an open
    descriptor, never an error."""
    one, two = c.nodes[:2]
    size, piece = 800_000, 4000
    put(one.path('f'), b'a' * size)
    fd = os.open(one.path('f'), os.O_RDONLY)
    equal(os.pread(fd, PAGE, 0), b'a' * PAGE, 'first page')
    out = os.open(two.path('f'), os.O_WRONLY)
    for offset in range(0, size, piece):
        os.pwrite(out, b'b' * piece, offset)
        if offset % (piece * 50) == 0:
            os.fsync(out)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            check(set(os.pread(fd, size, 0)) <= set(b'ab'), 'bytes that nobody wrote')
    os.close(out)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    check(set(os.pread(fd, size, 0)) <= set(b'ab'), 'bytes that nobody wrote')
    os.close(fd)
    equal(get(one.path('f')), b'b' * size, 'what the next open reads')


def _map_and_store(path, offset, data):
    fd = os.open(path, os.O_RDWR)
    mapped = mmap.mmap(fd, os.fstat(fd).st_size)
    mapped[offset : offset + len(data)] = data
    mapped.flush()
    mapped.close()
    os.close(fd)


def _map_beside_direct_io(path):
    fd = os.open(path, os.O_RDWR | os.O_DIRECT)
    page = mmap.mmap(-1, PAGE)  # aligned memory
    mapped = mmap.mmap(fd, 2 * PAGE)
    mapped[:3] = b'map'
    os.preadv(fd, [page], 0)
    equal(page[:4], b'mapa', 'read past the pages')
    page[:] = b'b' * PAGE
    os.pwrite(fd, page, 0)
    equal(mapped[: PAGE + 1], b'b' * PAGE + b'a', 'the mapping after a write past the pages')
    mapped[PAGE : PAGE + 3] = b'end'
    mapped.close()
    os.close(fd)


@case(plain=True)
def direct_io_and_mappings_of_one_handle_agree(c):
    """A handle with O_DIRECT can be mapped, and each way sees at once what the other one wrote."""
    for number in range(3 * c.more):
        put(c.nodes[0].path('f'), b'a' * 2 * PAGE)
        node, other = c.nodes[number % 2], c.nodes[(number + 1) % 2]
        in_child(lambda n=node: _map_beside_direct_io(n.path('f')))
        there = within(20, get, other.path('f'))
        equal(there, b'b' * PAGE + b'end' + b'a' * (PAGE - 3), f'on {other.name}')


@case(plain=True)
def mapped_bytes_are_coherent_at_msync(c):
    """What a node stored through a mapping is read on another after msync and close."""
    data = bytearray(random.Random(c.seed).randbytes(50_000))
    put(c.nodes[0].path('f'), data)
    for number in range(20 * c.more):
        text, offset = b'<%d>' % number, number * 2000 % 40_000
        node, other = c.nodes[number % 2], c.nodes[(number + 1) % 2]
        in_child(lambda n=node, o=offset, t=text: _map_and_store(n.path('f'), o, t))
        data[offset : offset + len(text)] = text
        equal(within(20, get, other.path('f')), bytes(data), f'on {other.name}, round {number}')

"""truncate and O_TRUNC: what was cut never comes back, whoever looks."""
import os
import random

from support import PAGE, case, check, create, equal, fails, get, put, threads


def truncate_shows_no_old_bytes(v):
    """What truncate cut off never comes back: an extension reads as zeros."""
    put('f', b'A' * 8192)
    fd = os.open('f', os.O_RDWR)
    os.ftruncate(fd, 0)
    os.pwrite(fd, b'z', 65536)
    equal(os.pread(fd, 8192, 0), bytes(8192), 'hole after truncate to 0')
    os.ftruncate(fd, 0)
    os.pwrite(fd, b'B' * PAGE, 0)
    os.ftruncate(fd, 4)
    os.ftruncate(fd, PAGE)
    equal(os.pread(fd, PAGE, 0), b'BBBB' + bytes(PAGE - 4), 'truncate down and up')
    os.close(fd)
    v.cold()
    equal(get('f'), b'BBBB' + bytes(PAGE - 4), 'after a remount')
    fd = os.open('f', os.O_RDWR | os.O_TRUNC)
    os.pwrite(fd, b'z', 9000)
    equal(os.pread(fd, 9000, 0), bytes(9000), 'hole after O_TRUNC')
    os.close(fd)


def truncate_shows_no_old_bytes_of_durable_data(v):
    """The same when the bytes lay on disk already and the cut happens after a remount."""
    put('f', b'A' * 200_000)
    v.cold()
    os.truncate('f', 5000)
    os.truncate('f', 150_000)
    want = b'A' * 5000 + bytes(145_000)
    equal(get('f'), want, 'at once')
    v.cold()
    equal(get('f'), want, 'after a remount')
    os.truncate('f', 0)
    v.cold()
    os.truncate('f', 10_000)
    equal(get('f'), bytes(10_000), 'cut to nothing')


def truncate_open_is_atomic_with_open(v):
    """O_TRUNC empties the file for every handle and moves mtime and ctime; other handles write
    on."""
    put('f', b'A' * 5000)
    os.utime('f', (1, 1))
    reader = os.open('f', os.O_RDWR)
    os.close(os.open('f', os.O_WRONLY | os.O_TRUNC))
    equal(os.fstat(reader).st_size, 0, 'size')
    check(os.fstat(reader).st_mtime > 1e9, 'mtime did not move')
    equal(os.pread(reader, 10, 0), b'', 'content')
    os.pwrite(reader, b'k', 2)
    equal(get('f'), b'\0\0k')


def truncate_bad_arguments(v):
    """Negative length EINVAL, directory EISDIR, missing ENOENT, a read-only handle EINVAL or
    EBADF."""
    put('f')
    os.mkdir('d')
    fails('EINVAL', os.truncate, 'f', -1)
    fails('EISDIR', os.truncate, 'd', 0)
    fails('ENOENT', os.truncate, 'missing', 0)
    fd = os.open('f', os.O_RDONLY)
    fails('EINVAL EBADF', os.ftruncate, fd, 0)
    fails('EBADF', os.write, fd, b'x')
    fails('EBADF', os.read, os.open('f', os.O_WRONLY), 1)
    fails('EISDIR', os.open, 'd', os.O_WRONLY)
    fails('EISDIR', os.read, os.open('d', os.O_RDONLY), 1)


@case(mounted=True)
def truncate_to_eight_tebibytes(v):
    """A sparse file may be 8 TiB long, costs no space and keeps bytes at its ends."""
    fd = create('f')
    os.ftruncate(fd, 8 << 40)
    os.pwrite(fd, b'first', 0)
    os.pwrite(fd, b'last', (8 << 40) - 4)
    os.fsync(fd)
    os.close(fd)
    v.cold()
    equal(os.stat('f').st_size, 8 << 40, 'size')
    check(os.stat('f').st_blocks * 512 < 1 << 20, f'{os.stat("f").st_blocks} blocks')
    fd = os.open('f', os.O_RDONLY)
    equal(os.pread(fd, 8, 0), b'first\0\0\0')
    equal(os.pread(fd, 4096, 4 << 40), bytes(4096), 'the middle')
    equal(os.pread(fd, 100, (8 << 40) - 4), b'last')


def truncate_races_with_writers(v):
    """Writers against a truncater: each byte is one that was written or zero, and stays so."""

    def worker(k):
        rng = random.Random(k)
        fd = create('f')
        for _ in range(400):
            if k == 0:
                os.ftruncate(fd, rng.randrange(200_000))
            else:
                os.pwrite(fd, bytes([k]) * rng.randrange(1, 9000), rng.randrange(190_000))
        os.close(fd)

    threads(5, worker)
    data = get('f')
    check(set(data) <= {0, 1, 2, 3, 4}, f'foreign bytes {set(data) - {0, 1, 2, 3, 4}}')
    equal(len(data), os.stat('f').st_size, 'size')
    v.cold()
    equal(get('f'), data, 'after a remount')

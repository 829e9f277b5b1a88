"""write, append, fsync and the places where bytes must or must not be."""
import errno
import os
import random
import resource
import signal

from support import (
    PAGE,
    Skip,
    all_end_well,
    as_user,
    check,
    create,
    equal,
    fails,
    get,
    in_child,
    put,
    python,
    sh_ok,
    threads,
)
from volume import drop_caches


def append_to_write_only_handle(v):
    """O_APPEND on a write-only handle adds at the end, whatever pages the kernel holds."""
    put('f', b'foo\n')
    for _ in range(2):
        fd = os.open('f', os.O_WRONLY | os.O_APPEND)
        os.write(fd, b'bar\n')
        os.close(fd)
        v.cold()
    equal(get('f'), b'foo\nbar\nbar\n', 'after two appends')
    for i in range(1000):
        fd = os.open('g', os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
        os.write(fd, b'%09d\n' % i)
        os.close(fd)
    want = b''.join(b'%09d\n' % i for i in range(1000))
    equal(get('g'), want, 'appends that end inside a page')
    v.cold()
    equal(get('g'), want, 'after a remount')


def append_ignores_offset(v):
    """On an O_APPEND handle pwrite adds at the end and lseek does not matter."""
    fd = create('f', os.O_APPEND)
    os.write(fd, b'one')
    os.pwrite(fd, b'two', 0)
    os.lseek(fd, 0, os.SEEK_SET)
    os.write(fd, b'three')
    equal(get('f'), b'onetwothree')


def append_handle_writes_in_place_when_told_to(v):
    """RWF_NOAPPEND on an O_APPEND handle: the bytes lie at the offset, also for later readers."""
    no_append = 0x20
    fd = create('f', os.O_APPEND)
    os.write(fd, b'abcdef')
    try:
        os.pwritev(fd, [b'Y'], 0, no_append)
    except OSError as error:
        raise Skip(errno.errorcode[error.errno]) from error
    equal(get('f'), b'Ybcdef')
    os.pwrite(fd, b'Z', 0)
    equal(get('f'), b'YbcdefZ')
    os.close(fd)
    drop_caches(3)
    equal(get('f'), b'YbcdefZ', 'when the kernel has kept nothing')


def append_after_truncate(v):
    """An append after another handle's truncate lands at the new end, not at a remembered one."""
    fd = create('f', os.O_APPEND)
    os.write(fd, b'x' * 10000)
    os.truncate('f', 3)
    os.write(fd, b'end')
    equal(get('f'), b'xxxend')
    os.truncate('f', 0)
    os.write(fd, b'new')
    equal(get('f'), b'new')


def append_by_three_processes(v):
    """Parallel O_APPEND writers lose, tear and overwrite no record."""
    script = (
        'import os,sys\n'
        'fd=os.open("f",os.O_WRONLY|os.O_CREAT|os.O_APPEND,0o644)\n'
        'for i in range(700):\n'
        '  os.write(fd, (sys.argv[1]*90+"%08d\\n"%i).encode())\n'
    )
    all_end_well([python(script, k) for k in 'abc'])
    lines = get('f').splitlines()
    equal(len(lines), 2100, 'records')
    for k in b'abc':
        mine = [line for line in lines if line[0] == k]
        equal(
            mine,
            [bytes([k]) * 90 + b'%08d' % i for i in range(700)],
            'records of one writer in order',
        )


def write_at_big_offsets(v):
    """Offsets do not wrap at 2 or 4 GiB, and bytes there survive a remount."""
    fd = create('f')
    os.ftruncate(fd, 10 << 30)
    places = [2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**32 + 5, (10 << 30) - 1]
    for k, place in enumerate(places):
        os.pwrite(fd, bytes([65 + k]), place)
    os.fsync(fd)
    for _ in range(2):
        equal(os.fstat(fd).st_size, 10 << 30, 'size')
        for k, place in enumerate(places):
            equal(os.pread(fd, 1, place), bytes([65 + k]), f'at {place}')
        equal(os.pread(fd, PAGE, 2**31), b'B' + bytes(PAGE - 1))
        equal(os.pread(fd, PAGE, 1 << 32), b'D' + bytes(4) + b'E' + bytes(PAGE - 6))
        equal(os.pread(fd, 9, 10 << 30), b'', 'past the end')
        check(os.fstat(fd).st_blocks * 512 < 1 << 20, 'a sparse file takes space')
        os.close(fd)
        v.cold()
        fd = os.open('f', os.O_RDWR)


def write_beyond_the_largest_file(v):
    """Past the largest size write and truncate fail with EFBIG or EINVAL and change nothing."""
    fd = create('f')
    os.write(fd, b'keep')
    fails('EFBIG EINVAL', os.pwrite, fd, b'x', 2**63 - 1)
    fails('EFBIG EINVAL', os.ftruncate, fd, 2**63 - 1)
    fails('EINVAL', os.pwrite, fd, b'x', -1)
    equal(os.fstat(fd).st_size, 4)
    equal(get('f'), b'keep')


def write_beyond_file_size_limit(v):
    """RLIMIT_FSIZE: EFBIG and SIGXFSZ, a write across the limit is cut at it."""

    def child():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10000, 10000))
        fd = create('f')
        equal(os.pwrite(fd, b'a' * 5000, 8000), 2000, 'bytes written across the limit')
        fails('EFBIG', os.pwrite, fd, b'x', 10000)
        fails('EFBIG', os.ftruncate, fd, 10001)

    in_child(child)
    equal(os.stat('f').st_size, 10000)


def write_to_unreadable_file(v):
    """A user who may write but not read (mode 0222) can change part of a page."""
    put('f', b'a' * 100)
    v.cold()
    os.chmod('f', 0o222)
    os.chmod('.', 0o755)

    def child():
        fd = os.open('f', os.O_WRONLY)
        os.pwrite(fd, b'B', 50)
        os.close(fd)
        fails('EACCES', os.open, 'f', os.O_RDONLY)

    as_user(child)
    equal(get('f'), b'a' * 50 + b'B' + b'a' * 49)


def write_part_of_a_cold_page(v):
    """A few bytes written into a page that is only on disk leave the rest of it alone."""
    data = os.urandom(20_000)
    put('f', data)
    v.cold()
    fd = os.open('f', os.O_WRONLY)
    os.pwrite(fd, b'12345', 6000)
    os.close(fd)
    want = data[:6000] + b'12345' + data[6005:]
    equal(get('f'), want, 'at once')
    v.cold()
    equal(get('f'), want, 'after a remount')


def write_of_nothing(v):
    """Zero bytes change neither size nor times, but a bad handle is still an error."""
    fd = create('f')
    os.utime(fd, (5, 5))
    equal(os.write(fd, b''), 0)
    equal(os.pwrite(fd, b'', 100), 0)
    equal((os.fstat(fd).st_size, os.fstat(fd).st_mtime), (0, 5.0))


def write_of_many_pieces(v):
    """writev, readv and their positioned forms move bytes in order."""
    fd = create('f')
    pieces = [os.urandom(n) for n in (1, 4095, 4097, 0, 70_000, 3)]
    whole = b''.join(pieces)
    equal(os.writev(fd, pieces), len(whole))
    equal(os.pwritev(fd, pieces, 1_000_001), len(whole))
    buffers = [bytearray(n) for n in (5, 10_000, 200_000)]
    equal(os.preadv(fd, buffers, 1_000_001), len(whole))
    equal(b''.join(buffers)[: len(whole)], whole)
    equal(get('f'), whole + bytes(1_000_001 - len(whole)) + whole)


def write_in_place_with_hard_link(v):
    """Rewriting in place and shortening (as rsync --inplace does) keeps inode, link and exact
    bytes."""
    data = bytearray(os.urandom(10 << 20))
    put('f', data)
    os.link('f', 'g')
    inode = os.stat('f').st_ino
    v.cold()
    fd = os.open('f', os.O_RDWR)
    data[5_000_000:5_100_000] = os.urandom(100_000)
    os.pwrite(fd, data[5_000_000:5_100_000], 5_000_000)
    del data[9_999_999:]
    os.ftruncate(fd, len(data))
    os.close(fd)
    for _ in range(2):
        equal(get('g'), bytes(data), 'through the link')
        equal((os.stat('f').st_ino, os.stat('g').st_ino), (inode, inode), 'inode')
        v.cold()


def write_by_64_threads(v):
    """64 threads that write their own stripes of one file do not disturb each other."""
    fd = create('f')

    def stripe(k):
        for i in range(40):
            os.pwrite(fd, bytes([k + 1]) * 1000, (i * 64 + k) * 1000)

    threads(64, stripe)
    want = b''.join(bytes([k + 1]) * 1000 for k in range(64)) * 40
    equal(get('f'), want)
    v.cold()
    equal(get('f'), want, 'after a remount')


def write_is_seen_by_every_handle_at_once(v):
    """A byte written through one handle is read through another before either closes."""
    writer, reader = create('f'), os.open('f', os.O_RDONLY)
    for i in range(200):
        os.pwrite(writer, b'%08d' % i, i * 5)
        equal(os.pread(reader, 8, i * 5), b'%08d' % i)
        equal(os.fstat(reader).st_size, i * 5 + 8)


def write_of_a_megabyte_is_whole_for_readers(v):
    """A reader beside a writer of whole blocks sees bytes that were written, never other ones."""
    put('f', b'\1' * (1 << 20))
    script = (
        'import os\nfd=os.open("f",os.O_WRONLY)\n'
        'for i in range(60): os.pwrite(fd, bytes([i%3+1])*(1<<20), 0)\n'
    )
    writer = python(script)
    while writer.poll() is None:
        data = get('f')
        equal(len(data), 1 << 20, 'size')
        check(set(data) <= {1, 2, 3}, f'foreign bytes {set(data)}')
    equal(writer.returncode, 0)


def write_synchronously(v):
    """O_SYNC and O_DSYNC handles write and append as others do."""
    for flag in (os.O_SYNC, os.O_DSYNC):
        fd = create('f', flag | os.O_TRUNC)
        for i in range(20):
            os.write(fd, b'%05d' % i)
        os.pwrite(fd, b'XX', 3)
        equal(get('f')[:8], b'000XX000'[:5] + b'000')
        os.close(fd)


def small_files_keep_their_bytes(v):
    """1500 files of 1 to 3000 bytes are all complete after a remount."""
    random_ = random.Random(4)
    want = {}
    os.mkdir('d')
    for i in range(1500):
        want[f'd/{i}'] = random_.randbytes(random_.randint(1, 3000))
        put(f'd/{i}', want[f'd/{i}'])
    v.cold()
    bad = [name for name, data in want.items() if get(name) != data]
    equal(bad, [], 'files that lost bytes')


def written_bytes_copy_in_every_way(v):
    """cp -a, cat, dd and tar give the same bytes as were written."""
    put('f', os.urandom(3_000_001))
    sh_ok(
        'cp -a f g && cmp f g && cat f > h && cmp f h && dd if=f of=i bs=7777 status=none && cmp f'
        ' i && tar cf t f && mkdir x && tar xf t -C x && cmp f x/f'
    )


def fsync_works_on_any_handle(v):
    """fsync through a read-only handle, of an unlinked file, of a FIFO's folder: all succeed."""
    put('f', b'x' * 10_000)
    fd = os.open('f', os.O_RDONLY)
    os.fsync(fd)
    os.fdatasync(fd)
    os.unlink('f')
    os.fsync(fd)
    fails('EBADF', os.fsync, os.open('.', os.O_PATH))
    fails('EINVAL', os.fsync, os.pipe()[0])

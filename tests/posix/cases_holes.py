"""Holes, preallocation, ranges copied inside the volume, and what df says."""
import os
import resource
import time

from support import (
    FALLOC_COLLAPSE_RANGE,
    FALLOC_INSERT_RANGE,
    FALLOC_KEEP_SIZE,
    FALLOC_PUNCH_HOLE,
    FALLOC_ZERO_RANGE,
    PAGE,
    Skip,
    case,
    check,
    code,
    create,
    equal,
    fails,
    fallocate,
    get,
    in_child,
    put,
    python,
    sh_ok,
    supported,
)
from volume import wait_until

PUNCH = FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE


def seek_data_and_hole(v):
    """SEEK_DATA finds the data, SEEK_HOLE its end, both answer ENXIO at and past the end of the
    file."""
    fd = create('f')
    os.pwrite(fd, b'D' * PAGE, 1 << 20)
    os.ftruncate(fd, 2 << 20)
    for _ in range(2):
        for kind in (os.SEEK_DATA, os.SEEK_HOLE):
            for place in (2 << 20, (2 << 20) + 1):
                fails('ENXIO', os.lseek, fd, place, kind)
        data = os.lseek(fd, 0, os.SEEK_DATA)
        check(0 <= data <= 1 << 20, f'data at {data}')
        hole = os.lseek(fd, 1 << 20, os.SEEK_HOLE)
        check((1 << 20) + PAGE <= hole <= 2 << 20, f'hole at {hole}')
        check(code(os.lseek, fd, (1 << 20) + 8192, os.SEEK_DATA) in ('', 'ENXIO'))
        fails('EINVAL', os.lseek, fd, -1, os.SEEK_SET)
        sh_ok('timeout 20 cp --sparse=auto f g && cmp f g')
        v.cold()
        fd = os.open('f', os.O_RDWR)


@case(mounted=True)
def seek_finds_real_holes(v):
    """Holes are reported as such at page precision, on dirty and on durable data."""
    fd = create('f')
    os.ftruncate(fd, 1 << 20)
    os.pwrite(fd, b'a' * PAGE, 10 * PAGE)
    os.pwrite(fd, b'b' * PAGE, 50 * PAGE)
    for _ in range(2):
        equal(os.lseek(fd, 0, os.SEEK_HOLE), 0, 'first hole')
        equal(os.lseek(fd, 0, os.SEEK_DATA) // PAGE, 10, 'first data page')
        equal(os.lseek(fd, 10 * PAGE, os.SEEK_HOLE) // PAGE, 11, 'second hole page')
        equal(os.lseek(fd, 11 * PAGE, os.SEEK_DATA) // PAGE, 50, 'second data page')
        fails('ENXIO', os.lseek, fd, 51 * PAGE, os.SEEK_DATA)
        os.close(fd)
        v.cold()
        fd = os.open('f', os.O_RDWR)


def seek_walks_many_runs_in_linear_time(v):
    """A program that asks for each of 20 000 runs of data and holes is done in seconds, and gets
    each of them."""
    count = 20000
    fd = create('f')
    for i in range(count):
        os.pwrite(fd, b'run', 2 * PAGE * i)
    os.ftruncate(fd, 2 * PAGE * count)
    os.fsync(fd)
    begin, at = time.monotonic(), 0
    for i in range(count):
        at = os.lseek(fd, at, os.SEEK_DATA)
        equal(at // PAGE, 2 * i, 'data')
        at = os.lseek(fd, at, os.SEEK_HOLE)
        equal(-(-at // PAGE), 2 * i + 1, 'hole')
    fails('ENXIO', os.lseek, fd, at, os.SEEK_DATA)
    took = time.monotonic() - begin
    check(took < 30, f'{took:.0f} s')  # some 2 s; with the square of the runs 10 minutes


def seek_finds_fresh_data(v):
    """Data that was written a moment ago is data, not a hole; a sparse-aware copy of it is
    equal."""
    for i in range(60):
        fd = create(f'f{i}')
        os.write(fd, b'q' * 65536)
        equal(os.lseek(fd, 0, os.SEEK_DATA), 0, f'file {i}')
        os.close(fd)
    writer = python(
        'import os\nfor i in range(40):\n open("w%d"%i,"wb").write(b"q"*99999)\n open("ok%d"%i,"w")'
    )
    equal(writer.wait(), 0)
    sh_ok('for i in $(seq 0 39); do cp --sparse=auto w$i c$i && cmp w$i c$i || exit 1; done')


def fallocate_grows(v):
    """Mode 0 extends the size with zeros and leaves bytes alone; KEEP_SIZE does not extend."""
    fd = create('f')
    os.write(fd, b'abc')
    if supported(fallocate, fd, 0, 1, 100_000):
        equal(os.fstat(fd).st_size, 100_001)
        equal(get('f'), b'abc' + bytes(99_998))
    if supported(fallocate, fd, FALLOC_KEEP_SIZE, 0, 1 << 20):
        equal(os.fstat(fd).st_size, 100_001, 'size after KEEP_SIZE')
    os.posix_fallocate(fd, 200_000, 10)
    equal(os.fstat(fd).st_size, 200_010, 'posix_fallocate')
    v.cold()
    equal(get('f'), b'abc' + bytes(200_007), 'after a remount')


def fallocate_punches(v):
    """PUNCH_HOLE zeros exactly its range, keeps the size, and works on dirty and on durable
    data."""
    data = os.urandom(100_000)
    for cold in (False, True):
        put('f', data)
        if cold:
            v.cold()
        fd = os.open('f', os.O_RDWR)
        if not supported(fallocate, fd, PUNCH, 5000, 60_000):
            raise Skip('not supported')
        want = data[:5000] + bytes(60_000) + data[65_000:]
        equal(get('f'), want)
        fallocate(fd, PUNCH, 99_990, 5000)
        want = want[:99_990] + bytes(10)
        equal(get('f'), want, 'across the end')
        os.close(fd)
        v.cold()
        equal(get('f'), want, 'after a remount')


@case(mounted=True)
def fallocate_punch_gives_space_back(v):
    """A punched range is a hole for SEEK_DATA and no longer counts in st_blocks."""
    put('f', os.urandom(8 << 20))
    before = os.stat('f').st_blocks
    fd = os.open('f', os.O_RDWR)
    fallocate(fd, PUNCH, 1 << 20, 6 << 20)
    os.fsync(fd)
    check(
        os.fstat(fd).st_blocks <= before - (5 << 20) // 512,
        f'{before} blocks, then {os.fstat(fd).st_blocks}',
    )
    equal(os.lseek(fd, 0, os.SEEK_HOLE), 1 << 20)
    equal(os.lseek(fd, 1 << 20, os.SEEK_DATA), 7 << 20)


def fallocate_zeroes(v):
    """ZERO_RANGE zeros its range and extends the size unless KEEP_SIZE forbids it."""
    data = os.urandom(20_000)
    put('f', data)
    fd = os.open('f', os.O_RDWR)
    if not supported(fallocate, fd, FALLOC_ZERO_RANGE, 100, 9000):
        raise Skip('not supported')
    fallocate(fd, FALLOC_ZERO_RANGE | FALLOC_KEEP_SIZE, 19_000, 50_000)
    want = data[:100] + bytes(9000) + data[9100:19_000] + bytes(1000)
    equal(get('f'), want)
    fallocate(fd, FALLOC_ZERO_RANGE, 19_500, 10_000)
    equal(get('f'), want + bytes(9500))


def fallocate_never_lies(v):
    """COLLAPSE, INSERT and wrong arguments change the file as asked or fail and change nothing."""
    data = os.urandom(64 * PAGE)
    put('f', data)
    fd = os.open('f', os.O_RDWR)
    if code(fallocate, fd, FALLOC_COLLAPSE_RANGE, PAGE, 4 * PAGE) == '':
        data = data[:PAGE] + data[5 * PAGE :]
    equal(get('f'), data, 'COLLAPSE_RANGE')
    if code(fallocate, fd, FALLOC_INSERT_RANGE, PAGE, 4 * PAGE) == '':
        data = data[:PAGE] + bytes(4 * PAGE) + data[PAGE:]
    equal(get('f'), data, 'INSERT_RANGE')
    fails('EINVAL EOPNOTSUPP', fallocate, fd, FALLOC_PUNCH_HOLE, 0, PAGE)
    fails('EINVAL', fallocate, fd, 0, 0, 0)
    fails('EINVAL', fallocate, fd, 0, -1, 10)
    fails('EFBIG EINVAL', fallocate, fd, 0, 2**63 - 10, 9)
    fails('EBADF', fallocate, os.open('f', os.O_RDONLY), 0, 0, 10)
    equal(get('f'), data, 'content after refused calls')


def fallocate_respects_file_size_limit(v):
    """RLIMIT_FSIZE holds for fallocate: EFBIG and no growth."""

    def child():
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
        fd = create('f')
        fails('EFBIG EOPNOTSUPP', fallocate, fd, 0, 0, 20_000)

    in_child(child)
    equal(os.stat('f').st_size, 0)


def copy_range_between_files(v):
    """copy_file_range moves exactly the asked bytes at any alignment; at the end of the source it
    is 0."""
    data = os.urandom(1 << 20)
    put('f', data)
    source, target = os.open('f', os.O_RDONLY), create('g')
    done = 0
    while done < len(data):
        n = os.copy_file_range(source, target, len(data) - done, done, done + 4097)
        check(0 < n <= len(data) - done, f'copied {n}')
        done += n
    equal(get('g'), bytes(4097) + data)
    equal(os.copy_file_range(source, target, 10, 1 << 20), 0, 'at the end')
    sh_ok('cp --reflink=auto f h && cmp f h')
    v.cold()
    equal(get('g'), bytes(4097) + data, 'after a remount')


def copy_range_sees_dirty_bytes(v):
    """A range copy takes the newest bytes of the source and covers unwritten ones of the target."""
    put('f', b'old' * 10_000)
    put('g', b'G' * 40_000)
    v.cold()
    source, target = os.open('f', os.O_RDWR), os.open('g', os.O_RDWR)
    os.pwrite(source, b'NEW', 6000)
    os.pwrite(target, b'T' * 100, 7000)
    equal(os.copy_file_range(source, target, 9000, 3000, 5000), 9000)
    want = bytearray(b'G' * 40_000)
    copy = bytearray(b'old' * 10_000)
    copy[6000:6003] = b'NEW'
    want[5000:14_000] = copy[3000:12_000]
    equal(get('g'), bytes(want))
    os.pwrite(source, b'later', 3500)
    equal(get('g'), bytes(want), 'a later write to the source does not reach the copy')
    v.cold()
    equal(get('g'), bytes(want), 'after a remount')


def copy_range_inside_one_file(v):
    """Inside one file disjoint ranges are copied and overlapping ones are EINVAL."""
    data = os.urandom(100_000)
    put('f', data)
    fd = os.open('f', os.O_RDWR)
    equal(os.copy_file_range(fd, fd, 30_000, 0, 50_000), 30_000)
    fails('EINVAL', os.copy_file_range, fd, fd, 1000, 0, 500)
    equal(get('f'), data[:50_000] + data[:30_000] + data[80_000:])


def copy_range_keeps_holes_and_ends(v):
    """Holes of the source are zeros in the copy, also over old bytes; a short source ends the
    copy."""
    fd = create('f')
    os.pwrite(fd, b'x', 50_000)
    put('g', b'G' * 100_000)
    target = os.open('g', os.O_RDWR)
    equal(os.copy_file_range(fd, target, 90_000, 0, 10_000), 50_001)
    equal(get('g'), b'G' * 10_000 + bytes(50_000) + b'x' + b'G' * 39_999)


def copy_range_survives_its_source(v):
    """A copy stays whole when the source is rewritten, truncated and removed."""
    data = os.urandom(500_000)
    put('f', data)
    sh_ok('cp --reflink=auto f g')
    put('f', os.urandom(500_000))
    os.truncate('f', 10)
    os.unlink('f')
    v.cold()
    equal(get('g'), data)


@case(mounted=True, timeout=180)
def copy_range_longer_than_four_gibibytes(v):
    """A range of 5 GiB is copied whole: no 32-bit length anywhere."""
    fd = create('f')
    places = [0, (4 << 30) - 1, (5 << 30) - 1]
    for i, place in enumerate(places):
        os.pwrite(fd, bytes([65 + i]), place)
    target, done = create('g'), 0
    while done < 5 << 30:
        n = os.copy_file_range(fd, target, (5 << 30) - done, done, done)
        check(0 < n <= (5 << 30) - done, f'copied {n}')
        done += n
    equal(os.stat('g').st_size, 5 << 30, 'size')
    for i, place in enumerate(places):
        equal(os.pread(target, 1, place), bytes([65 + i]), f'at {place}')


def copy_range_to_another_file_system(v):
    """To and from another file system bytes arrive or the call says EXDEV."""
    data = os.urandom(200_000)
    put('f', data)
    other = f'/dev/shm/kvsyncfs-copy-{os.getpid()}'
    out = os.open(other, os.O_CREAT | os.O_RDWR, 0o600)
    os.unlink(other)
    source = os.open('f', os.O_RDONLY)
    if code(os.copy_file_range, source, out, 1, 0, 0) == '':
        done = 0
        while done < len(data):
            done += os.copy_file_range(source, out, len(data) - done, done, done)
        equal(os.pread(out, 300_000, 0), data)
    os.lseek(source, 0, os.SEEK_SET)
    os.lseek(out, 0, os.SEEK_SET)
    os.ftruncate(out, 0)
    while os.sendfile(out, source, None, 1 << 20):
        pass
    equal(os.pread(out, 300_000, 0), data, 'sendfile out')
    target = create('g')
    os.lseek(out, 0, os.SEEK_SET)
    while os.sendfile(target, out, None, 1 << 20):
        pass
    equal(get('g'), data, 'sendfile in')


def splice_through_a_pipe(v):
    """splice moves bytes out of a file and into another one unchanged."""
    data = os.urandom(300_000)
    put('f', data)
    source, target = os.open('f', os.O_RDONLY), create('g')
    reader, writer = os.pipe()
    while True:
        n = os.splice(source, writer, 65536)
        if n == 0:
            break
        while n:
            n -= os.splice(reader, target, n)
    equal(get('g'), data)
    v.cold()
    equal(get('g'), data, 'after a remount')


@case(mounted=True)
def statfs_moves_with_data(v):
    """df is sane and its used space grows by what is written and shrinks after a delete."""

    def used():
        os.sync()
        s = os.statvfs('.')
        check(s.f_frsize > 0 and s.f_blocks >= s.f_bfree >= s.f_bavail >= 0, str(s))
        check(s.f_files >= s.f_ffree > 0, str(s))
        equal(s.f_namemax, 255)
        return (s.f_blocks - s.f_bfree) * s.f_frsize

    before = used()
    put('f', os.urandom(32 << 20))
    grown = used() - before
    check(24 << 20 < grown < 64 << 20, f'used grew by {grown} for {32 << 20}')
    check(0 < os.stat('f').st_blocks * 512 <= 40 << 20, f'{os.stat("f").st_blocks} blocks')
    os.unlink('f')
    # The kernel forgets a deleted file in its own time, and only then its bytes go.
    wait_until(lambda: used() - before < 8 << 20, 10, 'space of the deleted file')


@case(mounted=True)
def statfs_counts_inodes(v):
    """Creating and deleting over and over returns inodes and space to where they were."""

    def state():
        s = os.statvfs('.')
        return s.f_files - s.f_ffree, (s.f_blocks - s.f_bfree) * s.f_frsize

    inodes, used = state()
    for _ in range(20):
        for i in range(100):
            put(f'n{i}', b'x' * 100)
        check(state()[0] >= inodes + 100, 'used inodes do not grow')
        for i in range(100):
            os.unlink(f'n{i}')
    equal(state()[0], inodes, 'used inodes')
    check(state()[1] <= used + (4 << 20), 'space did not come back')

"""Time stamps: what moves them, what must not, and which values they hold."""
import os
import stat
import time

from support import (
    NOBODY,
    Skip,
    as_user,
    case,
    check,
    code,
    create,
    equal,
    fails,
    get,
    put,
    sh_ok,
)

SECOND = 10**9


def _clock_ticks():
    """Lets the kernel's coarse clock, which file times come from, move on."""
    time.sleep(0.02)


def _moves(path, attribute, action):
    before = getattr(os.lstat(path), attribute)
    _clock_ticks()
    action()
    return getattr(os.lstat(path), attribute) > before


def utimens_survives_close(v):
    """A time set on an open, written descriptor stays: no later flush or close stamps its own."""
    fd = create('f')
    os.write(fd, b'd' * 997)
    os.utime(fd, ns=(10**18 + 5, 10**18 + 7))
    os.close(fd)
    for _ in range(6):
        equal(os.stat('f').st_mtime_ns, 10**18 + 7)
        time.sleep(0.4)
    v.cold()
    equal(os.stat('f').st_mtime_ns, 10**18 + 7, 'after a remount')


def utimens_survives_background_flush(v):
    """A time set by name on a file just written stays through the asynchronous flush of its
    bytes."""
    put('f', b'd\n')
    sh_ok('touch -m -d 2020-01-15T12:34:56Z f')
    want = os.stat('f').st_mtime_ns
    for _ in range(25):
        equal(os.stat('f').st_mtime_ns, want)
        time.sleep(0.1)


def utimens_copies_keep_times(v):
    """cp -p and tar keep the modification time, at once and after a remount."""
    put('f', b'x' * 10_000)
    os.utime('f', ns=(1_234_567_890_123_456_789, 987_654_321_987_654_321))
    sh_ok('cp -p f g; tar cf t f; mkdir x; tar xpf t -C x')
    for _ in range(2):
        equal(os.stat('g').st_mtime_ns, 987_654_321_987_654_321)
        equal(os.stat('x/f').st_mtime_ns // SECOND, 987_654_321)
        v.cold()


def birth_time_is_shown_and_stays(v):
    """statx tells when a file was made, and no change, rename or remount moves that; what else it
    tells then is what stat tells."""
    before = time.time()
    put('f', b'12345')
    os.mkdir('d')
    if tuple(int(part) for part in os.uname().release.split('.')[:2]) < (6, 6):
        raise Skip('kernels before 6.6 do not ask for birth times')
    born = sh_ok('stat -c %.9W f d').split()
    for stamp in born:
        check(before - 1 <= float(stamp) <= time.time() + 1, f'{stamp}, made after {before}')
    os.utime('f', (1, 1))
    put('f', b'more', 'ab')
    os.chmod('f', 0o640)
    os.rename('f', 'd/g')
    for moment in ('at once', 'after a remount'):
        equal(sh_ok('stat -c %.9W d/g d').split(), born, moment)
        seen = os.stat('d/g')
        shown = sh_ok('stat -c "%s %a %h %i %b %Y %W" d/g').split()[:6]
        want = (seen.st_size, 640, 1, seen.st_ino, seen.st_blocks, int(seen.st_mtime))
        equal(shown, [str(value) for value in want], moment)
        v.cold()
    os.mknod('c', 0o644 | stat.S_IFCHR, os.makedev(1, 3))
    equal(sh_ok('stat -c "%F %t %T %W" c').split()[:5], ['character', 'special', 'file', '1', '3'])


def utimens_omit(v):
    """UTIME_OMIT leaves the other stamp alone; UTIME_NOW is now."""
    put('f')
    os.utime('f', (10**9, 10**9))
    sh_ok('touch -a f')
    equal(os.stat('f').st_mtime, 10**9)
    check(abs(os.stat('f').st_atime - time.time()) < 60)
    os.utime('f', (10**9, 10**9))
    sh_ok('touch -m f')
    equal(os.stat('f').st_atime, 10**9)
    check(abs(os.stat('f').st_mtime - time.time()) < 60)


def utimens_range(v):
    """Times hold nanoseconds, the epoch, dates before 1970 and after 2038 and 2106."""
    put('f')
    for ns in (
        0,
        -86400 * SECOND,
        1,
        SECOND - 1,
        1_123_456_789,
        -1,
        -SECOND * 2**31,
        SECOND * 2**31 + 5,
        SECOND * 2**32 + 7,
        SECOND * (2**33) + 999_999_999,
    ):
        os.utime('f', ns=(ns, ns))
        equal((os.stat('f').st_mtime_ns, os.stat('f').st_atime_ns), (ns, ns))
        if ns in (-1, SECOND * 2**32 + 7):
            v.cold()
            equal(os.stat('f').st_mtime_ns, ns, 'after a remount')


def utimens_permission(v):
    """Setting to now needs write permission or ownership, setting another time needs ownership."""
    os.chmod('.', 0o755)
    put('theirs')
    os.chmod('theirs', 0o666)
    put('closed')
    os.chmod('closed', 0o644)
    put('own')
    os.chown('own', NOBODY, NOBODY)
    os.chmod('own', 0o444)

    def child():
        os.utime('theirs')
        fails('EPERM', os.utime, 'theirs', (5, 5))
        fails('EACCES', os.utime, 'closed')
        fails('EPERM', os.utime, 'closed', (5, 5))
        os.utime('own', (5, 5))

    as_user(child)
    equal(os.stat('own').st_mtime, 5)


def times_move_with_data(v):
    """write and truncate move mtime and ctime; a read, a close and an fsync move neither."""
    put('f', b'abc')
    for action in (
        lambda: put('f', b'+', 'ab'),
        lambda: os.truncate('f', 1),
        lambda: os.truncate('f', 100),
    ):
        check(_moves('f', 'st_mtime_ns', action), 'mtime')
        check(_moves('f', 'st_ctime_ns', action), 'ctime')
    fd = os.open('f', os.O_RDWR)
    os.pwrite(fd, b'z', 0)
    stamp = os.fstat(fd)
    _clock_ticks()
    os.pread(fd, 10, 0)
    os.fsync(fd)
    os.close(fd)
    v.cold()
    equal(
        (os.stat('f').st_mtime_ns, os.stat('f').st_ctime_ns),
        (stamp.st_mtime_ns, stamp.st_ctime_ns),
        'mtime, ctime',
    )


def ctime_moves_with_attributes(v):
    """chmod, chown, link, unlink of another name, rename and setxattr move ctime and not mtime."""
    put('f')
    mtime = os.stat('f').st_mtime_ns
    changes = [
        lambda: os.chmod('f', 0o600),
        lambda: os.chown('f', 1, 1),
        lambda: os.link('f', 'g'),
        lambda: os.unlink('g'),
        lambda: os.utime('f', ns=(1, mtime)),
    ]
    if code(os.setxattr, 'f', 'user.probe', b'') == '':
        changes += [lambda: os.setxattr('f', 'user.k', b'v'), lambda: os.removexattr('f', 'user.k')]
    for i, change in enumerate(changes):
        check(_moves('f', 'st_ctime_ns', change), f'change {i} left ctime')
        equal(os.stat('f').st_mtime_ns, mtime, f'change {i} moved mtime')
    before = os.stat('f').st_ctime_ns
    _clock_ticks()
    os.rename('f', 'h')
    check(os.stat('h').st_ctime_ns > before, 'rename left ctime')


def directory_times_move_with_entries(v):
    """Every change of its entries moves a directory's mtime and ctime; a change inside a file
    does not."""
    os.mkdir('d')
    os.mkdir('e')
    put('d/f')
    actions = [
        lambda: put('d/a'),
        lambda: os.mkdir('d/m'),
        lambda: os.symlink('x', 'd/s'),
        lambda: os.link('d/a', 'd/b'),
        lambda: os.mkfifo('d/p'),
        lambda: os.rename('d/a', 'd/c'),
        lambda: os.unlink('d/c'),
        lambda: os.rmdir('d/m'),
        lambda: os.rename('d/b', 'e/b'),
        lambda: os.rename('e/b', 'd/b'),
    ]
    for i, action in enumerate(actions):
        before = os.stat('d')
        _clock_ticks()
        action()
        check(os.stat('d').st_mtime_ns > before.st_mtime_ns, f'action {i} left mtime')
        check(os.stat('d').st_ctime_ns > before.st_ctime_ns, f'action {i} left ctime')
    check(
        not _moves('d', 'st_mtime_ns', lambda: put('d/f', b'more', 'ab')),
        'a write inside moved mtime',
    )
    before = os.stat('d').st_mtime_ns
    v.cold()
    equal(os.stat('d').st_mtime_ns, before, 'after a remount')


def failed_calls_move_no_time(v):
    """A refused operation leaves all times of file and directory alone."""
    put('f')
    os.mkdir('d')
    stamps = [(os.stat(p).st_mtime_ns, os.stat(p).st_ctime_ns) for p in ('.', 'f', 'd')]
    _clock_ticks()
    fails('EEXIST', os.mkdir, 'd')
    fails('ENOENT', os.unlink, 'missing')
    fails('ENOTDIR', os.rmdir, 'f')
    fails('EEXIST', os.link, 'f', 'd')
    fails('EINVAL', os.rename, 'd', 'd/x')
    equal([(os.stat(p).st_mtime_ns, os.stat(p).st_ctime_ns) for p in ('.', 'f', 'd')], stamps)


def atime_is_relatime(v):
    """A read moves an atime that is not newer than mtime."""
    put('f', b'data')
    now = time.time()
    os.utime('f', (now - 3 * 86400, now - 2 * 86400))
    get('f')
    v.cold()
    check(os.stat('f').st_atime > now - 3600, 'atime did not move')


@case(mounted=True)
def atime_stays_with_noatime(v):
    """Mounted with noatime a read moves nothing."""
    put('f', b'data')
    os.utime('f', (5, 10))
    v.cold(v.options + ',noatime')
    get('f')
    v.cold(v.options + ',noatime')
    equal(os.stat('f').st_atime, 5)


def times_are_the_clock_of_the_machine(v):
    """Stamps of consecutive events are in the order of the events and never in the future."""
    for i in range(50):
        put(f'f{i}')
    stamps = [os.stat(f'f{i}').st_mtime_ns for i in range(50)]
    equal(stamps, sorted(stamps))
    check(stamps[-1] <= time.time_ns(), 'a file from the future')
    put('Makefile', b'obj: src\n\tcp src obj\n')
    put('src')
    sh_ok('if command -v make >/dev/null; then sleep 0.02; make -s && make -q; fi')

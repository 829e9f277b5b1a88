"""What the conformance cases share: checks, small file helpers, other users, raw system calls."""
import ctypes
import errno
import mmap
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

LIBC = ctypes.CDLL(None, use_errno=True)
NOBODY = 65534
PAGE = 4096
AT_FDCWD = -100
CLONE_NEWNS = 0x20000
NAMES = {errno.EOPNOTSUPP: 'EOPNOTSUPP', errno.EDEADLK: 'EDEADLK', errno.EAGAIN: 'EAGAIN'}

FALLOC_KEEP_SIZE, FALLOC_PUNCH_HOLE, FALLOC_COLLAPSE_RANGE = 1, 2, 8
FALLOC_ZERO_RANGE, FALLOC_INSERT_RANGE = 16, 32
RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_WHITEOUT = 1, 2, 4


class Skip(Exception):
    """The case cannot say anything here."""


def case(**settings):
    """Settings of a case: mounted (needs a real mount), mount (False: starts unmounted), timeout,
    size (of the store), options (added mount options), check (False: no orderly end is expected).
    """

    def mark(function):
        function.settings = settings
        return function

    return mark


def check(condition, message='does not hold'):
    if not condition:
        raise AssertionError(message)


def short(value):
    text = repr(value)
    return text if len(text) < 200 else f'{text[:120]}...{text[-60:]} ({len(text)})'


def equal(got, want, what=''):
    if got != want:
        where = ''
        if isinstance(got, (bytes, bytearray)) and isinstance(want, (bytes, bytearray)):
            at = next(
                (i for i, (a, b) in enumerate(zip(got, want)) if a != b), min(len(got), len(want))
            )
            where = f' first difference at {at}, lengths {len(got)} and {len(want)};'
            got, want = got[at : at + 24], want[at : at + 24]
        raise AssertionError(f'{what}:{where} got {short(got)}, want {short(want)}')


def code(function, *args, **kwargs):
    """errno of a call, by name; '' if it succeeds."""
    try:
        function(*args, **kwargs)
        return ''
    except OSError as error:
        return NAMES.get(error.errno) or errno.errorcode.get(error.errno, str(error.errno))


def fails(names, function, *args, **kwargs):
    """The call fails with one of the errno names (separated by blanks)."""
    got = code(function, *args, **kwargs)
    check(
        got in names.split(),
        f'{function.__name__}{short(args)}: got {got or "success"}, want {names}',
    )


def put(path, data=b'x', mode='wb'):
    with open(path, mode) as file:
        file.write(data)


def get(path):
    with open(path, 'rb') as file:
        return file.read()


def create(path, flags=0, mode=0o644):
    return os.open(path, os.O_CREAT | os.O_RDWR | flags, mode)


def sh(script, timeout=60, **kwargs):
    return subprocess.run(
        ['bash', '-c', script],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        stdin=subprocess.DEVNULL,
        **kwargs,
    )


def sh_ok(script, timeout=60, **kwargs):
    done = sh(script, timeout, **kwargs)
    check(
        done.returncode == 0,
        f'`{script}`: exit {done.returncode}: {done.stdout[-500:]} {done.stderr[-500:]}',
    )
    return done.stdout


def needs(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Skip(program + ' is not installed')


def python(script, *args, **kwargs):
    """Starts a Python program in the current folder."""
    return subprocess.Popen([sys.executable, '-c', script, *map(str, args)], **kwargs)


def all_end_well(processes, seconds=60):
    end = time.monotonic() + seconds
    codes = [p.wait(max(0.1, end - time.monotonic())) for p in processes]
    check(not any(codes), f'exit codes {codes}')


def in_child(function):
    """Runs `function` in a forked child; its exception comes back as a failed check."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            function()
            os._exit(0)
        except BaseException as error:  # pylint: disable=broad-except
            os.write(writer, f'{type(error).__name__}: {error}'.encode()[:3000])
            os._exit(1)
    os.close(writer)
    status = os.waitpid(pid, 0)[1]
    message = os.read(reader, 4000).decode(errors='replace')
    os.close(reader)
    check(status == 0, f'in a child: {message or status}')


def loud(done, *words):
    """A program failed with a code above 0 and one line on stderr that holds the words."""
    lines = [line for line in done.stderr.strip().splitlines() if 'warning' not in line]
    check(0 < done.returncode < 128, f'exit {done.returncode}, stderr {done.stderr!r}')
    equal(len(lines), 1, f'lines on stderr {lines}')
    for word in words:
        check(
            any(w.lower() in lines[0].lower() for w in word.split('|')),
            f'{lines[0]!r} does not name {word}',
        )


def sync_folder(path='.'):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def write_synced(path, data):
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
    os.write(fd, data)
    os.fsync(fd)
    os.close(fd)


def as_user(function, uid=NOBODY, gid=NOBODY, groups=()):
    """Runs `function` in a child without any privilege."""

    def child():
        os.setgroups(list(groups))
        os.setgid(gid)
        os.setuid(uid)
        function()

    in_child(child)


def threads(count, function):
    """Runs function(index) in `count` threads; the first error comes back."""
    errors = []

    def body(index):
        try:
            function(index)
        except BaseException as error:  # pylint: disable=broad-except
            errors.append(error)

    running = [threading.Thread(target=body, args=(i,)) for i in range(count)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if errors:
        raise errors[0]


def mode_of(path):
    return os.stat(path).st_mode & 0o7777


def libc(name, *args):
    """A libc call that fails with -1 and errno."""
    result = getattr(LIBC, name)(*args)
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def own_mounts(*kept):
    """Moves to a new mount namespace without its copies of mounts of other cases, which they would
    keep alive; those at `kept` stay."""
    libc('unshare', CLONE_NEWNS)
    kept = '|'.join(('none', *kept))
    sh_ok(
        'mount --make-rprivate / && findmnt -rno TARGET -t fuse.kvsyncfs |'
        f' grep -vxE "{kept}" | xargs -r umount -i -l'
    )


def fallocate(fd, mode, offset, length):
    return libc('fallocate', fd, mode, ctypes.c_int64(offset), ctypes.c_int64(length))


def renameat2(old, new, flags):
    return libc('renameat2', AT_FDCWD, os.fsencode(old), AT_FDCWD, os.fsencode(new), flags)


def supported(function, *args):
    """Calls it; False when it is refused as unsupported, which a program can fall back from."""
    got = code(function, *args)
    check(got in ('', 'EOPNOTSUPP', 'EINVAL'), f'{function.__name__}{short(args)}: {got}')
    return got == ''


def aligned(size):
    """Page aligned anonymous memory."""
    return mmap.mmap(-1, size)


class Dirent(ctypes.Structure):
    _fields_ = [
        ('ino', ctypes.c_uint64),
        ('offset', ctypes.c_int64),
        ('length', ctypes.c_ushort),
        ('kind', ctypes.c_ubyte),
        ('name', ctypes.c_char * 256),
    ]


class Stream:
    """A directory stream of libc: readdir, rewinddir, telldir, seekdir."""

    def __init__(self, path='.'):
        LIBC.opendir.restype = ctypes.c_void_p
        LIBC.readdir.restype = ctypes.POINTER(Dirent)
        LIBC.telldir.restype = ctypes.c_long
        self.handle = ctypes.c_void_p(LIBC.opendir(os.fsencode(path)))
        check(self.handle.value, f'opendir {path}: errno {ctypes.get_errno()}')

    def next(self):
        entry = LIBC.readdir(self.handle)
        return (entry.contents.name, entry.contents.ino, entry.contents.kind) if entry else None

    def rest(self):
        return list(iter(self.next, None))

    def names(self):
        return [name for name, _, _ in self.rest() if name not in (b'.', b'..')]

    def rewind(self):
        LIBC.rewinddir(self.handle)

    def tell(self):
        return LIBC.telldir(self.handle)

    def seek(self, place):
        LIBC.seekdir(self.handle, ctypes.c_long(place))

    def close(self):
        LIBC.closedir(self.handle)


class Alarm:
    """SIGALRM that interrupts a system call after `seconds`; the handler does nothing."""

    def __init__(self, seconds, raises=True):
        self.seconds, self.raises = seconds, raises

    def __enter__(self):
        def ring(*_):
            if self.raises:
                raise InterruptedError(errno.EINTR, 'alarm')

        self.old = signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, self.seconds)

    def __exit__(self, *_):
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.old)
        return False

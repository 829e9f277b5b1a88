"""The life of inodes, handles and requests: open but unlinked, forgotten, interrupted, many."""
import ctypes
import errno
import mmap
import os
import random
import resource
import signal
import struct
import time

from support import (
    FALLOC_KEEP_SIZE,
    FALLOC_PUNCH_HOLE,
    LIBC,
    PAGE,
    Alarm,
    Skip,
    aligned,
    all_end_well,
    case,
    check,
    create,
    equal,
    fails,
    fallocate,
    get,
    put,
    python,
    sh_ok,
    sync_folder,
    threads,
)
from volume import counter, drop_caches, wait_until


def unlinked_open_file_lives(v):
    """An open file without a name reads, writes, truncates, syncs, and its directory can be
    removed."""
    os.mkdir('d')
    fd = create('d/f')
    os.write(fd, b'live')
    os.unlink('d/f')
    equal(os.listdir('d'), [])
    os.rmdir('d')
    equal((os.pread(fd, 9, 0), os.fstat(fd).st_nlink), (b'live', 0))
    os.write(fd, b'!')
    os.ftruncate(fd, 2)
    os.fsync(fd)
    os.fchmod(fd, 0o600)
    os.utime(fd, (5, 5))
    again = os.open(f'/proc/self/fd/{fd}', os.O_RDWR)
    os.pwrite(again, b'more', 2)
    equal(os.pread(fd, 9, 0), b'limore')
    equal((os.fstat(fd).st_mode & 0o777, os.fstat(fd).st_size), (0o600, 6))


def unlinked_open_files_leave_nothing(v):
    """Create, unlink and close by six processes at once leaves no name of any kind."""
    os.mkdir('d')
    script = (
        'import os,sys\nfor i in range(500):\n n="d/%s-%d"%(sys.argv[1],i)\n'
        ' fd=os.open(n,os.O_CREAT|os.O_RDWR); os.write(fd,b"x"); os.unlink(n); os.close(fd)\n'
    )
    all_end_well([python(script, k) for k in range(6)])
    equal(os.listdir('d'), [])
    os.rmdir('d')
    equal([n for n in os.listdir('.') if n.startswith('.')], [])


@case(mounted=True)
def unlinked_open_file_gives_space_back(v):
    """The space of an unlinked file is used until the last close, then free without a remount."""

    def used():
        s = os.statvfs('.')
        return (s.f_blocks - s.f_bfree) * s.f_frsize

    before = used()
    fd = create('f')
    os.write(fd, os.urandom(32 << 20))
    os.fsync(fd)
    os.unlink('f')
    check(used() - before > 24 << 20, 'space was freed under an open handle')
    os.close(fd)
    wait_until(lambda: used() - before < 8 << 20, 10, 'free space after the last close')


@case(mounted=True)
def unlinked_open_file_is_reclaimed_after_a_crash(v):
    """An orphan of a killed daemon costs neither space nor an inode after the next mount."""
    s = os.statvfs('.')
    inodes, used = s.f_files - s.f_ffree, (s.f_blocks - s.f_bfree) * s.f_frsize
    fd = create('f')
    os.write(fd, os.urandom(32 << 20))
    os.fsync(fd)
    os.unlink('f')
    os.fsync(os.open('.', os.O_RDONLY))
    v.crash()
    s = os.statvfs('.')
    equal(os.listdir('.'), [])
    equal(s.f_files - s.f_ffree, inodes, 'inodes')
    check((s.f_blocks - s.f_bfree) * s.f_frsize - used < 8 << 20, 'space of the orphan')


def _resident(pid):
    with open(f'/proc/{pid}/statm', encoding='ascii') as fields:
        return int(fields.read().split()[1]) * 4096


@case(mounted=True, timeout=120)
def forgotten_inodes_are_released(v):
    """After create, stat, unlink and dropped caches the daemon holds no more inodes than before."""
    held = counter(v.stat(), 'held_inodes')
    check(held is not None, 'kvsyncfs-stat shows no held_inodes')
    for i in range(20_000):
        put(f'f{i}', b'')
        os.stat(f'f{i}')
    # Others may drop the machine's caches meanwhile; open files stay.
    handles = [os.open(f'f{i}', os.O_RDONLY) for i in range(500)]
    check(counter(v.stat(), 'held_inodes') >= held + 500, 'held_inodes does not count')
    for fd in handles:
        os.close(fd)
    for i in range(20_000):
        os.unlink(f'f{i}')
    drop_caches(2)
    wait_until(lambda: counter(v.stat(), 'held_inodes') <= held + 20, 20, 'forget of 20 000 inodes')


@case(mounted=True, timeout=120)
def forgotten_after_a_listing(v):
    """Entries that readdirplus looked up are forgotten as others are."""
    for i in range(5000):
        put(f'f{i}', b'')
    v.cold()
    held = counter(v.stat(), 'held_inodes')
    for _ in range(3):
        sh_ok('ls -l > /dev/null')
        drop_caches(2)
    wait_until(lambda: counter(v.stat(), 'held_inodes') <= held + 20, 20, 'forget after a listing')


@case(mounted=True, timeout=240, size='2G')
def memory_does_not_grow_with_inodes_seen(v):
    """Finding over 40 000 files again and again with dropped caches does not grow the daemon."""
    script = 'for d in $(seq 40); do mkdir d$d; (cd d$d; seq 1000 | xargs touch); done'
    sh_ok(script, timeout=120)
    sizes = []
    for _ in range(5):
        sh_ok('find . -type f -size +1 | wc -l', timeout=60)
        drop_caches(2)
        sizes.append(_resident(v.pid()))
    check(sizes[4] < sizes[0] * 1.2 + (8 << 20), f'resident bytes per round {sizes}')


@case(mounted=True)
def descriptors_do_not_leak(v):
    """Failing and ending operations leave the daemon with the descriptors it had."""
    folder = f'/proc/{v.pid()}/fd'
    put('f')
    os.mkdir('d')

    def work():
        for i in range(3000):
            fails('ENOENT', os.open, 'missing', os.O_RDONLY)
            os.listdir('d')
            fd = create(f'u{i}')
            os.unlink(f'u{i}')
            os.close(fd)
        return len(os.listdir(folder))

    # The first round starts what is started on demand: a connection of each worker thread.
    before = work()
    after = work()
    check(after <= before + 10, f'{before} descriptors, then {after}')


@case(mounted=True, mount=False, timeout=120)
def many_files_with_few_descriptors(v):
    """A daemon with a limit of 1024 descriptors serves 10 000 files, 2000 mappings and 1500 open
    files."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    v.format()

    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))

    v.mount(preexec_fn=few)
    os.chdir(v.mnt)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, limit[1]), limit[1]))
    sh_ok(
        'for d in $(seq 10); do mkdir d$d; (cd d$d; seq 1000 | xargs touch); done; find . | wc -l'
    )
    maps = []
    for i in range(1, 1001):
        put(f'd1/{i}', b'x' * 100)
        put(f'd2/{i}', b'y' * 100)
    for folder in (1, 2):
        for i in range(1, 1001):
            fd = os.open(f'd{folder}/{i}', os.O_RDONLY)
            maps.append(mmap.mmap(fd, 100, prot=mmap.PROT_READ))
            os.close(fd)
    equal({m[:1] for m in maps}, {b'x', b'y'})
    handles = [os.open(f'd1/{i % 1000 + 1}', os.O_RDWR) for i in range(1500)]
    equal({os.pread(fd, 1, 0) for fd in handles}, {b'x'})


def open_a_thousand_files(v):
    """1000 files are open, written and read at once."""
    handles = [create(f'f{i}') for i in range(1000)]
    for i, fd in enumerate(handles):
        os.write(fd, b'%d' % i)
    for i, fd in enumerate(handles):
        equal(os.pread(fd, 9, 0), b'%d' % i)


@case(mounted=True)
def killed_caller_is_served(v):
    """Processes killed with -9 in the middle of I/O end, and the mount answers on."""
    script = (
        'import os\nfd=os.open("f",os.O_CREAT|os.O_RDWR)\n'
        'while True:\n os.pwrite(fd,b"x"*(1<<20),0); os.fsync(fd); os.listdir(".")\n'
    )
    for _ in range(8):
        workers = [python(script) for _ in range(3)]
        time.sleep(0.1)
        for worker in workers:
            worker.kill()
        for worker in workers:
            worker.wait(10)
    put('after', b'ok')
    equal(get('after'), b'ok')


def signals_do_not_break_io(v):
    """A storm of signals leaves data whole: calls finish, are short, or say EINTR."""
    rounds = 300
    with Alarm(0.001, raises=False):
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        fd = create('f')
        for i in range(rounds):
            data = bytes([i % 251]) * 50_000
            done = 0
            while done < len(data):
                done += os.pwrite(fd, data[done:], i * 50_000 + done)
            os.fsync(fd)
    for i in range(rounds):
        equal(os.pread(fd, 50_000, i * 50_000), bytes([i % 251]) * 50_000, f'block {i}')


@case(timeout=180)
def stress_of_mixed_operations(v):
    """Eight threads with every kind of operation on few names: nothing hangs or ends in an odd
    errno."""
    allowed = {'ENOENT', 'EPERM', 'EEXIST', 'ENOTEMPTY', 'EISDIR', 'ENOTDIR', 'EINVAL', 'ELOOP'}
    allowed |= {'ENODATA'}

    def opened(path, action, flags=os.O_RDWR):
        fd = os.open(path, flags)
        try:
            action(fd)
        finally:
            os.close(fd)

    def worker(k):
        rng = random.Random(k)
        pick = lambda: '/'.join(rng.choice('abc') for _ in range(rng.randint(1, 3)))  # noqa: E731
        page, punch = aligned(PAGE), FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE

        def copy(source):
            opened(pick(), lambda target: os.copy_file_range(source, target, 9000, 0, 5000))

        actions = [
            lambda: os.mkdir(pick()),
            lambda: os.rmdir(pick()),
            lambda: os.unlink(pick()),
            lambda: os.rename(pick(), pick()),
            lambda: os.link(pick(), pick()),
            lambda: os.symlink('x', pick()),
            lambda: put(pick(), rng.randbytes(rng.randint(0, 20_000))),
            lambda: get(pick()),
            lambda: os.listdir(pick()),
            lambda: os.truncate(pick(), rng.randint(0, 30_000)),
            lambda: os.chmod(pick(), 0o700),
            lambda: os.stat(pick()),
            lambda: os.setxattr(pick(), 'user.a', rng.randbytes(9)),
            lambda: os.getxattr(pick(), 'user.a'),
            lambda: opened(pick(), os.fsync),
            lambda: opened(pick(), lambda fd: os.preadv(fd, [page], 0), os.O_RDONLY | os.O_DIRECT),
            lambda: opened(pick(), lambda fd: fallocate(fd, 0, 10_000, 20_000)),
            lambda: opened(pick(), lambda fd: fallocate(fd, punch, 3000, 9000)),
            lambda: opened(pick(), copy),
            lambda: sync_folder(),
        ]
        for _ in range(1200):
            try:
                rng.choice(actions)()
            except OSError as error:
                name = errno.errorcode[error.errno]
                if name not in allowed:
                    raise AssertionError(f'{error.strerror}: {error.filename}') from error

    threads(8, worker)
    sh_ok('rm -rf a b c x')
    equal(os.listdir('.'), [])


def file_handles_open_the_same_file(v):
    """A handle of name_to_handle_at opens that file again, or is refused; never another file."""
    put('f', b'mine')
    handle = ctypes.create_string_buffer(struct.pack('Ii', 128, 0) + bytes(128))
    mount_id = ctypes.c_int()
    arguments = (-100, b'f', handle, ctypes.byref(mount_id), 0)
    if LIBC.name_to_handle_at(*arguments) != 0:
        raise Skip(errno.errorcode[ctypes.get_errno()])

    def reopen():
        top = os.open('.', os.O_RDONLY)
        fd = LIBC.open_by_handle_at(top, handle, os.O_RDONLY)
        os.close(top)
        if fd < 0:
            return errno.errorcode[ctypes.get_errno()]
        data = os.pread(fd, 10, 0)
        os.close(fd)
        return data

    check(reopen() in (b'mine', 'ESTALE', 'ENOTSUP'), f'got {reopen()}')
    drop_caches(2)
    check(reopen() in (b'mine', 'ESTALE', 'ENOTSUP'), f'after dropped caches: {reopen()}')
    os.unlink('f')
    for i in range(50):
        put(f'g{i}', b'other')
    drop_caches(2)
    equal(reopen(), 'ESTALE', 'the handle of a removed file')

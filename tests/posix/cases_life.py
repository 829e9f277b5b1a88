"""The life of inodes, handles and requests: open but unlinked, forgotten, interrupted, many."""
import errno
import mmap
import os
import random
import resource
import signal
import subprocess
import time

from support import (
    Alarm,
    all_end_well,
    case,
    check,
    create,
    equal,
    fails,
    get,
    in_child,
    needs,
    put,
    python,
    sh,
    sh_ok,
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
    before = len(os.listdir(folder))
    for i in range(3000):
        fails('ENOENT', os.open, 'missing', os.O_RDONLY)
        os.listdir('d')
        fd = create(f'u{i}')
        os.unlink(f'u{i}')
        os.close(fd)
    after = len(os.listdir(folder))
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


@case(mounted=True)
def daemon_never_needs_its_own_mount(v):
    """With its home, temporary and working folder on the mount the daemon serves on."""
    cwd = v.leave()
    v.unmount()
    v.mount(env=dict(os.environ, HOME=v.mnt, TMPDIR=v.mnt + '/t'), cwd='/')
    v.enter(cwd)
    for _ in range(3):
        put('f', os.urandom(4 << 20))
        os.sync()
    equal(os.listdir('.'), ['f'])
    for link in os.listdir(f'/proc/{v.pid()}/fd'):
        try:
            target = os.readlink(f'/proc/{v.pid()}/fd/{link}')
        except OSError:
            continue
        check(not target.startswith(v.mnt), f'the daemon holds {target}')


@case(mounted=True)
def daemon_is_frozen_and_goes_on(v):
    """After SIGSTOP and SIGCONT the same handles work on."""
    fd = create('f')
    os.write(fd, b'before')
    # Started before: a child of this process would wait for the close of its copy of `fd`.
    script = 'import os,sys\nsys.stdin.readline()\nos.stat("new")'
    waiting = python(script, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    os.kill(v.pid(), signal.SIGSTOP)
    waiting.stdin.write(b'go\n')
    waiting.stdin.flush()
    time.sleep(1)
    equal(waiting.poll(), None, 'a frozen daemon answered')
    os.kill(v.pid(), signal.SIGCONT)
    equal(waiting.wait(20), 1)
    os.write(fd, b'after')
    equal(get('f'), b'beforeafter')


@case(mounted=True)
def daemon_killed_says_enotconn(v):
    """After kill -9 old handles and new calls fail at once; the mount can be lifted and made
    again."""
    put('f', b'kept')
    fd = os.open('f', os.O_RDWR)
    os.fsync(fd)
    os.kill(v.pid(), signal.SIGKILL)
    wait_until(lambda: v.pid() is None, 10, 'end of the daemon')
    in_child(lambda: fails('ENOTCONN ECONNABORTED EIO', os.write, fd, b'x'))
    in_child(lambda: fails('ENOTCONN', os.stat, v.mnt + '/unknown'))
    in_child(lambda: fails('ENOTCONN', os.open, v.mnt + '/new', os.O_CREAT))
    cwd = v.leave()
    v.detach()
    v.mount()
    v.enter(cwd)
    equal(get('f'), b'kept')


@case(mounted=True)
def connection_aborted_by_the_kernel(v):
    """An aborted connection ends all calls; the daemon leaves, and the store mounts again whole."""
    put('f', b'kept')
    fd = os.open('f', os.O_RDWR)
    os.fsync(fd)
    with open(v.connection() + '/abort', 'w', encoding='ascii') as knob:
        knob.write('1')
    in_child(lambda: fails('ENOTCONN ECONNABORTED', os.stat, v.mnt + '/unknown'))
    wait_until(lambda: v.pid() is None, 15, 'end of the daemon')
    cwd = v.leave()
    v.detach()
    v.mount()
    v.enter(cwd)
    equal(get('f'), b'kept')


def stress_of_mixed_operations(v):
    """Eight threads with every kind of operation on few names: nothing hangs or ends in an odd
    errno."""
    allowed = {'ENOENT', 'EPERM', 'EEXIST', 'ENOTEMPTY', 'EISDIR', 'ENOTDIR', 'EINVAL', 'ELOOP'}

    def worker(k):
        rng = random.Random(k)
        pick = lambda: '/'.join(rng.choice('abc') for _ in range(rng.randint(1, 3)))  # noqa: E731
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


@case(mounted=True)
def stacked_mounts_work(v):
    """A bind mount, a chroot and an overlay with its upper folder here work or are refused
    clearly."""
    put('f', b'data')
    os.mkdir('bind')
    sh_ok('mkdir src && echo x > src/y && mount --bind src bind && cat bind/y && umount bind')
    sh_ok('mkdir -p low up work over && echo l > low/f')
    if sh('mount -t overlay none -o lowerdir=low,upperdir=up,workdir=work over').returncode == 0:
        sh_ok('echo new > over/g; cat over/f over/g; umount over')
    needs('busybox')
    sh_ok(
        'mkdir -p root/bin && cp $(command -v busybox) root/bin/sh && chroot root /bin/sh -c'
        ' "echo in"'
    )


@case(mounted=True)
def busy_mount_keeps_its_users(v):
    """umount with an open handle is EBUSY; umount -l lets handles work on and the daemon ends
    after them."""
    fd = create('f')
    os.write(fd, b'one')
    os.chdir('/')
    check(
        subprocess.run(['umount', v.mnt], stderr=subprocess.DEVNULL, check=False).returncode != 0,
        'not busy',
    )
    check(v.mounted())
    daemon = v.pid()
    sh_ok(f'umount -l -i {v.mnt}')
    os.write(fd, b'two')
    equal(os.pread(fd, 9, 0), b'onetwo')
    os.close(fd)
    wait_until(lambda: v.pid() is None, 15, f'end of daemon {daemon}')
    v.mount()
    equal(get(v.mnt + '/t/f'), b'onetwo')

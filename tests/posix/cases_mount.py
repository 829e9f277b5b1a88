"""mount: exit codes, messages, readiness, locks; the signals of the daemon."""
import os
import re
import signal
import subprocess
import time

from support import (
    loud,
    NOBODY,
    Skip,
    case,
    check,
    code,
    equal,
    fails,
    get,
    own_mounts,
    python,
    put,
    sh,
    sh_ok,
)
from volume import process_alive, wait_until


@case(mounted=True, mount=False, check=False)
def mount_failures_are_loud(v):
    """Each failure, in background and foreground: exit above 0, one line that names the object,
    no mount."""
    unformatted, file, missing = v.root + '/empty', v.root + '/file', v.root + '/missing'
    os.mkdir(unformatted)
    put(file)
    v.format()
    rows = [
        ([unformatted, v.mnt], unformatted),
        ([missing, v.mnt], missing),
        ([v.store, missing], missing),
        ([v.store, file], file),
        ([v.store, v.mnt, '-o', 'blah'], 'blah'),
        ([file, v.mnt], file),
        ([v.store, v.mnt, '-o', 'cache_size=abc'], 'cache_size'),
        ([v.store, v.mnt, '-o', 'cache_size=64T'], 'option cache_size: 64.0 TiB'),
        ([v.store, v.mnt, '-o', 'write_buffer=64T'], 'option write_buffer: 64.0 TiB'),
        ([v.store, v.mnt, '-o', 'timeout=-5'], 'timeout'),
        ([v.store, v.mnt, '-o', 'log_level=shout'], 'log_level'),
    ]
    for words, name in rows:
        for extra in ([], ['-f']):
            done = v.tool('kvsyncfs', *words, *extra, timeout=20)
            loud(done, name)
            check(not v.mounted() and not v.pids(), f'{words} {extra}: something is left')
    v.mount()
    v.unmount()


@case(mounted=True, mount=False, check=False)
def lack_of_memory_is_one_clear_error(v):
    """A program that gets no memory for its cache says so in one line and fails; it dies by no
    signal."""
    v.format()
    rows = [
        (['kvsyncfs', v.store, v.mnt, '-o', 'cache_size=320M'], 250, 'cache_size of 320.0 MiB'),
        (['fsck.kvsyncfs', v.store], 70, 'cache_size of 64.0 MiB'),
    ]
    for (program, *words), mebibytes, name in rows:
        limited = f'ulimit -v {mebibytes << 10}; exec {v.tools[program]} '
        if sh(limited + '--version').returncode != 0:
            raise Skip('a build that needs more only to start')
        loud(sh(limited + ' '.join(words)), name)
        check(not v.mounted() and not v.pids(), f'{words}: something is left')
    v.mount()
    v.unmount()


@case(mounted=True, mount=False, check=False)
def lack_of_threads_is_one_clear_error(v):
    """A daemon that may not start its threads, or has no memory for their stacks, mounts with less
    or says so in one line; it dies by no signal."""
    v.format()
    words = f'{v.tools["kvsyncfs"]} {v.store} {v.mnt} -o cache_size=8M,write_buffer=4M'
    if sh(f'ulimit -v 400000; exec {v.tools["kvsyncfs"]} --version').returncode != 0:
        raise Skip('a build that needs more only to start')
    refused = 0
    for mebibytes in range(150, 420, 30):
        done = sh(f'ulimit -v {mebibytes << 10}; exec {words}')
        refused += done.returncode != 0
        if done.returncode:
            loud(done, 'memory|thread')
            check('Aborted' not in done.stderr, f'{mebibytes} MiB: {done.stderr}')
        else:
            v.unmount(check=False)
        check(not v.mounted(), f'{mebibytes} MiB: a mount is left')
        wait_until(lambda: not v.pids(), 20, 'end of the daemon')  # umount may not know of it
    check(refused, 'no limit was felt')


@case(mounted=True, mount=False, check=False)
def store_on_a_read_only_disk_is_named(v):
    """Where the disk of the store is read-only a mount, a repair and mkfs --force name it and the
    errno, never a lack of space, and leave nothing; a look by fsck works."""
    v.format()
    sh_ok(f'mount --bind {v.store} {v.store} && mount -o remount,bind,ro {v.store}')
    for program, *words in (
        ('kvsyncfs', v.store, v.mnt),
        ('fsck.kvsyncfs', '--repair', v.store),
        ('mkfs.kvsyncfs', '--force', v.store, '--size', v.size),
    ):
        loud(v.tool(program, *words), v.store, 'EROFS')
        check(not v.mounted() and not v.pids(), f'{program}: something is left')
    v.fsck()
    sh_ok(f'umount {v.store}')
    v.mount()
    v.unmount()


@case(mounted=True, mount=False, check=False)
def mount_without_device_or_rights_is_loud(v):
    """A missing /dev/fuse and a user without rights are named."""
    v.format()
    binary = v.tools['kvsyncfs']
    done = sh(
        'unshare -m bash -c "umount -i -l -a -t fuse.kvsyncfs; mount -t tmpfs none /dev && '
        'mknod -m 666 /dev/null c 1 3 && '
        f'exec {binary} {v.store} {v.mnt}"'
    )
    loud(done, '/dev/fuse|device')
    os.chmod(v.store, 0o700)
    done = subprocess.run(
        ['setpriv', f'--reuid={NOBODY}', '--clear-groups', binary, v.store, v.mnt],
        text=True,
        capture_output=True,
        timeout=20,
        check=False,
    )
    loud(done, 'permission|not permitted|EACCES|EPERM')
    check(not v.mounted())


@case(mounted=True)
def mount_of_a_mounted_store_is_refused(v):
    """A store has one daemon: a second one on another or the same mount point is refused loudly."""
    put('f', b'data')
    second = v.root + '/second'
    os.mkdir(second)
    loud(v.tool('kvsyncfs', v.store, second, timeout=20), v.store)
    loud(v.tool('kvsyncfs', v.store, v.mnt, timeout=20), f'{v.store}|{v.mnt}')
    equal(len(v.pids()), 1)
    equal(get('f'), b'data')


@case(mounted=True)
def mount_right_after_a_bare_umount(v):
    """A store that the kernel alone unmounted, without the helper that waits, is mounted again at
    once, and has everything."""
    for i in range(4):
        put(f'f{i}', os.urandom(8 << 20))
        want = get(f'f{i}')
        os.chdir('/')
        sh_ok(f'umount -i {v.mnt}')
        v.mount()
        os.chdir(v.mnt + '/t')
        equal(get(f'f{i}'), want)


@case(mounted=True, mount=False)
def mount_is_ready_on_return(v):
    """When the mount command returns 0 the very next call is served; its output pipes are
    closed."""
    v.format()
    for i in range(5):
        v.mount()
        put(f'{v.mnt}/f{i}', b'x')
        equal(len(os.listdir(v.mnt)), i + 1)
        v.unmount()


@case(mounted=True, mount=False)
def mount_by_fstab_words(v):
    """mount -t fuse.kvsyncfs with the generic words of fstab works; an unknown word is refused."""
    v.format()
    # As if installed, for this case alone: mount(8) looks only where programs are installed.
    own_mounts()
    sh_ok(f'mount --bind {v.root} /usr/local/sbin')
    os.symlink(v.tools['kvsyncfs'], v.root + '/kvsyncfs')
    words = (
        'defaults,_netdev,nofail,noauto,user,noatime,nodev,nosuid,noexec,'
        'x-systemd.automount,x-anything=1'
    )
    done = sh(f'mount -t fuse.kvsyncfs {v.store} {v.mnt} -o {words}')
    equal((done.returncode, done.stderr), (0, ''))
    check(v.mounted())
    flags = ' '.join(sh_ok('grep " %s " /proc/self/mounts' % v.mnt).split())
    for word in ('nodev', 'nosuid', 'noexec', 'noatime', 'fuse.kvsyncfs'):
        check(word in flags, f'{word} is not in {flags}')
    v.unmount()
    done = sh(f'mount -t fuse.kvsyncfs {v.store} {v.mnt} -o blah')
    check(done.returncode != 0 and 'blah' in done.stderr, done.stderr)
    table = v.root + '/fstab'
    put(table, f'{v.store} {v.mnt} fuse.kvsyncfs {words} 0 0\n'.encode())
    sh_ok(f'mount -T {table} {v.mnt}')
    put(v.mnt + '/f', b'x')
    v.unmount()


@case(mounted=True)
def mount_read_only(v):
    """With -o ro every change is EROFS, reading works, and the store is not changed by it."""
    put('f', b'data')
    os.mkdir('d')
    v.cold(v.options + ',ro')
    equal(get('f'), b'data')
    for call, args in (
        (os.mkdir, ('x',)),
        (os.unlink, ('f',)),
        (os.rmdir, ('d',)),
        (os.rename, ('f', 'g')),
        (os.chmod, ('f', 0o600)),
        (os.truncate, ('f', 0)),
        (os.utime, ('f', (1, 1))),
        (os.link, ('f', 'h')),
        (os.symlink, ('x', 'y')),
        (os.setxattr, ('f', 'user.k', b'')),
        (os.open, ('f', os.O_WRONLY)),
        (os.open, ('new', os.O_CREAT)),
    ):
        fails('EROFS', call, *args)
    v.cold()
    put('f', b'+', 'ab')
    equal(get('f'), b'data+')


@case(mounted=True)
def mount_remounted_read_only(v):
    """mount -o remount,ro refuses changes at once and remount,rw allows them again."""
    put('f', b'data')
    sh_ok(f'mount -i -o remount,ro {v.mnt}')
    fails('EROFS', os.open, 'new', os.O_CREAT)
    fails('EROFS', os.unlink, 'f')
    equal(get('f'), b'data')
    sh_ok(f'mount -i -o remount,rw {v.mnt}')
    put('f', b'+', 'ab')
    v.cold()
    equal(get('f'), b'data+')


@case(mounted=True, mount=False)
def mount_over_files_is_told(v):
    """A mount point with files in it is refused or told in one line; the files come back after
    umount."""
    v.format()
    put(v.mnt + '/hidden', b'h')
    done = v.mount(check=False)
    check(done.stderr.strip() or done.returncode, 'silently hidden')
    if done.returncode == 0:
        check(not os.path.exists(v.mnt + '/hidden'))
        v.unmount()
    equal(get(v.mnt + '/hidden'), b'h')


@case(mounted=True)
def mount_over_a_dead_mount(v):
    """After kill -9 the same mount command works again, or says in one line what to run."""
    put('f', b'data')
    os.fsync(os.open('f', os.O_RDONLY))
    daemon = v.pid()
    v.leave()
    os.kill(daemon, signal.SIGKILL)
    wait_until(lambda: not process_alive(daemon), 10, 'end of the daemon')
    done = v.mount(check=False, timeout=20)
    if done.returncode:
        loud(done, 'umount')
        v.detach()
        v.mount()
    equal(get(v.mnt + '/t/f'), b'data')
    equal(get('/run/mount/utab').decode().count(f'TARGET={v.mnt} '), 1)


@case(mounted=True)
def sigint_and_sigterm_leave_no_dead_mount(v):
    """Signalled with operations in flight the daemon ends in order and the next mount works."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        writer = python(
            (
                'import os\nwhile True:\n fd=os.open("w",os.O_CREAT|os.O_WRONLY)\n'
                ' os.write(fd,b"x"*300000)\n os.fsync(fd); os.close(fd)\n'
            ),
            stderr=subprocess.DEVNULL,
        )
        time.sleep(0.2)
        daemon = v.pid()
        cwd = v.leave()
        os.kill(daemon, number)
        wait_until(lambda d=daemon: not process_alive(d), 20, f'end after signal {number}')
        writer.kill()
        writer.wait()
        check(code(os.stat, v.mnt) == '', 'a dead mount is left')
        v.mount()
        v.enter(cwd)


@case(mounted=True, timeout=120)
def mounting_again_and_again_leaves_nothing(v):
    """20 times mount, write, umount: the store and the run folders do not grow after the first."""

    def state():
        size = int(sh_ok(f'du -sk --apparent-size {v.store}').split()[0])
        names = len(sh_ok(f'find {v.store}').split('\n'))
        return (
            size,
            names,
            sh('ls -R /run/kvsyncfs /tmp 2>/dev/null | grep -c "kvsyncfs.*sock"').stdout,
        )

    sizes = []
    for _ in range(20):
        put('f', os.urandom(10 << 20))
        cwd = v.leave()
        v.unmount()
        sizes.append(state())
        v.mount()
        v.enter(cwd)
    check(
        sizes[-1][0] <= sizes[4][0] + (100 << 10), f'kilobytes of the store {[s[0] for s in sizes]}'
    )
    check(sizes[-1][1] <= sizes[4][1] + 10, f'files of the store {[s[1] for s in sizes]}')
    equal(sizes[-1][2], sizes[0][2], 'sockets')


@case(mounted=True, mount=False, options='timeout=3', timeout=90)
def watchdog_is_not_a_hair_trigger(v):
    """A daemon that is slow because the machine is busy is not given up."""
    v.format()
    v.mount()
    os.chdir(v.mnt)
    burners = [python('while True: pass') for _ in range(6)]
    try:
        for i in range(30):
            put(f'f{i}', os.urandom(1 << 20))
        os.sync()
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
    equal(len(os.listdir('.')), 30)


@case(mounted=True, mount=False, check=False)
def help_says_what_the_man_page_says(v):
    """--help and kvsyncfs(8) name the same flags and options, and the same defaults."""
    text = v.tool('kvsyncfs', '--help', check=True).stdout
    page = get(os.path.join(os.path.dirname(__file__), '../../man/kvsyncfs.8')).decode()
    section = page[page.index('.Ss Mount options') : page.index('.Ss What is promised')]
    entries = {}  # the options of a line of the page, and what is said of them
    for entry in section.split('\n.It Cm ')[1:]:
        head, _, body = entry.partition('\n')
        words = re.findall(r'[a-z_]{2,}', head.partition(' Ns = ')[0])
        entries.update({word: body for word in words})
    listed = text[text.index('Options:') : text.index('Words of')]
    offered = re.findall(r'^  ([a-z_]+)[ =]', listed, re.M)
    for line in re.findall(r'^  ([a-z_]+(?:, [a-z_]+)+):', listed, re.M):
        offered += line.split(', ')
    equal(sorted(offered), sorted(entries))
    for name, value in {'write_buffer': '64M', 'timeout': '15', 'log_level': 'info'}.items():
        check(re.search(rf'The default is\s+(\.Cm )?{value}', entries[name]), f'{name} in the page')
        check(re.search(rf'^  {name}=.*\(default {value}\)', listed, re.M), f'{name} in --help')
    flags = page[page.index('.Bl -tag') : page.index('.Ss Mount options')]
    for flag in re.findall(r'^\.It Fl (?:. , Fl -)?([-\w]+)$', flags, re.M):
        check(re.search(rf'(^|\W)--?{flag.lstrip("-")}\W', text), f'--help does not name {flag}')

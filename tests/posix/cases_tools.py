"""mkfs, mount, umount: exit codes, messages, readiness, locks; the life of the daemon."""
import os
import signal
import subprocess
import time

from support import (
    LIBC,
    NOBODY,
    case,
    check,
    code,
    create,
    equal,
    fails,
    get,
    python,
    put,
    sh,
    sh_ok,
)
from volume import process_alive, wait_until


CLONE_NEWNS = 0x20000


def _loud(done, *words):
    """Failed with a code above 0 and one line on stderr that holds the words."""
    lines = [line for line in done.stderr.strip().splitlines() if 'warning' not in line]
    check(0 < done.returncode < 128, f'exit {done.returncode}, stderr {done.stderr!r}')
    equal(len(lines), 1, f'lines on stderr {lines}')
    for word in words:
        check(
            any(w.lower() in lines[0].lower() for w in word.split('|')),
            f'{lines[0]!r} does not name {word}',
        )


@case(mounted=True, mount=False)
def mkfs_refuses_what_is_there(v):
    """A formatted or non-empty folder is refused untouched without --force and made new with it."""
    v.format()
    v.mount()
    put(v.mnt + '/f', b'data')
    v.unmount()
    _loud(v.tool('mkfs.kvsyncfs', v.store, '--size', '256M'), v.store)
    v.mount()
    equal(get(v.mnt + '/f'), b'data')
    v.unmount()
    other = v.root + '/other'
    os.mkdir(other)
    put(other + '/precious', b'mine')
    _loud(v.tool('mkfs.kvsyncfs', other, '--size', '256M'), other)
    equal((os.listdir(other), get(other + '/precious')), (['precious'], b'mine'))
    v.format('--force')
    v.mount()
    equal(os.listdir(v.mnt), [])


@case(mounted=True)
def mkfs_refuses_a_mounted_store(v):
    """Also with --force a store in use is refused, and its mount goes on."""
    put('f', b'data')
    _loud(v.tool('mkfs.kvsyncfs', v.store, '--size', '256M', '--force'), v.store)
    put('g', b'more')
    v.cold()
    equal((get('f'), get('g')), (b'data', b'more'))


@case(mounted=True, mount=False, check=False)
def mkfs_refuses_nonsense(v):
    """Sizes that are no sizes or do not fit, bad labels, uuids, options and places: loud, nothing
    made."""
    for size in (
        '0',
        '-1',
        'abc',
        '10',
        '1e3x',
        '99999999T',
        '',
        '12Q',
        '1G1',
        '18446744073709551616',
    ):
        done = v.tool('mkfs.kvsyncfs', v.store, '--size', size)
        check(
            0 < done.returncode < 128 and done.stderr.strip(),
            f'--size {size!r}: exit {done.returncode}',
        )
        equal(os.listdir(v.store), [], f'--size {size!r}')
    for words in (['--uuid', 'nonsense'], ['--label', 'l' * 65], ['--nonsense'], ['extra']):
        done = v.tool('mkfs.kvsyncfs', v.store, '--size', '256M', *words)
        check(0 < done.returncode < 128 and done.stderr.strip(), f'{words}: exit {done.returncode}')
        equal(os.listdir(v.store), [], str(words))
    put(v.root + '/file')
    _loud(v.tool('mkfs.kvsyncfs', v.root + '/file', '--size', '256M'), '/file')
    done = v.tool('mkfs.kvsyncfs')
    check(0 < done.returncode < 128 and done.stderr.strip(), 'no argument')


@case(mounted=True, mount=False)
def mkfs_keeps_label_and_uuid(v):
    """Label and uuid given to mkfs are those of the mounted volume; without them uuids differ."""
    uuid = '12345678-9abc-4def-8123-456789abcdef'
    v.format('--label', 'my store', '--uuid', uuid)
    v.mount()
    document = v.stat()
    equal((document['uuid'], document['label']), (uuid, 'my store'))
    uuids = {uuid}
    for _ in range(2):
        v.unmount()
        v.format('--force')
        v.mount()
        uuids.add(v.stat()['uuid'])
    equal(len(uuids), 3, 'different uuids')


@case(mounted=True, mount=False, check=False)
def tools_tell_help_and_version(v):
    """--help and --version answer on stdout with 0 for every program; an unknown option is
    refused."""
    for name in v.tools:
        if name != 'umount.fuse.kvsyncfs':
            for word in ('--help', '--version'):
                done = v.tool(name, word)
                check(
                    done.returncode == 0 and done.stdout.strip(),
                    f'{name} {word}: {done.returncode} {done.stderr}',
                )
            done = v.tool(name, '--nonsense-option')
            check(
                0 < done.returncode < 128 and done.stderr.strip(),
                f'{name} --nonsense-option: {done.returncode}',
            )


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
        ([v.store, v.mnt, '-o', 'timeout=-5'], 'timeout'),
        ([v.store, v.mnt, '-o', 'log_level=shout'], 'log_level'),
    ]
    for words, name in rows:
        for extra in ([], ['-f']):
            done = v.tool('kvsyncfs', *words, *extra, timeout=20)
            _loud(done, name)
            check(not v.mounted() and not v.pids(), f'{words} {extra}: something is left')
    v.mount()
    v.unmount()


@case(mounted=True, mount=False, check=False)
def mount_without_device_or_rights_is_loud(v):
    """A missing /dev/fuse and a user without rights are named."""
    v.format()
    binary = v.tools['kvsyncfs']
    done = sh(
        'unshare -m bash -c "mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && '
        f'exec {binary} {v.store} {v.mnt}"'
    )
    _loud(done, '/dev/fuse|device')
    os.chmod(v.store, 0o700)
    done = subprocess.run(
        ['setpriv', f'--reuid={NOBODY}', '--clear-groups', binary, v.store, v.mnt],
        text=True,
        capture_output=True,
        timeout=20,
        check=False,
    )
    _loud(done, 'permission|not permitted|EACCES|EPERM')
    check(not v.mounted())


@case(mounted=True)
def mount_of_a_mounted_store_is_refused(v):
    """A store has one daemon: a second one on another or the same mount point is refused loudly."""
    put('f', b'data')
    second = v.root + '/second'
    os.mkdir(second)
    _loud(v.tool('kvsyncfs', v.store, second, timeout=20), v.store)
    _loud(v.tool('kvsyncfs', v.store, v.mnt, timeout=20), f'{v.store}|{v.mnt}')
    equal(len(v.pids()), 1)
    equal(get('f'), b'data')


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
    equal(LIBC.unshare(CLONE_NEWNS), 0)
    sh_ok(f'mount --make-rprivate / && mount --bind {v.root} /usr/local/sbin')
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
        _loud(done, 'umount')
        v.detach()
        v.mount()
    equal(get(v.mnt + '/t/f'), b'data')


@case(mounted=True)
def umount_waits_for_the_data(v):
    """When the umount helper returns the daemon is gone and the store may be mounted elsewhere at
    once."""
    data = os.urandom(40 << 20)
    put('f', data)
    v.leave()
    v.unmount()
    v.mnt = v.root + '/elsewhere'
    os.mkdir(v.mnt)
    v.mount()
    equal(get(v.mnt + '/t/f'), data)
    v.unmount()


@case(mounted=True)
def umount_of_a_busy_mount_tells(v):
    """A busy mount is refused with a message and stays whole; a lazy one ends after its last
    user."""
    fd = create('f')
    os.write(fd, b'one')
    done = v.unmount(check=False)
    check(
        done.returncode != 0 and 'busy' in done.stderr.lower(),
        f'exit {done.returncode}: {done.stderr!r}',
    )
    check(v.mounted())
    os.write(fd, b'two')
    v.leave()
    sh_ok(f'umount -i -l {v.mnt}')
    os.close(fd)
    wait_until(lambda: not v.pids(), 10, 'end of the daemon')
    v.mount()
    equal(get(v.mnt + '/t/f'), b'onetwo')


@case(mounted=True, mount=False)
def umount_of_nothing_is_loud(v):
    """Unmounting what is not mounted fails and names it."""
    v.format()
    done = v.unmount(check=False)
    check(
        0 < done.returncode < 128 and v.mnt in done.stderr,
        f'exit {done.returncode}: {done.stderr!r}',
    )


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


@case(mounted=True, mount=False, timeout=180)
def superblock_is_checked_before_use(v):
    """Each flipped byte of the superblock, a short and an empty one: refused loudly or harmless,
    no signal."""
    v.format()
    path = next(
        p
        for p in (f'{v.store}/{n}' for n in sorted(os.listdir(v.store)))
        if os.path.isfile(p) and 'super' in os.path.basename(p)
    )
    good = get(path)

    def attempt(data, what):
        put(path, data)
        done = v.mount(check=False, timeout=20)
        check(0 <= done.returncode < 128, f'{what}: exit {done.returncode}')
        if done.returncode == 0:
            v.unmount()
        else:
            check(done.stderr.strip() and not v.mounted(), f'{what}: no message')
        return done.returncode

    copies = len(good) // 4096
    for i in range(0, 512, 3):
        damaged = bytearray(good)
        damaged[i] ^= 0x20
        attempt(bytes(damaged), f'byte {i} of the first copy')
        for copy in range(1, copies):
            damaged[copy * 4096 + i] ^= 0x20
        check(attempt(bytes(damaged), f'byte {i}') or i > 128, f'byte {i} is not checked')
    for data in (b'', good[:100], good[:4095], bytes(len(good)), os.urandom(4096)):
        check(
            attempt(data, f'{len(data)} bytes') != 0, f'a superblock of {len(data)} bytes was taken'
        )
    equal(attempt(good, 'the good one'), 0)


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

"""A store on a small disk of its own: others fill it, it stops answering, it gets room again."""
import contextlib
import fcntl
import os
import struct
import subprocess
import threading
import time

from support import (
    Skip,
    case,
    check,
    code,
    create,
    equal,
    fails,
    get,
    loud,
    needs,
    put,
    sh,
    sh_ok,
    write_synced,
)
from volume import wait_until

DISK, STORE = '320M', '128M'


@contextlib.contextmanager
def _disk(v, kind, inodes=0):
    """The volume's store lies on a disk of DISK bytes, with so many inodes if it is said; yields
    its mount point."""
    inside = v.store
    if kind == 'ext4':
        image = v.root + '/image'
        few = f'-N {inodes}' if inodes else ''
        make = f'truncate -s {DISK} {image} && mkfs.ext4 -q {few} {image}'
        made = sh(f'{make} && mount -o loop {image} {inside}')
    else:
        made = sh(f'mount -t tmpfs -o size={DISK} none {inside}')
    if made.returncode:
        raise Skip(f'no {kind} can be mounted: {made.stderr.strip()}')
    try:
        v.store = inside + '/s'
        os.mkdir(v.store)
        v.format(size=STORE)
        v.mount()
        os.mkdir(v.mnt + '/t')
        os.chdir(v.mnt + '/t')
        yield inside
    finally:
        v.leave()
        v.abort()
        sh(f'umount -l {inside}')
        v.store = inside


def _fill_disk(inside):
    """Another writer takes every byte."""
    with open(inside + '/others', 'ab', buffering=0) as file:
        for size in (1 << 20, 4096, 512):
            while code(file.write, bytes(size)) != 'ENOSPC':
                pass
        code(os.fsync, file.fileno())


def _write_until_refused(path):
    """Appends to a file that is there. Returns what was acknowledged, and the errno."""
    fd, data = os.open(path, os.O_WRONLY | os.O_APPEND), bytearray()
    while len(data) < 1 << 30:
        chunk = os.urandom(1 << 18)
        refused = code(lambda c=chunk: data.extend(c[: os.write(fd, c)]))
        if refused:
            break
    os.close(fd)
    return bytes(data), refused


def _degraded(v):
    return [line for line in v.stat()['degraded'] if 'disk is full' in line]


def _check_full_disk(v, inside):
    kept = os.urandom(8 << 20)
    put('kept', kept)
    put('gone', os.urandom(8 << 20))
    put('written', b'')
    for i in range(100):
        put(f'small{i}', b'%d' % i * 100)
    _fill_disk(inside)
    written, refused = _write_until_refused('written')
    equal(refused, 'ENOSPC')
    wait_until(lambda: _degraded(v), 10, 'a DEGRADED line')  # it looks at the disk now and then
    fails('ENOSPC', os.mkdir, 'new')
    space = os.statvfs('.')
    check(space.f_bavail * space.f_frsize < 1 << 20, f'{space.f_bavail} blocks are offered')
    equal(get('kept'), kept)
    equal(get('written'), written)
    names = 'x' * 240, 'y' * 240
    os.rename('small0', names[0])
    for i in range(40_000):  # the log needs new files, and a checkpoint
        os.rename(names[i % 2], names[1 - i % 2])
    for i in range(1, 100):
        os.unlink(f'small{i}')
    os.unlink('gone')
    os.truncate('kept', 1 << 20)
    fd = os.open('kept', os.O_RDWR)
    os.fsync(fd)
    os.close(fd)
    left = sorted([names[0], 'kept', 'written'])
    v.cold()
    equal(sorted(os.listdir('.')), left)
    equal(get('kept'), kept[: 1 << 20])
    equal(get('written'), written)
    v.crash()
    equal(sorted(os.listdir('.')), left)
    equal(get('written'), written)
    os.unlink(inside + '/others')
    wait_until(lambda: not _degraded(v), 10, 'the end of the DEGRADED line')
    check(os.path.exists(v.store + '/ballast'), 'the ballast is back')
    data = os.urandom(8 << 20)
    put('again', data)
    v.cold()
    equal(get('again'), data)
    cwd = v.leave()
    v.unmount()
    v.fsck()
    v.mount()
    v.enter(cwd)


@case(mounted=True, mount=False, check=False, timeout=240)
def disk_that_others_fill(v):
    """ENOSPC for who writes and for nobody else: reading, renaming, deleting, fsync, unmounting,
    mounting and a kill go on; when there is room again all is as before."""
    with _disk(v, 'ext4') as inside:
        _check_full_disk(v, inside)


@case(mounted=True, mount=False, check=False, timeout=240)
def memory_disk_that_others_fill(v):
    """The same on tmpfs."""
    with _disk(v, 'tmpfs') as inside:
        _check_full_disk(v, inside)


def _take_inodes(inside):
    os.makedirs(inside + '/others', exist_ok=True)
    count = len(os.listdir(inside + '/others'))
    while code(put, f'{inside}/others/{count}', b'') != 'ENOSPC':
        count += 1


@case(mounted=True, mount=False, check=False, timeout=240)
def disk_without_inodes(v):
    """Where others take all inodes of the disk, new files are ENOSPC, df shows none and DEGRADED
    says which it is; overwriting, fsync, renaming, deleting, unmounting, mounting and a kill go
    on."""
    with _disk(v, 'ext4', inodes=2000) as inside:
        kept = bytearray(os.urandom(4 << 20))
        write_synced('kept', kept)
        for i in range(100):
            put(f'small{i}', b'%d' % i * 100)
        _take_inodes(inside)
        wait_until(lambda: any('inodes' in line for line in _degraded(v)), 10, 'a DEGRADED line')
        fails('ENOSPC', os.mkdir, 'new')
        fails('ENOSPC', create, 'new')
        equal(os.statvfs('.').f_favail, 0, 'inodes that df shows')
        fd = os.open('kept', os.O_RDWR)
        for i in range(500):
            place = i * 7919 % len(kept)
            kept[place] = i % 256
            os.pwrite(fd, kept[place : place + 1], place)
            os.fsync(fd)
        os.close(fd)
        names = 'x' * 240, 'y' * 240
        os.rename('small0', names[0])
        for i in range(40_000):  # the log goes round, with checkpoints
            os.rename(names[i % 2], names[1 - i % 2])
        for i in range(1, 50):
            os.unlink(f'small{i}')
        left = sorted([names[0], 'kept'] + [f'small{i}' for i in range(50, 100)])
        for restart in (v.cold, v.crash):
            restart()
            _take_inodes(inside)
            equal(sorted(os.listdir('.')), left)
            equal(get('kept'), bytes(kept))
        sh_ok(f'rm -r {inside}/others')
        wait_until(lambda: not _degraded(v), 10, 'the end of the DEGRADED line')
        equal(len(os.listdir(v.store + '/spare')), 16, 'spare files')
        put('again', b'x' * 100_000)
        v.cold()
        equal(get('again'), b'x' * 100_000)


@case(mounted=True, mount=False, check=False, timeout=240)
def killed_on_a_full_disk_under_writes(v):
    """Killed while writers are refused, again and again: it mounts on the full disk, and what was
    synced is there."""
    with _disk(v, 'ext4') as inside:
        synced = os.urandom(4 << 20)
        put('synced', synced)
        fd = os.open('synced', os.O_RDWR)
        os.fsync(fd)
        os.close(fd)
        for i in range(4):
            put(f'grows{i}', b'')
        for i in range(4):
            _fill_disk(inside)
            written, refused = _write_until_refused(f'grows{i}')
            equal(refused, 'ENOSPC')
            fd = os.open(f'grows{i}', os.O_RDWR)
            os.fsync(fd)
            os.close(fd)
            v.crash()
            equal(get('synced'), synced)
            equal(get(f'grows{i}'), written, f'round {i}')
            os.unlink(f'grows{i}')
        os.unlink(inside + '/others')
        wait_until(lambda: not _degraded(v), 10, 'room')
        put('after', b'x' * 100_000)
        v.cold()
        equal(get('after'), b'x' * 100_000)


@case(mounted=True, mount=False, check=False)
def store_without_a_ballast_gets_one(v):
    """A store of a version that had none mounts and gets one; without the room for it, it mounts
    too."""
    with _disk(v, 'ext4') as inside:
        put('f', b'1')
        cwd = v.leave()
        v.unmount()
        size = os.path.getsize(v.store + '/ballast')
        check(size >= 4 << 20, f'a ballast of {size} bytes')
        os.unlink(v.store + '/ballast')
        v.mount()
        equal(os.path.getsize(v.store + '/ballast'), size)
        v.unmount()
        os.unlink(v.store + '/ballast')
        _fill_disk(inside)
        os.truncate(inside + '/others', os.path.getsize(inside + '/others') - (16 << 20))
        v.mount()
        v.enter(cwd)
        equal(get('f'), b'1')
        wait_until(lambda: _degraded(v), 10, 'a DEGRADED line')
        os.unlink(inside + '/others')
        wait_until(lambda: not _degraded(v), 10, 'the end of the DEGRADED line')
        equal(os.path.getsize(v.store + '/ballast'), size)


def _shut_down(folder):
    """The ext4 file system there fails every access to its disk from now on."""
    ext4_ioc_shutdown, no_log_flush = 0x8004587D, 2
    fd = os.open(folder, os.O_RDONLY)
    fcntl.ioctl(fd, ext4_ioc_shutdown, struct.pack('I', no_log_flush))
    os.close(fd)


def _check_dead_disk(v, inside):
    fd = create('f')
    os.write(fd, b'x')
    _shut_down(inside)
    begin = time.monotonic()
    for change in (
        lambda: os.fsync(fd),
        lambda: os.write(fd, b'x'),
        lambda: os.mkdir('new'),
        lambda: create('other'),
        lambda: os.unlink('synced'),
        lambda: os.truncate('synced', 1),
        lambda: os.fsync(fd),
    ):
        fails('EIO', change)
    equal(os.stat('synced').st_size, 1 << 20)
    check(time.monotonic() - begin < 5, 'it took long')
    lines = [line for line in v.stat()['degraded'] if v.store in line]
    check(lines and 'takes no more changes' in lines[0] and 'EIO' in lines[0], f'{lines}')
    os.close(fd)


@case(mounted=True, mount=False, check=False, timeout=120)
def disk_that_dies_is_eio_and_ends_in_order(v):
    """After the store's disk died, a sync and from then on every change are EIO at once, DEGRADED
    names the cause, umount says so and -l goes on, and the daemon fails with one line that names it
    too. On a disk that works again all is there that was synced."""
    with _disk(v, 'ext4') as inside:
        synced = os.urandom(1 << 20)
        write_synced('synced', synced)
        v.leave()
        v.unmount()
        words = [v.tools['kvsyncfs'], v.store, v.mnt, '-f', '-o', 'log_level=error']
        with open(v.root + '/said', 'wb') as said:
            daemon = subprocess.Popen(words, stderr=said)
        wait_until(v.mounted, 20, 'the mount')
        os.chdir(v.mnt + '/t')
        _check_dead_disk(v, inside)
        v.leave()
        loud(v.unmount(check=False), 'EIO', 'umount -l')
        v.tool('umount.fuse.kvsyncfs', v.mnt, '-l', check=True)
        check(not v.mounted(), 'still mounted')
        equal(daemon.wait(20), 1, 'exit status of the daemon')
        last = get(v.root + '/said').decode().splitlines()[-1]
        check(v.store + '/log' in last and last.endswith('(EIO)'), last)
        sh_ok(f'umount {inside} && mount -o loop {v.root}/image {inside}')
        v.fsck()
        v.mount()
        os.chdir(v.mnt + '/t')
        equal(get('synced'), synced)
        put('again', b'x')


@case(mounted=True, mount=False, check=False, options='timeout=1')
def waits_behind_a_disk_that_stands_still_end(v):
    """While the disk below does not answer, who only waits for another one's sync gets ETIMEDOUT
    after the time-out, metadata are still read, and afterwards all goes on."""
    needs('fsfreeze')
    with _disk(v, 'ext4') as inside:
        fds = [create(f'f{i}') for i in range(4)]
        for fd in fds:
            os.write(fd, b'x' * 100)
        codes = []
        sh_ok(f'fsfreeze -f {inside}')
        try:
            begin = time.monotonic()
            callers = [
                threading.Thread(target=lambda f=fd: codes.append(code(os.fsync, f))) for fd in fds
            ]
            for caller in callers:
                caller.start()
            wait_until(lambda: len(codes) >= 3, 20, 'the end of three of four fsync')
            check(time.monotonic() - begin >= 0.9, 'ended before the time-out')
            equal(set(codes[:3]), {'ETIMEDOUT'})
            equal(os.stat('f0').st_size, 100)
        finally:
            sh_ok(f'fsfreeze -u {inside}')
        for caller in callers:
            caller.join(20)
        for fd in fds:
            os.fsync(fd)
            os.close(fd)
        v.cold()
        equal(get('f3'), b'x' * 100)

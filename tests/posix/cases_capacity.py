"""A full store: ENOSPC for the writer and for nobody else, and room again after a delete."""
import errno
import os
import random

from support import case, check, code, create, equal, get, put, sh, sh_ok
from volume import wait_until

SMALL = '128M'


def _fill(path, chunk=1 << 20, limit=1 << 30, sync=False):
    """Appends random chunks, honouring short writes, until an error. Returns (acknowledged bytes,
    errno)."""
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
    acknowledged = bytearray()
    try:
        while len(acknowledged) < limit:
            data = os.urandom(chunk)
            while data:
                try:
                    n = os.write(fd, data)
                    if sync:
                        os.fsync(fd)
                except OSError as error:
                    return bytes(acknowledged), errno.errorcode[error.errno]
                acknowledged += data[:n]
                data = data[n:]
        return bytes(acknowledged), ''
    finally:
        code(os.close, fd)


@case(mounted=True, size=SMALL, timeout=180)
def full_append_is_what_was_acknowledged(v):
    """Appending until ENOSPC leaves exactly the acknowledged bytes, also after a remount."""
    data, error = _fill('f')
    equal(error, 'ENOSPC')
    check(len(data) > 60 << 20, f'full after {len(data)} bytes of a store of {SMALL}')
    equal(get('f'), data)
    v.cold()
    equal(get('f'), data, 'after a remount')


@case(mounted=True, size=SMALL, timeout=180)
def full_store_still_reads_and_deletes(v):
    """When full: reads, listing, truncate, rename and unlink work; room comes back without a
    remount."""
    put('kept', b'k' * 100_000)
    _, error = _fill('f')
    equal(error, 'ENOSPC')
    equal(get('kept'), b'k' * 100_000)
    equal(sorted(os.listdir('.')), ['f', 'kept'])
    os.rename('kept', 'moved')
    os.chmod('moved', 0o600)
    os.truncate('f', 40 << 20)
    os.unlink('moved')
    os.unlink('f')
    s = os.statvfs('.')
    wait_until(
        lambda: os.statvfs('.').f_bavail * s.f_frsize > 60 << 20, 20, 'free space after the delete'
    )
    for i in range(3):
        data, _ = _fill(f'n{i}', limit=40 << 20)
        equal(len(data), 40 << 20, f'refill {i}')
        os.unlink(f'n{i}')


@case(mounted=True, size=SMALL, timeout=180)
def full_store_says_so_in_df(v):
    """What df calls available can be written, and nearly nothing is available when write says
    ENOSPC."""
    s = os.statvfs('.')
    available = s.f_bavail * s.f_frsize
    data, error = _fill('f')
    equal(error, 'ENOSPC')
    check(len(data) >= available * 0.9, f'{available} bytes promised, {len(data)} written')
    s = os.statvfs('.')
    check(
        s.f_bavail * s.f_frsize <= 8 << 20, f'full with {s.f_bavail * s.f_frsize} bytes available'
    )


@case(mounted=True, size=SMALL, timeout=180)
def full_store_fsync_tells(v):
    """A write that was accepted near the end either reaches the disk with fsync or fsync fails."""
    data, error = _fill('f', sync=True)
    equal(error, 'ENOSPC')
    v.crash()
    got = get('f')
    check(
        got[: len(data)] == data and len(got) - len(data) <= 1 << 20,
        f'{len(data)} acknowledged, {len(got)} found',
    )


@case(mounted=True, size=SMALL, timeout=240)
def full_and_killed_starts_again(v):
    """Killed at ENOSPC again and again the store always mounts and holds what was fsynced."""
    for i in range(6):
        data, error = _fill('f', sync=True)
        equal(error, 'ENOSPC')
        v.crash()
        equal(get('f')[: len(data)], data, f'round {i}')
        os.unlink('f')
        s = os.statvfs('.')
        wait_until(
            lambda: os.statvfs('.').f_bavail * s.f_frsize > 60 << 20,
            20,
            'free space after the delete',
        )


@case(mounted=True, size=SMALL, timeout=180)
def full_store_refuses_preallocation(v):
    """fallocate of more than there is says ENOSPC (or is refused) and leaves the store usable."""
    fd = create('f')
    check(
        code(os.posix_fallocate, fd, 0, 4 << 30) in ('ENOSPC', 'EFBIG', 'EOPNOTSUPP', ''),
        'odd errno',
    )
    os.ftruncate(fd, 0)
    put('g', b'g' * 1000)
    os.sync()
    equal(get('g'), b'g' * 1000)


@case(mounted=True, size=SMALL, timeout=240)
def full_of_small_files(v):
    """Small files until ENOSPC: all that were closed are whole, and removing them gives all room
    back."""
    before = os.statvfs('.')
    count, error = 0, ''
    while not error and count < 60_000:
        if count % 1000 == 0:
            os.mkdir(f'd{count // 1000}')
        data = b'%08d' % count * 1000
        error = code(put, f'd{count // 1000}/{count}', data)
        count += not error
    equal(error, 'ENOSPC')
    for i in range(0, count, 97):
        equal(get(f'd{i // 1000}/{i}'), b'%08d' % i * 1000, f'file {i}')
    sh_ok('rm -rf d*')
    wait_until(
        lambda: os.statvfs('.').f_bavail >= before.f_bavail * 0.9, 20, 'free space after rm -rf'
    )
    equal(
        os.statvfs('.').f_files - os.statvfs('.').f_ffree, before.f_files - before.f_ffree, 'inodes'
    )


@case(mounted=True, size=SMALL, timeout=240)
def overwrites_of_a_nearly_full_store(v):
    """A file of 85 % of the store is overwritten at random three times over without ENOSPC."""
    rng = random.Random(9)
    s = os.statvfs('.')
    blocks = int(s.f_bavail * s.f_frsize * 0.85) // 4096
    fd = create('f')
    versions = [1] * blocks
    for i in range(0, blocks, 256):
        os.pwrite(
            fd,
            b''.join(b'%016d' % (j * 1000 + 1) * 256 for j in range(i, min(blocks, i + 256))),
            i * 4096,
        )
    for _ in range(blocks * 3):
        block = rng.randrange(blocks)
        versions[block] += 1
        os.pwrite(fd, b'%016d' % (block * 1000 + versions[block]) * 256, block * 4096)
    os.fsync(fd)
    os.close(fd)
    for _ in range(2):
        fd = os.open('f', os.O_RDONLY)
        for block in range(blocks):
            want = b'%016d' % (block * 1000 + versions[block]) * 256
            if os.pread(fd, 4096, block * 4096) != want:
                equal(os.pread(fd, 4096, block * 4096), want, f'block {block}')
        os.close(fd)
        v.cold()


@case(mounted=True, mount=False, check=False, timeout=120)
def store_on_a_disk_with_few_inodes(v):
    """Create and delete without end uses up no inode of the disk below."""
    image = v.root + '/image'
    sh_ok(f'truncate -s 700M {image}; mkfs.ext4 -q -N 2000 {image}')
    if sh(f'mount -o loop {image} {v.store}').returncode:
        return
    try:
        inside = v.store
        v.store = inside + '/s'
        os.mkdir(v.store)
        v.format(size='256M')
        v.mount()
        os.chdir(v.mnt)

        def free():
            return os.statvfs(inside).f_ffree

        for i in range(100):
            put(f'w{i}', b'x')
            os.unlink(f'w{i}')
        start = free()
        for _ in range(40):
            for i in range(100):
                put(f'n{i}', b'x' * 50)
            for i in range(100):
                os.unlink(f'n{i}')
        check(free() >= start - 20, f'{start} free inodes below, then {free()}')
        for i in range(5000):
            put(f'n{i}', b'y')
        v.cold()
        equal(len(os.listdir('.')), 5000)
        v.leave()
        v.unmount()
        v.fsck()
    finally:
        v.leave()
        v.abort()
        sh(f'umount -l {inside}')

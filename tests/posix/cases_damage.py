"""The store is damaged or its disk is full: what is broken says so, what is whole is served."""
import os
import random
import re
import shutil
import signal

from support import (
    sync_folder,
    write_synced,
    case,
    check,
    code,
    create,
    equal,
    fails,
    get,
    in_child,
    put,
    sh,
    sh_ok,
)
from volume import counter


def _stop_dirty(v):
    """Synced files, then kill -9: a store whose log holds entries. Returns the files."""
    want = {}
    for i in range(40):
        want[f'f{i}'] = b'%d' % i * 700
        write_synced(f'f{i}', want[f'f{i}'])
    sync_folder()
    v.leave()
    v.kill9()
    return want


def _newest_log(store):
    """Path of the log file with the last record, and where its bytes end."""
    best = None
    for name in os.listdir(store + '/log'):
        path = f'{store}/log/{name}'
        data = get(path).rstrip(b'\0') if os.path.isfile(path) else b''
        if data and (best is None or os.stat(path).st_mtime_ns > os.stat(best[0]).st_mtime_ns):
            best = (path, len(data))
    check(best, 'no log file found')
    return best


def _mount_copy(v, want, must_start, what):
    """Mounts the damaged store; a loud refusal is fine unless it must start. Counts missing
    files."""
    done = v.mount(check=False, timeout=30)
    if done.returncode != 0:
        check(done.returncode > 0, f'{what}: died by signal')
        check(done.stderr.strip(), f'{what}: no message')
        check(not must_start, f'{what}: does not start: {done.stderr}')
        return None
    missing = 0
    for name, data in want.items():
        path = f'{v.mnt}/t/{name}'
        if not os.path.exists(path):
            missing += 1
        elif code(get, path) != 'EIO':
            got = get(path)
            if got != data:
                check(got in (b'', data[: len(got)]), f'{what}: wrong bytes in {name}')
                missing += 1
    v.kill9()
    return missing


@case(mounted=True, timeout=180, check=False)
def log_with_a_damaged_tail_starts(v):
    """A log whose last bytes are cut, zeroed or followed by junk starts and loses the last record
    only."""
    want = _stop_dirty(v)
    saved = v.root + '/saved'
    os.rename(v.store, saved)
    for n in (1, 2, 5, 16, 100, 200, 1000, 4096):
        for kind in ('cut', 'zero', 'junk'):
            shutil.rmtree(v.store, ignore_errors=True)
            sh_ok(f'cp -a --sparse=always {saved} {v.store}')
            path, end = _newest_log(v.store)
            with open(path, 'r+b') as log:
                if kind == 'cut':
                    log.truncate(end - n)
                else:
                    log.seek(end - n if kind == 'zero' else (end + 4095) // 4096 * 4096)
                    log.write(bytes(n) if kind == 'zero' else os.urandom(n))
            missing = _mount_copy(v, want, True, f'{kind} {n}')
            check(missing <= 4, f'{kind} {n}: {missing} synced files are gone')


@case(mounted=True, timeout=120, check=False)
def log_damaged_in_the_middle_is_loud(v):
    """A flipped byte before good records is refused, or costs nothing: never a silent loss."""
    want = _stop_dirty(v)
    saved = v.root + '/saved'
    os.rename(v.store, saved)
    for part in (0.1, 0.3, 0.5, 0.7):
        shutil.rmtree(v.store, ignore_errors=True)
        sh_ok(f'cp -a --sparse=always {saved} {v.store}')
        path, end = _newest_log(v.store)
        data = bytearray(get(path)[:end])
        at = next(i for i in range(int(end * part), end) if data[i])
        with open(path, 'r+b') as log:
            log.seek(at)
            log.write(bytes([data[at] ^ 0x10]))
        missing = _mount_copy(v, want, False, f'flip at {at} of {end}')
        check(not missing, f'flip at {at} of {end}: {missing} synced files are gone without a word')


@case(mounted=True, timeout=120)
def empty_newest_files_are_harmless(v):
    """A log or segment file that was created but never written (empty or zeros) does not block
    the start."""
    want = _stop_dirty(v)
    for size in (0, 10 << 10):
        for folder in ('log', 'segments'):
            names = sorted(
                n for n in os.listdir(f'{v.store}/{folder}') if n.endswith(('.log', '.seg'))
            )
            for name in names[-1:]:
                digits = re.findall(r'[0-9a-f]{4,}', name)[-1]
                base = 16 if re.search('[a-f]', ''.join(names).replace(folder, '')) else 10
                after = format(int(digits, base) + 1, 'x' if base == 16 else 'd').rjust(
                    len(digits), '0'
                )
                put(f'{v.store}/{folder}/{name.replace(digits, after)}', bytes(size))
        equal(_mount_copy(v, want, True, f'new files of {size} bytes'), 0)
    v.mount()
    put(v.mnt + '/t/new', b'n')
    v.unmount()


def _damage(v, pattern, change):
    """Changes the stored page that holds `pattern` (the store is stopped). Returns how many were
    changed."""
    count = 0
    for folder, _, names in os.walk(v.store + '/segments'):
        for name in names:
            with open(os.path.join(folder, name), 'r+b') as file:
                data = file.read()
                at = data.find(pattern)
                while at >= 0:
                    file.seek(at)
                    file.write(change(data[at : at + len(pattern)]))
                    count += 1
                    at = data.find(pattern, at + len(pattern))
    return count


@case(mounted=True, timeout=120, check=False)
def damaged_page_is_never_served(v):
    """A flipped bit, a page of zeros or a foreign page in a segment is EIO for that read and
    counted."""
    marks = [b'MARK-%d-' % i * 100 for i in range(3)]
    size = 1 << 20
    for i, mark in enumerate(marks):
        put(f'f{i}', os.urandom(size // 2) + mark + os.urandom(size // 2))
    put('good', os.urandom(size))
    good = get('good')
    first = get('f0')
    cwd = v.leave()
    v.unmount()
    changes = [lambda d: bytes([d[0] ^ 1]) + d[1:], lambda d: bytes(len(d)), lambda d: b'x' + d[1:]]
    for mark, change in zip(marks, changes):
        check(_damage(v, mark, change) >= 1, 'the stored page was not found')
    v.mount()
    v.enter(cwd)
    before = counter(v.stat(), 'corrupt_pages') or 0
    for i in range(3):
        equal(code(get, f'f{i}'), 'EIO', f'f{i}')
    equal(get('good'), good)
    fd = os.open('f0', os.O_RDONLY)
    equal(os.pread(fd, 4096, 0), first[:4096], 'a good page of a damaged file')
    check((counter(v.stat(), 'corrupt_pages') or 0) > before, 'not counted')
    put('new', b'the mount works on')
    os.close(fd)
    v.leave()
    v.unmount()
    check(v.fsck('--scrub', check=False).returncode & 4, 'fsck --scrub does not see it')


@case(mounted=True, timeout=240, check=False)
def damaged_catalog_is_never_truth(v):
    """A flipped byte in any file of the catalog is refused or harmless; never wrong bytes, never
    a crash."""
    want = {}
    for i in range(30):
        want[f'f{i}'] = b'%d' % i * 700
        put(f'f{i}', want[f'f{i}'])
    v.leave()
    v.unmount()
    rng = random.Random(5)
    files = [
        os.path.join(folder, name)
        for folder, _, names in os.walk(v.store)
        for name in names
        if '/segments' not in folder and '/log' not in folder and name not in ('lock', 'LOCK')
    ]
    saved = v.root + '/saved'
    sh_ok(f'cp -a --sparse=always {v.store} {saved}')
    for path in files:
        size = os.path.getsize(path.replace(v.store, saved))
        for at in [rng.randrange(size) for _ in range(3)] if size else []:
            shutil.rmtree(v.store)
            sh_ok(f'cp -a --sparse=always {saved} {v.store}')
            with open(path, 'r+b') as file:
                file.seek(at)
                byte = file.read(1)
                file.seek(at)
                file.write(bytes([byte[0] ^ 0x40]))
            _mount_copy(v, want, False, f'{os.path.relpath(path, v.store)} at {at}')


@case(mounted=True, mount=False, timeout=120, check=False)
def full_disk_below_is_reported(v):
    """When the disk under the store is full some write, fsync or close says so; acknowledged data
    stays."""
    sh_ok(f'mount -t tmpfs -o size=400m none {v.store}')
    try:
        v.format(size='256M')
        v.mount()
        os.chdir(v.mnt)
        write_synced('kept', b'k' * 100_000)
        filler = v.store + '/filler'
        sh(f'dd if=/dev/zero of={filler} bs=1M status=none')
        told, acknowledged = '', []
        for i in range(400):

            def attempt(k=i):
                fd = create(f'f{k}')
                try:
                    os.write(fd, bytes([k % 250 + 1]) * (1 << 20))
                    os.fsync(fd)
                finally:
                    os.close(fd)

            told = code(attempt)
            if told:
                break
            acknowledged.append(i)
        check(told in ('ENOSPC', 'EIO'), f'no error although the disk is full ({told})')
        equal(get('kept'), b'k' * 100_000, 'reading while full')
        v.leave()
        v.kill9()
        os.unlink(filler)
        v.mount()
        equal(get(v.mnt + '/kept'), b'k' * 100_000)
        for i in acknowledged:
            equal(get(f'{v.mnt}/f{i}'), bytes([i % 250 + 1]) * (1 << 20), f'f{i}')
        in_child(lambda: put(v.mnt + '/again', b'x'))
        fails('ENOENT', os.stat, v.mnt + '/nothing')
        v.kill9()
    finally:
        v.leave()
        v.abort()
        sh(f'umount -l {v.store}')

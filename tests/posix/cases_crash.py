"""The daemon is killed, the store is damaged: what was promised is there, what is broken says
so."""
import mmap
import os
import random
import re
import shutil
import signal
import time

from support import case, check, code, create, equal, fails, get, in_child, put, python, sh, sh_ok
from volume import counter, process_alive, wait_until


def _sync_folder(path='.'):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def _write_synced(path, data):
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
    os.write(fd, data)
    os.fsync(fd)
    os.close(fd)


@case(mounted=True)
def fsync_survives_kill(v):
    """What fsync, fdatasync, O_DSYNC and a folder's fsync promised is there after kill -9."""
    data = os.urandom(300_000)
    _write_synced('f', data)
    fd = create('g')
    os.write(fd, data)
    os.fdatasync(fd)
    fd = create('h', os.O_DSYNC)
    os.write(fd, data[:5000])
    os.mkdir('d')
    os.symlink('target', 'd/s')
    os.rename('g', 'd/g')
    _sync_folder('d')
    v.crash()
    equal((get('f'), get('d/g'), get('h'), os.readlink('d/s')), (data, data, data[:5000], 'target'))
    v.crash()
    equal(get('d/g'), data, 'after a second crash')


@case(mounted=True)
def fsync_of_overwrite_survives_kill(v):
    """An overwrite that was fsynced wins over older bytes, a later one without fsync is old or
    new."""
    _write_synced('f', b'1' * 100_000)
    fd = os.open('f', os.O_RDWR)
    os.pwrite(fd, b'2' * 5000, 3000)
    os.fsync(fd)
    os.pwrite(fd, b'3' * 5000, 50_000)
    v.crash()
    got = get('f')
    equal(len(got), 100_000)
    equal(got[:50_000], b'1' * 3000 + b'2' * 5000 + b'1' * 42_000)
    check(set(got[50_000:55_000]) <= set(b'13'), 'bytes that nobody wrote')
    equal(got[55_000:], b'1' * 45_000)


@case(mounted=True)
def msync_survives_kill(v):
    """Stores through a mapping are there after msync and kill -9."""
    fd = create('f')
    os.ftruncate(fd, 100_000)
    shared = mmap.mmap(fd, 100_000)
    shared[:] = b'm' * 100_000
    shared.flush()
    os.fsync(fd)
    v.crash()
    equal(get('f'), b'm' * 100_000)


@case(mounted=True)
def synced_within_a_second_without_fsync(v):
    """Bytes and names that nobody fsynced are durable soon by themselves."""
    put('f', b'later' * 1000)
    os.mkdir('d')
    time.sleep(3)
    v.crash()
    equal((get('f'), os.path.isdir('d')), (b'later' * 1000, True))


@case(mounted=True, timeout=180)
def replace_by_rename_is_atomic(v):
    """write, rename over the old name, kill at once: the name is never empty, half or missing."""
    _write_synced('f', b'0' * 20_000)
    _sync_folder()
    rng = random.Random(1)
    for i in range(1, 13):
        writer = python(
            (
                'import os,sys\nk=int(sys.argv[1])*1000\nwhile True:\n'
                ' k+=1; open("t","wb").write(b"%d "%k*3000); os.rename("t","f")\n'
            ),
            i,
        )
        time.sleep(0.05 + rng.random() * 0.2)
        v.kill9()
        writer.kill()
        writer.wait()
        v.mount()
        os.chdir(v.mnt + '/t')
        got = get('f')
        words = set(got.split())
        check(
            len(words) == 1 and (len(got.split()) == 3000 or got == b'0' * 20_000),
            f'round {i}: {len(got)} bytes, {len(words)} versions',
        )


@case(mounted=True, timeout=180)
def rename_is_replayed_once(v):
    """After a crash a renamed file has exactly one of its names, or both still their old
    content."""
    rng = random.Random(2)
    for i in range(12):
        _write_synced('f1', b'one')
        _write_synced('f2', b'two')
        _sync_folder()
        os.rename('f1', 'f2')
        time.sleep(rng.random() * 0.2)
        v.crash()
        if os.path.exists('f1'):
            equal((get('f1'), get('f2')), (b'one', b'two'), f'round {i}')
        else:
            equal(get('f2'), b'one', f'round {i}')


@case(mounted=True, timeout=180)
def metadata_storm_survives_kill(v):
    """Killed in the middle of a storm of names the store mounts and holds every synced item."""
    script = (
        'import os,sys,itertools\nk=sys.argv[1];'
        ' os.makedirs(k)\nlog=os.open("/"+sys.argv[2],os.O_WRONLY)\nfor i in itertools.count():\n'
        ' p="%s/%d"%(k,i); os.mkdir(p); open(p+"/x","w").close(); os.rename(p+"/x",p+"/y")\n if'
        ' i>9: os.unlink("%s/%d/y"%(k,i-9)); os.rmdir("%s/%d"%(k,i-9))\n if i%7==0:\n '
        ' d=os.open(k,os.O_RDONLY); os.fsync(d); os.close(d); os.write(log,b"%d\\n"%i)\n'
    )
    rng = random.Random(3)
    for i in range(10):
        note = os.path.join(v.root, f'note{i}')
        put(note, b'')
        storm = python(script, f'r{i}', note[1:])
        time.sleep(0.1 + rng.random() * 0.8)
        v.kill9()
        storm.kill()
        storm.wait()
        v.mount()
        os.chdir(v.mnt + '/t')
        synced = get(note).split()
        if synced:
            last = int(synced[-1])
            names = {int(n) for n in os.listdir(f'r{i}')}
            check(
                max(names, default=-1) >= last,
                f'round {i}: synced {last}, found {sorted(names)[-3:]}',
            )
        for name in os.listdir(f'r{i}') if os.path.exists(f'r{i}') else []:
            check(set(os.listdir(f'r{i}/{name}')) <= {'x', 'y'}, name)


@case(mounted=True)
def sigterm_flushes(v):
    """SIGTERM: everything closed before is there, the mount is gone, the daemon ends with status
    0."""
    data = os.urandom(50 << 20)
    put('f', data)
    daemon = v.pid()
    cwd = v.leave()
    os.kill(daemon, signal.SIGTERM)
    wait_until(lambda: not process_alive(daemon), 30, 'end of the daemon')
    check(not v.mounted(), 'a dead mount is left')
    wait_until(lambda: os.path.exists(f'{v.root}/exit.{daemon}'), 5, 'exit status')
    equal(get(f'{v.root}/exit.{daemon}'), b'0', 'exit status')
    v.mount()
    v.enter(cwd)
    equal(get('f'), data)


@case(mounted=True)
def sigterm_under_load(v):
    """SIGTERM with writers at work: it ends, no dead mount is left, and the store mounts again."""
    put('kept', b'k' * 100_000)
    writer = python('import os\nwhile True:\n open("f","wb").write(os.urandom(1<<20))\n', stderr=-3)
    time.sleep(0.3)
    daemon = v.pid()
    cwd = v.leave()
    os.kill(daemon, signal.SIGTERM)
    wait_until(lambda: not process_alive(daemon), 30, 'end of the daemon')
    writer.kill()
    writer.wait()
    check(code(os.stat, v.mnt) == '', 'a dead mount is left')
    v.mount()
    v.enter(cwd)
    equal(get('kept'), b'k' * 100_000)


@case(mounted=True)
def fusermount_flushes(v):
    """fusermount3 -u from outside: everything closed before is there after the next mount."""
    data = os.urandom(20 << 20)
    put('f', data)
    cwd = v.leave()
    sh_ok(f'fusermount3 -u {v.mnt}')
    wait_until(lambda: v.pid() is None, 30, 'end of the daemon')
    v.mount()
    v.enter(cwd)
    equal(get('f'), data)


def _stop_dirty(v):
    """Synced files, then kill -9: a store whose log holds entries. Returns the files."""
    want = {}
    for i in range(40):
        want[f'f{i}'] = b'%d' % i * 700
        _write_synced(f'f{i}', want[f'f{i}'])
    _sync_folder()
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
                n for n in os.listdir(f'{v.store}/{folder}') if re.search(r'[0-9a-f]{4,}', n)
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


@case(mounted=True)
def deleted_data_is_not_written_later(v):
    """Files removed right after they were written leave the space as it was."""

    def used():
        s = os.statvfs('.')
        return (s.f_blocks - s.f_bfree) * s.f_frsize

    before = used()
    for i in range(10):
        put(f'f{i}', os.urandom(4 << 20))
    for i in range(10):
        os.unlink(f'f{i}')
    wait_until(lambda: used() - before < 8 << 20, 10, 'free space')
    v.cold()
    check(used() - before < 8 << 20, 'space is used after a remount')


@case(mounted=True, mount=False, timeout=120, check=False)
def full_disk_below_is_reported(v):
    """When the disk under the store is full some write, fsync or close says so; acknowledged data
    stays."""
    sh_ok(f'mount -t tmpfs -o size=400m none {v.store}')
    try:
        v.format(size='256M')
        v.mount()
        os.chdir(v.mnt)
        _write_synced('kept', b'k' * 100_000)
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

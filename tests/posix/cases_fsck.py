"""fsck.kvsyncfs: what it sees, names, mends and leaves alone."""
import hashlib
import os
import shutil

from support import Skip, case, check, equal, get, put, sh, sh_ok, sync_folder, write_synced


def _image(store):
    """Names, sizes, times and bytes of everything in the store."""
    found = {}
    for folder, folders, names in os.walk(store):
        for name in folders + names:
            path = os.path.join(folder, name)
            state = os.stat(path)
            data = hashlib.sha256(get(path)).hexdigest() if os.path.isfile(path) else ''
            found[path] = (state.st_size, state.st_mtime_ns, state.st_mode, data)
    return found


def _flip(store, mark):
    """Damages the stored page that holds `mark`; the store is stopped."""
    for folder, _, names in os.walk(store + '/segments'):
        for name in names:
            path = os.path.join(folder, name)
            at = get(path).find(mark)
            if at >= 0:
                with open(path, 'r+b') as file:
                    file.seek(at)
                    file.write(bytes([mark[0] ^ 1]))
                return
    raise AssertionError('the stored page was not found')


@case(mounted=True, timeout=120, check=False)
def fsck_without_repair_changes_no_byte(v):
    """A store that was killed under load is judged clean, and no name, byte or time in it
    changes."""
    for i in range(40):
        write_synced(f's{i}', b'%d' % i * 700)
        put(f'u{i}', os.urandom(100_000))
    sync_folder()
    v.leave()
    v.kill9()
    os.unlink(v.store + '/lock')
    before = _image(v.store)
    for words in ([], ['-n'], ['--scrub'], ['--scrub', '--json']):
        done = v.fsck(*words, check=False)
        equal(done.returncode, 0, f'{words}: {done.stdout[-300:]}{done.stderr[-300:]}')
        equal(_image(v.store), before, f'{words}')


@case(mounted=True, timeout=120, check=False)
def fsck_scrub_names_every_damaged_file(v):
    """Each file with a bad page is named with the range of bytes, in two files and a hard link's
    inode; the check goes on behind them; --repair says that they are left, and mends nothing
    else."""
    size = 1 << 20
    marks = [b'MARK-%d-' % i * 100 for i in range(2)]
    os.mkdir('d')
    for i, mark in enumerate(marks):
        put(f'd/f{i}', os.urandom(size) + mark + os.urandom(size))
    put('good', os.urandom(size))
    good = get('good')
    cwd = v.leave()
    v.unmount()
    for mark in marks:
        _flip(v.store, mark)
    equal(v.fsck(check=False).returncode, 0, 'without --scrub data is not read')
    for words, prefix in ((['--scrub'], 'inode'), (['--scrub', '--repair'], 'left: inode')):
        done = v.fsck(*words, check=False)
        equal(done.returncode, 4, f'{words}: {done.stderr}')
        lines = done.stderr.splitlines()
        equal(len(lines), 2, done.stderr)
        for i in range(2):
            named = [line for line in lines if f'/d/f{i}): bytes 10' in line]
            check(named and named[0].startswith(prefix), f'f{i} is not named: {done.stderr}')
        check('2 bad' in done.stdout, done.stdout)
    v.mount()
    v.enter(cwd)
    equal(get('good'), good)


@case(mounted=True, timeout=60)
def fsck_names_who_uses_the_store(v):
    """fsck and --repair of a mounted store end with 8 and name the daemon and its process."""
    put('f', b'data')
    for words in ([], ['--repair'], ['-a']):
        done = v.fsck(*words, check=False)
        equal(done.returncode, 8, f'{words}: {done.stderr}')
        check(f'process {v.pid()}' in done.stderr, f'{words}: {done.stderr}')
        check(v.store in done.stderr, f'{words}: {done.stderr}')
    equal(get('f'), b'data')


@case(mounted=True, mount=False, timeout=60)
def fsck8_finds_and_calls_the_checker(v):
    """fsck(8) with -t fuse.kvsyncfs, and with -A for a line of fstab, checks the store and hands
    its exit status on."""
    if not shutil.which('fsck'):
        raise Skip('no fsck(8)')
    v.format()
    os.mkdir(v.root + '/bin')
    os.symlink(v.tools['fsck.kvsyncfs'], v.root + '/bin/fsck.fuse.kvsyncfs')
    with open(v.root + '/fstab', 'w', encoding='ascii') as fstab:
        fstab.write(f'{v.store} {v.mnt} fuse.kvsyncfs defaults 0 2\n')
    path = f'PATH={v.root}/bin:$PATH'
    one = f'{path} fsck -t fuse.kvsyncfs'
    every = f'{path} LIBMOUNT_FSTAB={v.root}/fstab fsck -A'
    for command in (one, f'{one} -a', f'{one} -y -C0', f'{one} -n -V', f'{one} -p -f'):
        check('clean' in sh_ok(f'{command} {v.store}'), command)
    check('clean' in sh_ok(f'{every} -a'), every)
    superblock = get(v.store + '/superblock')
    put(v.store + '/superblock', superblock[:4096])
    equal(sh(f'{one} -n {v.store}').returncode, 4, 'damaged')
    equal(sh(f'{every} -a').returncode, 1, 'corrected')
    equal(get(v.store + '/superblock'), superblock)
    equal(sh(f'{every} -a').returncode, 0, 'again')


@case(mounted=True, timeout=120, check=False)
def fsck_repair_of_a_lost_segment_keeps_the_rest(v):
    """Files whose segment is gone are named and read as EIO after a repair, never as zeros; the
    others are whole, and a file that is overwritten or removed is good again."""
    size = 3 << 20
    for i in range(24):
        put(f'f{i}', bytes([i + 1]) * size)
    cwd = v.leave()
    v.unmount()
    folder = v.store + '/segments/'
    segments = sorted(os.listdir(folder), key=lambda name: os.stat(folder + name).st_blocks)
    os.unlink(folder + segments[-1])
    done = v.fsck('--repair', check=False)
    equal(done.returncode, 4, done.stderr)
    v.mount()
    v.enter(cwd)
    lost = []
    for i in range(24):
        try:
            equal(get(f'f{i}'), bytes([i + 1]) * size, f'f{i}')
        except OSError:
            lost.append(i)
            check(f'/f{i}): bytes' in done.stderr, f'f{i} is not named: {done.stderr}')
    check(0 < len(lost) < 24, f'{lost}')
    for i in lost[1:]:
        os.unlink(f'f{i}')
    put(f'f{lost[0]}', b'new')
    equal(get(f'f{lost[0]}'), b'new')
    v.leave()
    v.unmount()
    done = v.fsck('--scrub', check=False)
    equal(done.returncode, 0, f'{done.stdout}{done.stderr}')

"""The daemon is killed or told to end: what was promised is there."""
import mmap
import os
import random
import signal
import time

from support import (
    sync_folder,
    write_synced,
    case,
    check,
    code,
    create,
    equal,
    get,
    put,
    python,
    sh_ok,
)
from volume import process_alive, wait_until


@case(mounted=True)
def fsync_survives_kill(v):
    """What fsync, fdatasync, O_DSYNC and a folder's fsync promised is there after kill -9."""
    data = os.urandom(300_000)
    write_synced('f', data)
    fd = create('g')
    os.write(fd, data)
    os.fdatasync(fd)
    fd = create('h', os.O_DSYNC)
    os.write(fd, data[:5000])
    os.mkdir('d')
    os.symlink('target', 'd/s')
    os.rename('g', 'd/g')
    sync_folder('d')
    v.crash()
    equal((get('f'), get('d/g'), get('h'), os.readlink('d/s')), (data, data, data[:5000], 'target'))
    v.crash()
    equal(get('d/g'), data, 'after a second crash')


@case(mounted=True)
def fsync_of_overwrite_survives_kill(v):
    """An overwrite that was fsynced wins over older bytes, a later one without fsync is old or
    new."""
    write_synced('f', b'1' * 100_000)
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
    write_synced('f', b'0' * 20_000)
    sync_folder()
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
        write_synced('f1', b'one')
        write_synced('f2', b'two')
        sync_folder()
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

"""Mapped, direct and buffered access to one file are one truth."""
import ctypes
import mmap
import os
import random
import shutil
import signal
import subprocess

from support import (
    FALLOC_KEEP_SIZE,
    FALLOC_PUNCH_HOLE,
    PAGE,
    aligned,
    case,
    check,
    code,
    create,
    equal,
    fails,
    fallocate,
    get,
    in_child,
    put,
    sh_ok,
)


def direct_read_sees_buffered_write(v):
    """An O_DIRECT read gives what was written a moment ago, and a buffered read what O_DIRECT
    wrote."""
    fd = create('f')
    direct = os.open('f', os.O_RDWR | os.O_DIRECT)
    buffer = aligned(PAGE)
    os.write(fd, b'a' * 3 * PAGE)
    equal(os.preadv(direct, [buffer], PAGE), PAGE)
    equal(buffer[:], b'a' * PAGE)
    buffer[:] = b'D' * PAGE
    equal(os.pwritev(direct, [buffer], PAGE), PAGE)
    equal(os.pread(fd, PAGE, PAGE), b'D' * PAGE)
    os.pwrite(fd, b'bb', PAGE + 10)
    equal(os.preadv(direct, [buffer], PAGE), PAGE)
    equal(buffer[:], b'D' * 10 + b'bb' + b'D' * (PAGE - 12))


def direct_read_at_the_end(v):
    """O_DIRECT reads stop at the end of the file, at any length of it."""
    put('f', b'x' * (PAGE + 100))
    direct = os.open('f', os.O_RDONLY | os.O_DIRECT)
    buffer = aligned(4 * PAGE)
    equal(os.preadv(direct, [buffer], 0), PAGE + 100)
    equal(os.preadv(direct, [buffer], PAGE), 100)
    equal(os.preadv(direct, [buffer], 2 * PAGE), 0)


def direct_unaligned(v):
    """Unaligned O_DIRECT is served right or is EINVAL, never wrong bytes."""
    data = os.urandom(3 * PAGE)
    put('f', data)
    direct = os.open('f', os.O_RDWR | os.O_DIRECT)
    buffer = bytearray(1000)
    if code(os.preadv, direct, [buffer], 777) == '':
        equal(bytes(buffer), data[777:1777])
    if code(os.pwritev, direct, [b'12345'], 5000) == '':
        data = data[:5000] + b'12345' + data[5005:]
    equal(get('f'), data)


def direct_and_buffered_mixed(v):
    """A random mix of direct and buffered writes and reads is what a plain array would hold."""
    rng = random.Random(7)
    size = 64 * PAGE
    model = bytearray(size)
    fd = create('f')
    os.ftruncate(fd, size)
    direct = os.open('f', os.O_RDWR | os.O_DIRECT)
    for step in range(600):
        page, count = rng.randrange(60), rng.randint(1, 4)
        buffer = aligned(count * PAGE)
        at = page * PAGE
        if step % 4 == 0:
            buffer[:] = rng.randbytes(count * PAGE)
            os.pwritev(direct, [buffer], at)
            model[at : at + len(buffer)] = buffer[:]
        elif step % 4 == 1:
            data = rng.randbytes(rng.randint(1, 9000))
            os.pwrite(fd, data, at + 13)
            model[at + 13 : at + 13 + len(data)] = data
        elif step % 4 == 2:
            os.preadv(direct, [buffer], at)
            equal(buffer[:], bytes(model[at : at + count * PAGE]), f'direct read in step {step}')
        else:
            equal(
                os.pread(fd, count * PAGE, at),
                bytes(model[at : at + count * PAGE]),
                f'read in step {step}',
            )


def mmap_and_write_are_coherent(v):
    """MAP_SHARED sees write(2), and read(2) sees stores through the mapping, without msync."""
    fd = create('f')
    os.ftruncate(fd, 4 * PAGE)
    shared = mmap.mmap(fd, 4 * PAGE)
    for i in range(50):
        os.pwrite(fd, b'%06d' % i, 3000 + i)
        equal(shared[3000 + i : 3006 + i], b'%06d' % i, 'write seen in the mapping')
        shared[9000 + i : 9006 + i] = b'%06d' % i
        equal(os.pread(fd, 6, 9000 + i), b'%06d' % i, 'store seen by read')
    want = get('f')
    shared.flush()
    shared.close()
    os.close(fd)
    v.cold()
    equal(get('f'), want, 'after a remount')


def mmap_private_stays_private(v):
    """Stores into MAP_PRIVATE never reach the file."""
    put('f', b'a' * PAGE)
    fd = os.open('f', os.O_RDWR)
    private = mmap.mmap(fd, PAGE, flags=mmap.MAP_PRIVATE)
    private[0:5] = b'XXXXX'
    equal(private[0:6], b'XXXXXa')
    private.close()
    v.cold()
    equal(get('f'), b'a' * PAGE)


def mmap_tail_is_zero(v):
    """Bytes stored past the end of the file, in its last page, are not in the file when it grows
    after a sync, and nothing is there that a cut took away."""
    put('f', b'a' * 100)
    fd = os.open('f', os.O_RDWR)
    shared = mmap.mmap(fd, 0)
    equal(len(shared), 100)
    whole = mmap.mmap(fd, 100)
    whole[99:100] = b'z'
    whole.flush()
    os.ftruncate(fd, PAGE)
    equal(get('f'), b'a' * 99 + b'z' + bytes(PAGE - 100))
    os.ftruncate(fd, 50)
    os.ftruncate(fd, 2 * PAGE)
    equal(get('f'), b'a' * 50 + bytes(2 * PAGE - 50))
    os.ftruncate(fd, 100)
    tail = (ctypes.c_char * 100).from_buffer(mmap.mmap(fd, 100))
    ctypes.memset(ctypes.addressof(tail) + 100, 0x7A, PAGE - 100)
    os.fsync(fd)
    os.ftruncate(fd, 2 * PAGE)
    equal(get('f'), b'a' * 50 + bytes(2 * PAGE - 50), 'stored behind the end')


def mmap_past_the_end_is_sigbus(v):
    """A page wholly past the end of the file answers with SIGBUS, and the mount goes on."""
    put('f', b'a' * (3 * PAGE))
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGBUS, signal.SIG_DFL)
        fd = os.open('f', os.O_RDWR)
        shared = mmap.mmap(fd, 3 * PAGE)
        os.ftruncate(fd, PAGE)
        os._exit(shared[2 * PAGE])
    status = os.waitpid(pid, 0)[1]
    equal(os.WTERMSIG(status), signal.SIGBUS)
    equal(get('f'), b'a' * PAGE)


def mmap_survives_close_and_msync(v):
    """Stores made after the descriptor was closed are in the file after msync, munmap and a
    remount."""
    fd = create('f')
    os.ftruncate(fd, 1 << 20)
    shared = mmap.mmap(fd, 1 << 20)
    os.close(fd)
    data = os.urandom(1 << 20)
    shared[:] = data
    shared.flush()
    equal(get('f'), data, 'after msync')
    shared[100:104] = b'late'
    shared.close()
    data = data[:100] + b'late' + data[104:]
    v.cold()
    equal(get('f'), data, 'after munmap and a remount')


def mmap_is_the_source_of_a_write(v):
    """write(2) from a mapping of the same file, and a direct read into one, end and are right."""
    data = os.urandom(16 * PAGE)
    put('f', data)
    v.cold()
    fd = os.open('f', os.O_RDWR)
    shared = mmap.mmap(fd, 16 * PAGE)
    equal(os.pwrite(fd, memoryview(shared)[: 8 * PAGE], 8 * PAGE), 8 * PAGE)
    equal(get('f'), data[: 8 * PAGE] * 2)
    direct = os.open('f', os.O_RDONLY | os.O_DIRECT)
    with memoryview(shared)[4 * PAGE : 5 * PAGE] as window:
        got = code(os.preadv, direct, [window], 0)
    check(got in ('', 'EFAULT', 'EDEADLK'), got)


def mmap_of_an_unlinked_file(v):
    """A mapping keeps its file alive without a name and without a descriptor."""
    fd = create('f')
    os.write(fd, b'live' * PAGE)
    shared = mmap.mmap(fd, 4 * PAGE)
    os.close(fd)
    os.unlink('f')
    equal(shared[:8], b'livelive')
    shared[0:4] = b'DEAD'
    shared.flush()
    equal(shared[:8], b'DEADlive')
    equal(os.listdir('.'), [])


def mmap_reads_a_cold_file(v):
    """A mapping of a file that is only on disk shows its bytes, in any order of touching."""
    data = os.urandom(300 * PAGE + 5)
    put('f', data)
    v.cold()
    fd = os.open('f', os.O_RDONLY)
    shared = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
    pages = list(range(301))
    random.Random(3).shuffle(pages)
    for page in pages:
        equal(
            shared[page * PAGE : (page + 1) * PAGE],
            data[page * PAGE : (page + 1) * PAGE],
            f'page {page}',
        )


def exec_from_the_volume(v):
    """A program copied there runs, also cold; while it runs it is ETXTBSY for writers."""
    shutil.copy('/bin/sleep', 'prog')
    os.chmod('prog', 0o755)
    v.cold()
    running = subprocess.Popen(['./prog', '60'])
    try:

        def busy():
            return code(os.open, 'prog', os.O_WRONLY)

        equal(busy(), 'ETXTBSY')
    finally:
        running.kill()
        running.wait()
    writer = os.open('prog', os.O_WRONLY)
    fails('ETXTBSY', subprocess.run, ['./prog', '0'], check=False)
    os.close(writer)
    subprocess.run(['./prog', '0'], check=True)
    put('s', b'#!/bin/sh\necho "$1-ran"\n')
    os.chmod('s', 0o755)
    equal(sh_ok('./s it').strip(), 'it-ran')


def _model_step(rng, fd, model, shared_ok):
    """One random operation on the file and on its model; sizes stay below 300 000 bytes."""
    size = len(model)
    kind = rng.randrange(10)
    at, length = rng.randrange(250_000), rng.choice((1, 100, 4096, 5000, 40_000))
    if kind < 4:
        data = rng.randbytes(length)
        os.pwrite(fd, data, at)
        if at > size:
            model.extend(bytes(at - size))
        model[at : at + length] = data
    elif kind == 4:
        target = rng.randrange(300_000)
        os.ftruncate(fd, target)
        model[:] = model[:target] + bytes(max(0, target - size))
    elif kind == 5 and size:
        at %= size
        if code(fallocate, fd, FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE, at, length) == '':
            end = min(size, at + length)
            model[at:end] = bytes(end - at)
    elif kind == 6 and size and shared_ok:
        at %= size
        data = rng.randbytes(min(length, size - at))
        with mmap.mmap(fd, size) as shared:
            shared[at : at + len(data)] = data
        model[at : at + len(data)] = data
    elif kind == 7 and size > 1000:
        length = min(length, size // 3)
        source, target = rng.randrange(size // 3), size // 3 * 2
        n = os.copy_file_range(fd, fd, length, source, target)
        model[target : target + n] = model[source : source + n]
    elif kind == 8:
        os.fsync(fd)
    equal(os.fstat(fd).st_size, len(model), 'size')
    at = rng.randrange(len(model) + 1)
    equal(
        os.pread(fd, 30_000, at), bytes(model[at : at + 30_000]), f'read at {at} after kind {kind}'
    )


def _against_model(v, seed, steps, cold_every, shared_ok=True):
    rng = random.Random(seed)
    model = bytearray()
    fd = create('f')
    for step in range(steps):
        try:
            _model_step(rng, fd, model, shared_ok)
        except AssertionError as error:
            raise AssertionError(f'seed {seed} step {step}: {error}') from error
        if cold_every and step % cold_every == cold_every - 1:
            os.close(fd)
            v.cold()
            equal(get('f'), bytes(model), f'seed {seed} step {step}, after a remount')
            fd = os.open('f', os.O_RDWR)
    equal(get('f'), bytes(model), f'seed {seed} at the end')


def overwrites_are_read_from_any_start(v):
    """A change of part of a long run of bytes is seen by every read, wherever the read begins."""
    size, step = 13 << 20, 1 << 20
    model = bytearray(os.urandom(size))
    put('f', bytes(model))
    fd = os.open('f', os.O_RDWR | os.O_DIRECT)
    os.fsync(fd)
    buffer = aligned(65536)

    def compare(what):
        for at in range(0, size - 65536, 32768):
            equal(os.preadv(fd, [buffer], at), 65536)
            equal(buffer[:], bytes(model[at : at + 65536]), f'{what}, read from {at}')

    compare('as written')
    plain = os.open('f', os.O_RDWR)
    for at in range(step, size, step):
        model[at + 8192 : at + 12288] = os.urandom(4096)
        os.pwrite(plain, model[at + 8192 : at + 12288], at + 8192)
    os.fsync(plain)
    compare('overwritten')
    for at in range(step, size, step):
        fallocate(plain, FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE, at + 4000, 5000)
        model[at + 4000 : at + 9000] = bytes(5000)
    compare('punched')
    for at in range(step, size, step):
        equal(os.copy_file_range(plain, plain, 4096, 100, at + 20000), 4096)
        model[at + 20000 : at + 24096] = model[100:4196]
    compare('copied')
    os.ftruncate(plain, 4 * step + 100)
    os.ftruncate(plain, size)
    model[4 * step + 100 :] = bytes(size - 4 * step - 100)
    compare('cut')


def random_operations_match_a_model(v):
    """Thousands of random writes, truncates, punches, copies and stores equal an array in
    memory."""
    _against_model(v, 1, 3000, 0)


def random_operations_match_a_model_without_mmap(v):
    """The same without mappings and with another order of events."""
    _against_model(v, 2, 3000, 0, shared_ok=False)


def random_operations_match_a_model_cold(v):
    """The same with a remount every 60 operations, so that bytes come from disk."""
    _against_model(v, 3, 900, 60)


@case(timeout=120)
def random_operations_by_four_processes(v):
    """Four such files at once do not mix."""

    def body(k):
        os.mkdir(f'p{k}')
        os.chdir(f'p{k}')
        _against_model(v, 10 + k, 1200, 0)

    pids = []
    for k in range(4):
        pid = os.fork()
        if pid == 0:
            try:
                in_child(lambda: body(k))
                os._exit(0)
            except BaseException as error:  # pylint: disable=broad-except
                print(error, flush=True)
                os._exit(1)
        pids.append(pid)
    equal([os.waitpid(pid, 0)[1] for pid in pids], [0, 0, 0, 0])

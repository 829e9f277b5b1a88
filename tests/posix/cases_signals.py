"""Signals to who waits for the file system: a killed process ends at once, a signal ends a wait
that POSIX lets it end, and nothing happens that the caller was told has not."""
import os
import signal
import struct
import time

from support import case, check, code, create, equal, get, needs, put, sh_ok
from cases_full_disk import _disk
from volume import counter, wait_until

CHUNK = 1 << 20


def _waits_in_kernel(pid):
    """Whether the process waits for an answer of the daemon."""
    with open(f'/proc/{pid}/wchan', encoding='ascii') as name:
        return name.read().startswith(('request_wait_answer', '__fuse_', 'fuse_'))


def _caller(function):
    """A child that runs `function` with a pipe to write to."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            function(writer)
        finally:
            os._exit(0)
    os.close(writer)
    return pid, reader


def _frozen(inside):
    class Freeze:
        """The disk below answers nothing meanwhile."""

        def __enter__(self):
            sh_ok(f'fsfreeze -f {inside}')

        def __exit__(self, *_):
            sh_ok(f'fsfreeze -u {inside}')

    return Freeze()


def _ends(pid, seconds):
    """Exit status, once the process has ended; it may not take longer."""
    end = time.monotonic() + seconds
    status = []

    def ended():
        done, how = os.waitpid(pid, os.WNOHANG)
        if done:
            status.append(how)
        return done

    wait_until(ended, seconds, 'end of a process that was sent a signal')
    check(time.monotonic() < end)
    return os.waitstatus_to_exitcode(status[0])


@case(mounted=True, mount=False, check=False, timeout=120)
def kill_of_a_caller_of_a_dead_disk_ends_it(v):
    """While the disk below does not answer, kill -9 ends a process in fsync at once; afterwards all
    goes on."""
    needs('fsfreeze')
    with _disk(v, 'ext4') as inside:
        fd = create('f')
        os.write(fd, b'x' * 100)
        with _frozen(inside):
            pid, _ = _caller(lambda _: os.fsync(fd))
            wait_until(lambda: _waits_in_kernel(pid), 10, 'the wait for fsync')
            os.kill(pid, signal.SIGKILL)
            equal(_ends(pid, 5), -signal.SIGKILL)
            equal(os.stat('f').st_size, 100)
        os.fsync(fd)
        os.close(fd)
        v.crash()
        equal(get('f'), b'x' * 100)


@case(mounted=True, mount=False, check=False, timeout=120)
def signal_ends_a_sync_of_a_dead_disk(v):
    """A signal with a handler ends an fsync that the disk does not answer with EINTR, and an fsync
    after that is whole."""
    needs('fsfreeze')
    with _disk(v, 'ext4') as inside:
        fd = create('f')
        os.write(fd, b'x' * 100)

        def sync(writer):
            def leave(*_):
                raise InterruptedError(4, 'signal')

            signal.signal(signal.SIGUSR1, leave)
            os.write(writer, code(os.fsync, fd).encode())

        with _frozen(inside):
            pid, reader = _caller(sync)
            wait_until(lambda: _waits_in_kernel(pid), 10, 'the wait for fsync')
            os.kill(pid, signal.SIGUSR1)
            equal(_ends(pid, 10), 0)
            equal(os.read(reader, 100), b'EINTR')
        os.fsync(fd)
        os.close(fd)


@case(mounted=True, mount=False, check=False, timeout=120, options='write_buffer=4M')
def write_of_a_killed_process_never_comes_later(v):
    """A process that waits in write() for a disk that does not answer ends by kill -9, and has
    written nothing but what the write before returned, also when the disk answers again."""
    needs('fsfreeze')
    with _disk(v, 'ext4') as inside:
        put('f', bytes(CHUNK))  # so that there is a segment to write to
        os.sync()

        def write(writer):
            with open('f', 'r+b', buffering=0) as file:
                for i in range(1, 100):
                    file.write(bytes([i]) * CHUNK)
                    os.write(writer, struct.pack('I', i))

        with _frozen(inside):
            pid, reader = _caller(write)
            os.set_blocking(reader, False)
            told, since = [0], [time.monotonic()]

            def is_stuck_for_long():  # not only between two writes
                try:
                    told.extend(n for (n,) in struct.iter_unpack('I', os.read(reader, 4096)))
                    since[0] = time.monotonic()
                except BlockingIOError:
                    if not _waits_in_kernel(pid):
                        since[0] = time.monotonic()
                return time.monotonic() - since[0] > 1

            wait_until(is_stuck_for_long, 30, 'a write that waits')
            os.kill(pid, signal.SIGKILL)
            equal(_ends(pid, 5), -signal.SIGKILL)
            acknowledged = told[-1]
            check(acknowledged < 99)
        put('later', os.urandom(8 * CHUNK))
        os.sync()
        want = b''.join(bytes([i]) * CHUNK for i in range(1, acknowledged + 1)) or bytes(CHUNK)
        equal(get('f'), want)
        v.cold()
        equal(get('f'), want)


@case(mounted=True)
def killed_callers_leave_no_inode_behind(v):
    """Processes that are killed while they look up, list and create leave the daemon knowing no
    inode more once the kernel has dropped its caches."""
    for i in range(200):
        put(f'f{i}', b'x')

    def known():
        def settled():
            with open('/proc/sys/vm/drop_caches', 'w', encoding='ascii') as knob:
                knob.write('2')
            found.append(counter(v.stat(), 'held_inodes'))
            return len(found) > 2 and found[-1] == found[-2]

        found = []
        wait_until(settled, 30, 'a number of inodes that stays')
        return found[-1]

    before = known()

    def act(_):
        for i in range(10**6):
            os.listdir('.')
            for name in os.scandir('.'):
                name.stat()
            os.close(create(f'g{os.getpid()}.{i}'))
            os.unlink(f'g{os.getpid()}.{i}')

    for _ in range(60):
        pid, reader = _caller(act)
        wait_until(lambda p=pid: _waits_in_kernel(p), 10, 'a call that waits')
        os.kill(pid, signal.SIGKILL)
        _ends(pid, 10)
        os.close(reader)
        with open('/proc/sys/vm/drop_caches', 'w', encoding='ascii') as knob:
            knob.write('2')
    for name in os.listdir('.'):
        if name.startswith('g'):
            os.unlink(name)
    check(known() <= before, f'{known()} inodes, {before} before')

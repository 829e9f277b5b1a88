"""flock(2) and fcntl(2) locks between nodes."""
import errno
import fcntl
import mmap
import os
import signal
import struct

from cluster import FAILOVER_S
from jobs import Job, barrier, together, within
from support import case, check, code, equal, fails, get, put
from volume import wait_until

SYSCALLS = {'flock': '73', 'lockf': '72'}
EXCLUSIVE, SHARED, TRY = fcntl.LOCK_EX, fcntl.LOCK_SH, fcntl.LOCK_NB


def _make(path, data=b'x'):
    """The file, once the nodes have found each other."""

    def made():
        try:
            put(path, data)
            return True
        except OSError as error:
            equal(error.errno, errno.EHOSTUNREACH, 'a write at first')
            return False

    wait_until(made, 20, 'the way between the nodes')


def _flock(path, how, inherited=None):
    """Opens, locks and leaves the file open for the rest of the process; returns its bytes. An
    inherited file would keep its flock."""
    if inherited is not None:
        os.close(inherited)
    fd = os.open(path, os.O_RDWR)
    fcntl.flock(fd, how)
    return os.read(fd, 100)


def _lockf(path, how, *byte_range):
    fcntl.lockf(os.open(path, os.O_RDWR), how, *byte_range)


def _first_holder(path, length, start):
    """Type, start and length as F_GETLK tells them to a writer."""
    fd = os.open(path, os.O_RDWR)
    form = 'hhqqi4x'
    asked = struct.pack(form, fcntl.F_WRLCK, os.SEEK_SET, start, length, 0)
    kind, _, first, size, _ = struct.unpack(form, fcntl.fcntl(fd, fcntl.F_GETLK, asked))
    return kind, first, size


def _waiting(function, *args, call='flock'):
    """A job that waits for a lock: the lock call has been made and does not come back."""
    job = Job(function, *args)

    def is_in_call():
        with open(f'/proc/{job.pid}/syscall', encoding='ascii') as now:
            return now.read().split()[0] == SYSCALLS[call] or job.ended()

    wait_until(is_in_call, 20, 'the call that locks')
    check(not job.ended(), 'the lock was given')
    return job


@case(plain=True)
def flock_excludes_on_every_node(c):
    """An exclusive flock of one node excludes all others, shared ones live together."""
    path = [node.path('f') for node in c.nodes]
    _make(path[0])
    fd = os.open(path[0], os.O_RDWR)
    fcntl.flock(fd, EXCLUSIVE)
    for other in path[1:]:
        fails('EAGAIN', within, 20, _flock, other, EXCLUSIVE | TRY)
        fails('EAGAIN', within, 20, _flock, other, SHARED | TRY)
    fcntl.flock(fd, SHARED)
    for other in path[1:]:
        within(20, _flock, other, SHARED | TRY)
        fails('EAGAIN', within, 20, _flock, other, EXCLUSIVE | TRY)
    fcntl.flock(fd, fcntl.LOCK_UN)
    for other in path[1:]:
        within(20, _flock, other, EXCLUSIVE | TRY)
    os.close(fd)


@case(plain=True)
def waiter_gets_the_lock_and_the_bytes(c):
    """Who waits for a lock gets it when the holder unlocks or closes, and sees what was written."""
    one, two = (node.path('f') for node in c.nodes[:2])
    for number, closes in enumerate((False, True)):
        _make(one, b'old')
        equal(get(two), b'old')
        fd = os.open(one, os.O_RDWR)
        fcntl.flock(fd, EXCLUSIVE)
        job = _waiting(_flock, two, EXCLUSIVE, fd)
        os.write(fd, b'new%d' % number)
        if closes:
            os.close(fd)
        else:
            fcntl.flock(fd, fcntl.LOCK_UN)
        equal(job.result(20), b'new%d' % number, 'what the next holder reads')
        if not closes:
            os.close(fd)


@case(plain=True)
def open_file_shows_new_bytes_under_a_lock(c):
    """A counter in a file that stays open on every node is exact under the lock."""
    rounds = 20 * c.more
    _make(c.nodes[0].path('n'), bytes(8))
    jobs = [Job(_count, node.path('n'), rounds) for node in c.nodes]
    for job in jobs:
        job.result(50 * c.more)
    equal(struct.unpack('q', get(c.nodes[0].path('n')))[0], rounds * len(c.nodes), 'the counter')


def _change_mapped(path, rounds, gate):
    """Changes bytes from the page's begin on through a mapping that stays, in turn with the other
    one."""
    fd = os.open(path, os.O_RDWR)
    mapped = mmap.mmap(fd, 4096)
    for number in range(rounds):
        fcntl.lockf(fd, EXCLUSIVE)
        mapped[number] = 1 + number
        mapped.flush()
        fcntl.lockf(fd, fcntl.LOCK_UN)
        gate.wait()


def _change_written(path, rounds, gate):
    """The same from its end on, with write(2)."""
    fd = os.open(path, os.O_RDWR)
    for number in range(rounds):
        fcntl.lockf(fd, EXCLUSIVE)
        os.pwrite(fd, bytes([1 + number]), 4095 - number)
        os.fsync(fd)
        fcntl.lockf(fd, fcntl.LOCK_UN)
        gate.wait()


@case(plain=True)
def mapped_page_keeps_both_changes_under_a_lock(c):
    """One node changes a page through a mapping, the other one writes to it, each under the lock:
    neither takes back what the other one did."""
    rounds, gate = 30, barrier(2)
    _make(c.nodes[0].path('f'), bytes(4096))
    together(
        50,
        (_change_mapped, c.nodes[0].path('f'), rounds, gate),
        (_change_written, c.nodes[1].path('f'), rounds, gate),
    )
    done = bytes(range(1, rounds + 1))
    for node in c.nodes:
        equal(get(node.path('f')), done + bytes(4096 - 2 * rounds) + done[::-1], f'on {node.name}')


def _lock_description(fd, start, length):
    """A lock of the open file description, without a wait."""
    asked = struct.pack('hhqqi4x', fcntl.F_WRLCK, os.SEEK_SET, start, length, 0)
    fcntl.fcntl(fd, fcntl.F_OFD_SETLK, asked)


@case(plain=True)
def lock_of_a_description_goes_with_its_last_close(c):
    """A lock of an open file description excludes others until the last descriptor of it is
    closed, whichever process does it, and no longer."""
    one, two = c.nodes[0].path('f'), c.nodes[1].path('f')
    _make(one, bytes(100))
    first, second = os.open(one, os.O_RDWR), os.open(one, os.O_RDWR)
    elsewhere, copy = os.open(two, os.O_RDWR), os.dup(first)
    _lock_description(first, 0, 10)
    for other in (second, elsewhere):
        fails('EAGAIN', _lock_description, other, 5, 10)
    _lock_description(second, 10, 10)
    os.close(first)
    within(20, os.close, copy)  # in another process: it has one, too
    fails('EAGAIN', _lock_description, second, 5, 1)
    os.close(copy)
    for other, start in ((second, 5), (elsewhere, 0)):
        wait_until(
            lambda fd=other, at=start: not code(_lock_description, fd, at, 1), 20, 'the lock'
        )
    os.close(os.open(one, os.O_RDWR))
    fails('EAGAIN', _lock_description, elsewhere, 15, 1)
    os.close(second)
    os.close(elsewhere)


def _count(path, rounds):
    fd = os.open(path, os.O_RDWR)
    for _ in range(rounds):
        fcntl.lockf(fd, EXCLUSIVE)
        number = struct.unpack('q', os.pread(fd, 8, 0))[0]
        os.pwrite(fd, struct.pack('q', number + 1), 0)
        fcntl.lockf(fd, fcntl.LOCK_UN)


@case(plain=True)
def ranges_exclude_where_they_overlap(c):
    """fcntl locks exclude byte by byte, F_GETLK names the first in the way, a close drops all."""
    one, two = (node.path('f') for node in c.nodes[:2])
    _make(one)
    fd = os.open(one, os.O_RDWR)
    fcntl.lockf(fd, EXCLUSIVE, 100, 0)
    fcntl.lockf(fd, fcntl.LOCK_UN, 20, 40)
    within(20, _lockf, two, EXCLUSIVE | TRY, 20, 40)
    fails('EAGAIN', within, 20, _lockf, two, SHARED | TRY, 21, 40)
    equal(within(20, _first_holder, two, 0, 0), (fcntl.F_WRLCK, 0, 40))
    equal(within(20, _first_holder, two, 0, 40), (fcntl.F_WRLCK, 60, 40))
    equal(within(20, _first_holder, two, 20, 40)[0], fcntl.F_UNLCK)
    within(20, _flock, two, EXCLUSIVE | TRY)  # the other kind
    job = _waiting(_lockf, two, EXCLUSIVE, call='lockf')
    os.close(os.open(one, os.O_RDONLY))  # any descriptor of the file
    job.result(20)
    os.close(fd)


def _deadlock(path, ours, theirs):
    fd = os.open(path, os.O_RDWR)
    fcntl.lockf(fd, EXCLUSIVE, 1, ours)
    fcntl.lockf(fd, EXCLUSIVE, 1, theirs)


@case(plain=True)
def deadlock_between_nodes_is_found(c):
    """Of two processes that would wait for each other's range the second gets EDEADLK."""
    one, two = (node.path('f') for node in c.nodes[:2])
    _make(one)
    fd = os.open(one, os.O_RDWR)
    fcntl.lockf(fd, EXCLUSIVE, 1, 0)
    job = _waiting(_deadlock, two, 1, 0, call='lockf')
    wait_until(lambda: within(20, _first_holder, one, 1, 1)[0] != fcntl.F_UNLCK, 20, 'their lock')
    # Whichever call the log has first waits; the other one is told.
    error = code(fcntl.lockf, fd, EXCLUSIVE, 1, 1)
    check(error in ('', 'EDEADLK'), f'the call here: {error}')
    os.close(fd)
    equal(code(job.result, 20), '' if error else 'EDEADLK', 'the call there')


def _interrupted(path):
    def stop(*_):
        raise InterruptedError(errno.EINTR, 'signal')

    signal.signal(signal.SIGUSR1, stop)
    _flock(path, EXCLUSIVE)


@case(plain=True)
def signal_ends_a_wait(c):
    """A signal ends a wait with EINTR, and the lock is not given to who waits no more."""
    one, two = (node.path('f') for node in c.nodes[:2])
    _make(one)
    fd = os.open(one, os.O_RDWR)
    fcntl.flock(fd, EXCLUSIVE)
    job = _waiting(_interrupted, two)
    os.kill(job.pid, signal.SIGUSR1)
    fails('EINTR', job.result, 20)
    job = _waiting(_flock, two, EXCLUSIVE)
    os.kill(job.pid, signal.SIGKILL)
    wait_until(job.ended, 20, 'the end of a killed waiter')
    os.close(fd)
    within(20, _flock, two, EXCLUSIVE)  # the kernel tells of a last close a moment later


@case()
def killed_daemon_gives_its_locks_away(c):
    """A lock of a node whose daemon was killed goes to the waiter when its lease has ended."""
    one, two = c.nodes[:2]
    _make(one.path('f'))
    holder = Job(_hold, one.path('f'))
    wait_until(lambda: _is_held(two.path('f')), 20, 'the lock')
    job = _waiting(_flock, two.path('f'), EXCLUSIVE)
    one.kill9()
    job.result(FAILOVER_S + 15)
    holder.stop()


def _hold(path):
    _flock(path, EXCLUSIVE)
    signal.pause()


def _is_held(path):
    try:
        within(20, _flock, path, EXCLUSIVE | TRY)
    except BlockingIOError:
        return True
    return False

"""Nodes whose session ended under their mount, and what programs with open files notice."""
import fcntl
import os
import time

from cases_failures import serves_again
from cluster import FAILOVER_S, refused
from jobs import Job, barrier, timed, within
from oracle import tree
from support import case, check, code, equal, get, put


def _locked(path):
    fd = os.open(path, os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    return fd


def _write_under_lock(path, gates):
    """Holds a lock and writes; and again after the others had it. Returns what each call said."""
    fd = _locked(path)
    os.pwrite(fd, b'before', 0)
    os.fsync(fd)
    os.pwrite(fd, b'unsynced', 0)
    gates[0].wait()
    gates[1].wait()
    said = [code(os.pwrite, fd, b'too late', 0), code(os.fsync, fd), code(os.pread, fd, 4, 0)]
    said += [code(fcntl.flock, fd, fcntl.LOCK_EX | fcntl.LOCK_NB), code(os.close, fd)]
    return said


@case(timeout=90)
def late_writes_of_a_lost_lock_do_not_land(c):
    """A node is stopped while a program has a lock. Another node gets the lock within the lease and
    writes; the stopped one comes back under its mount, and nothing of its program lands: it gets
    EIO until it closes the file, and may open it anew."""
    one, two, three = c.nodes
    put(one.path('f'), b'x' * 8)
    gates = [barrier(2) for _ in range(2)]
    holder = Job(_write_under_lock, one.path('f'), gates)
    gates[0].wait()
    one.stop()

    def take_over():
        fd = _locked(two.path('f'))
        os.pwrite(fd, b'the next', 0)
        os.close(fd)

    took, _ = timed(within, 40, take_over)
    print(f'  the lock came after {took:.2f} s')
    check(took <= FAILOVER_S, f'the lock of a stopped node came after {took:.2f} s')
    one.cont()
    gates[1].wait()
    said = holder.result(40)
    print(f'  what the late holder was told: {said}')
    errors = {'EIO', 'ETIMEDOUT'}  # ETIMEDOUT until the node has found out
    check(set(said[:4]) <= errors and 'EIO' in said, f'calls with a lost lock: {said}')
    equal(said[4], 'EIO', 'its close')
    serves_again(one, 'f', b'the next')
    for node in (two, three):
        equal(get(node.path('f')), b'the next', f'on {node.name}')
    within(20, put, one.path('f'), b'and again')
    equal(get(three.path('f')), b'and again', 'a new handle of the node that was stopped')


def _write_unsynced(path, gates):
    fd = os.open(path, os.O_RDWR)
    gates[0].wait()
    gates[1].wait()
    os.pwrite(fd, b'mine', 0)
    gates[2].wait()
    gates[3].wait()
    said = []
    for _ in range(2):
        end = time.monotonic() + 30
        while (got := code(os.fsync, fd)) == 'ETIMEDOUT' and time.monotonic() < end:
            time.sleep(0.1)
        said.append(got)
    seen = os.pread(fd, 8, 0)
    os.close(fd)
    return said, seen


def _overwrite(path, data):
    fd = os.open(path, os.O_RDWR)
    os.pwrite(fd, data, 0)
    os.fsync(fd)
    os.close(fd)


@case(timeout=90)
def unsynced_bytes_of_a_lost_session_are_written_or_told(c):
    """A node is cut off, and then has bytes that are not synced. What nobody else wrote meanwhile
    is there after the next fsync; where somebody did, with or without a truncation, the first fsync
    says EIO, once, and theirs stay."""
    one, two, three = c.nodes
    names = ('kept', 'replaced', 'overwritten')
    for name in names:
        put(one.path(name), b'old!')
    gates = [barrier(4) for _ in range(4)]
    jobs = [Job(_write_unsynced, one.path(name), gates) for name in names]
    gates[0].wait()
    one.host.cut()
    gates[1].wait()
    gates[2].wait()
    within(FAILOVER_S + 20, _overwrite, two.path('overwritten'), b'their')
    within(FAILOVER_S + 20, put, two.path('replaced'), b'their')
    one.host.join()
    serves_again(one, 'replaced', b'their')
    gates[3].wait()
    kept, *lost = [job.result(60) for job in jobs]
    equal(kept, (['', ''], b'mine'), 'fsync of a file that nobody else wrote')
    for got in lost:
        equal(got, (['EIO', ''], b'their'), 'fsync of a file that another node wrote meanwhile')
    for node in c.nodes:
        for name in names[1:]:
            equal(get(node.path(name)), b'their', f'on {node.name}')
        equal(get(node.path('kept')), b'mine', f'on {node.name}')
    same = within(20, tree, three.mnt)
    equal(within(20, tree, one.mnt), same, 'what the node shows that was cut off')


@case(timeout=90)
def removed_file_is_stale_after_a_lost_session(c):
    """A file that is open on a node without a session loses its last name elsewhere: the handle
    answers ESTALE from then on, other handles are as they were."""
    one, two, _ = c.nodes
    for name in ('gone', 'there'):
        put(two.path(name), name.encode())
    gone, there = [os.open(one.path(name), os.O_RDWR) for name in ('gone', 'there')]
    one.host.cut()
    within(FAILOVER_S + 20, os.unlink, two.path('gone'))
    one.host.join()
    serves_again(one, 'there', b'there')
    got = code(os.pread, gone, 4, 0)  # the kernel asks for the attributes before
    check(got in ('ESTALE', 'ENOENT'), f'a read of it: {got}')
    equal(code(os.pwrite, gone, b'x', 0), 'ESTALE', 'a write')
    equal(code(os.fsync, gone), 'ESTALE', 'an fsync')
    equal(code(os.close, gone), 'ESTALE', 'its close')
    equal(os.pread(there, 9, 0), b'there', 'a read of another one')
    os.close(there)


def _files_in_use(path):
    """Opens, reads and writes one file all the time, through one handle and new ones."""
    fd = os.open(path, os.O_RDWR)
    for number in range(10_000):
        code(os.pwrite, fd, b'%07d' % number, 0)
        code(get, path)
        if os.path.exists(path + '.stop'):
            return number
        time.sleep(0.01)
    return 0


@case(timeout=120)
def node_comes_back_again_and_again(c):
    """A node that is cut off or stopped three times, with programs at work, joins again each time
    under the same mount and the same daemon."""
    one, two, three = c.nodes
    put(three.path('busy'), b'0000000')
    busy = Job(_files_in_use, three.path('busy'))
    daemon = three.pid()
    for number in range(3):
        begin, end = (three.stop, three.cont) if number == 1 else (three.host.cut, three.host.join)
        begin()
        within(FAILOVER_S + 20, put, one.path('f'), b'%d' % number)
        end()
        serves_again(three, 'f', b'%d' % number)
        within(20, put, three.path('g'), b'g%d' % number)
        equal(get(two.path('g')), b'g%d' % number, 'its change on another node')
    put(one.path('busy.stop'), b'')
    rounds = busy.result(60)
    print(f'  {rounds} rounds of the program that used a file')
    check(rounds > 2, 'the program that used a file')  # it waits most of the time
    equal(three.pid(), daemon, 'its daemon')
    trees = [within(20, tree, node.mnt) for node in c.nodes]
    equal(trees[1:], trees[:1] * 2, 'what the nodes show')


@case(timeout=120)
def evicted_node_is_out_until_it_is_called_back(c):
    """kvsyncfs-ctl evict ends the session of a node that is up: it changes nothing any more, can
    neither go on nor be mounted anew, and joins again by itself when it is called back."""
    one, two, three = c.nodes
    put(three.path('f'), b'before')
    daemon = three.pid()

    def evict(*words):
        done = one.tool('kvsyncfs-ctl', one.store, 'evict', three.name, *words)
        equal((done.returncode, done.stderr), (0, ''), f'evict {words}')

    evict()
    got = within(40, code, os.mkdir, three.path('d'))
    equal(got, 'ETIMEDOUT', 'a change of the node that was sent away')
    took, _ = timed(within, FAILOVER_S + 20, put, two.path('f'), b'without it')
    check(took <= FAILOVER_S, f'a change of another node took {took:.2f} s')
    check(not os.path.exists(one.path('d')), 'what it was to change')
    shown = one.tool('kvsyncfs-ctl', one.store, 'nodes').stdout
    check('evicted' in shown, shown)
    time.sleep(2)
    equal(within(40, code, os.mkdir, three.path('d')), 'ETIMEDOUT', 'it has not joined again')
    evict('--cancel')
    serves_again(three, 'f', b'without it')
    within(20, put, three.path('g'), b'again')
    equal(get(two.path('g')), b'again', 'its change on another node')
    equal(three.pid(), daemon, 'its daemon')

    evict()
    three.kill9()
    refused(three, 'evict --cancel')
    evict('--cancel')
    three.mount()
    serves_again(three, 'g', b'again')

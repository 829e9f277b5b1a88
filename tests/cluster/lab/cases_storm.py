"""Every fault in turn, while both nodes are written and judged all the time; --more N takes N times
as long, --seed N another order."""
import os
import random
import time

from cases_failures import same_trees
from jobs import Hang, Job, within
from namespaces import cut_between, join_between
from scribe import BLOCK, Notes, Scribe, block_of, judge, judge_on
from support import case, check, equal, put
from volume import wait_until

STORM_S = 75
BACK_S = 30


def _serves(node):
    try:
        within(BACK_S, put, node.path('probe'), node.name.encode())
        return node.mounted()
    except (OSError, Hang):
        return False


def _bring_back(c):
    """Every node serves; one whose session ended is mounted anew. None can change anything alone,
    so all that do not serve are mounted first."""
    for node in [n for n in c.nodes if n.pid() is None or not _serves(n)]:
        node.abort()
        node.detach()
        node.mount()
    for node in c.nodes:
        wait_until(lambda n=node: _serves(n), 2 * BACK_S, f'{node.name} serves')


def _kill(c, rng):
    node = rng.choice(c.nodes)
    node.kill9()
    time.sleep(rng.random() * 4)
    node.mount()


def _stop(c, rng):
    node = rng.choice(c.nodes)
    node.stop()
    time.sleep(rng.random() * 9)
    node.cont()


def _slow(c, rng):
    """A node that hardly runs."""
    node = rng.choice(c.nodes)
    for _ in range(20):
        node.stop()
        time.sleep(0.15)
        node.cont()
        time.sleep(0.02)


def _cut(c, rng):
    one, two = (node.host for node in c.nodes[:2])
    cut_between(one, two)
    time.sleep(rng.random() * 9)
    join_between(one, two)


def _cut_one_way(c, rng):
    one, two = rng.sample([node.host for node in c.nodes], 2)
    one.lose_packets_to(two)
    time.sleep(rng.random() * 9)
    one.reach(two)


def _cut_from_etcd(c, rng):
    host = rng.choice(c.nodes).host
    cut_between(host, c.etcd.hosts[0])
    time.sleep(rng.random() * 9)
    join_between(host, c.etcd.hosts[0])


def _restart_etcd(c, rng):
    c.etcd.kill9(0)
    time.sleep(rng.random() * 4)
    c.etcd.start(0)
    c.etcd.wait_healthy()


def _fill_up(path):
    try:
        with open(path, 'wb', buffering=0) as file:
            while True:
                file.write(os.urandom(1 << 20))
    except OSError:
        pass
    for _ in range(20):
        try:
            os.unlink(path)
            return
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.5)


def _fill(c, rng):
    try:
        within(BACK_S, _fill_up, rng.choice(c.nodes).path('filler'))
    except Hang:
        pass


FAULTS = [_kill, _stop, _slow, _cut, _cut_one_way, _cut_from_etcd, _restart_etcd, _fill]


def _storm(c, rng):
    end = time.monotonic() + STORM_S * c.more
    turn = []
    while time.monotonic() < end:
        if not turn:
            turn = rng.sample(FAULTS, len(FAULTS))
        fault = turn.pop()
        started = time.monotonic()
        fault(c, rng)
        _bring_back(c)
        print(f'  {fault.__name__[1:]}: {time.monotonic() - started:.1f} s', flush=True)
        time.sleep(0.5)


@case(nodes=2, size='256M', timeout=190)
def acknowledged_bytes_outlive_a_storm(c):
    """Nodes are killed, stopped, slowed, cut off and filled up, etcd is restarted: what was
    acknowledged is seen on both nodes at any time, and at the end both show the same."""
    print(f'  seed {c.seed}')
    rng = random.Random(c.seed)
    mark = os.path.join(c.root, 'end')
    notes, jobs = {}, []
    for node, other in zip(c.nodes, c.nodes[::-1]):
        os.mkdir(node.path(node.name))
        note = notes[node.name] = os.path.join(c.root, f'note.{node.name}')
        jobs.append(Job(Scribe(node.mnt, node.name, note, rng.random()).work, mark))
        jobs.append(Job(judge_on, other.mnt, node.name, note, mark))
    _storm(c, rng)
    put(mark, b'')
    results = [job.result(2 * BACK_S) for job in jobs]
    _bring_back(c)
    for node in c.nodes:
        for name, note in notes.items():
            complaints = within(BACK_S, judge, node.mnt, name, Notes(note), True)
            equal(complaints, [], f'what {node.name} shows of {name}')
    for (looks, complaints), steps in zip(results[1::2], results[0::2]):
        print(f'  {steps} changes, {looks} looks')
        equal(complaints, [], 'what was seen meanwhile')
        check(steps > 50 and looks > 5, f'{steps} changes, {looks} looks')
    for note in notes.values():
        known = Notes(note)
        known.read()
        check(known.acknowledged > 20, f'{known.acknowledged} changes were acknowledged')
    same_trees(c.nodes)


@case(cluster=False)
def storm_judge_sees_what_is_wrong(c):
    """Lost, foreign and returned bytes and names are found where they are."""
    folder, note = os.path.join(c.root, 'mnt'), os.path.join(c.root, 'note')
    os.makedirs(os.path.join(folder, 'w'))
    put(note, b'begin f0.1 7 1\nack f0.1 7 1\nbegin f0.1 8 1\nbegin n1 9 0\nack n1 9 0\n')

    def complaints(block, names=()):
        put(os.path.join(folder, 'w', 'f0'), bytes(BLOCK) + block)
        for name in names:
            put(os.path.join(folder, 'w', name))
        return judge(folder, 'w', Notes(note), True)

    for number in (7, 8):
        equal(complaints(block_of('w.f0.1', number)), [], f'change {number}')
    equal(len(complaints(block_of('w.f0.1', 6))), 1, 'an older one')
    equal(len(complaints(b'')), 1, 'none')
    equal(len(complaints(block_of('w.f0.2', 7))), 1, 'bytes of another block')
    equal(len(complaints(block_of('w.f0.1', 7)[:-1] + b'x')), 1, 'a torn block')
    equal(len(complaints(block_of('w.f0.1', 7), ['n1'])), 1, 'a removed name')

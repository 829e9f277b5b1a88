"""Nodes that are killed again while they come back, and what waits for them."""
import fcntl
import os
import random
import time

from cases_failures import SMALL_CACHE, same_trees
from cluster import FAILOVER_S
from jobs import Job, timed, within
from oracle import tree
from races import digest, read_on
from support import case, check, equal, put, write_synced


def _names_stay(mnt, seconds):
    """Looks all the time: one folder with its 60 files is there under one of two names."""
    end, looks = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        names = set(os.listdir(mnt)) & {'d', 'e'}
        equal(len(names), 1, 'names of the folder that is moved')
        folder = os.path.join(mnt, names.pop())
        try:
            equal(len(os.listdir(folder)), 60, f'files in {folder}')
        except FileNotFoundError:
            pass  # it was moved in between
        looks += 1
        time.sleep(0.005)
    return looks


@case(timeout=110)
def node_is_killed_again_while_it_comes_back(c):
    """A node missed that a folder was moved and another one removed, and is killed twice while it
    catches up: no name comes back or is doubled anywhere, and it shows the present in the end."""
    one, two, three = c.nodes
    rng = random.Random(c.seed)
    os.mkdir(one.path('d'))
    os.mkdir(one.path('goes'))
    for number in range(60):
        put(one.path('d', f'f{number}'), rng.randbytes(3000))
        put(one.path('goes', f'f{number}'), rng.randbytes(3000))
    three.kill9()
    os.rename(two.path('d'), two.path('e'))
    for number in range(60):
        os.unlink(two.path('goes', f'f{number}'))
    os.rmdir(two.path('goes'))
    want = same_trees([one, two])
    looking = Job(_names_stay, one.mnt, 12)
    for _ in range(2):
        starting = Job(three.mount, None)
        time.sleep(0.15 + rng.random() * 0.5)
        if three.pid():
            three.kill9()
        starting.stop()
    three.detach()
    three.mount()
    equal(within(30, tree, three.mnt), want, 'what the node shows that is back')
    print(f'  {looking.result(60)} looks')
    equal(same_trees([one, two]), want, 'what the others show then')


@case(options=SMALL_CACHE, timeout=110)
def holders_that_die_in_turn_fail_no_read(c):
    """Two holders are killed and come back in turn, four times, while programs on the third node
    read: each read succeeds with the right bytes, and the nodes are as good as before."""
    one, two, three = c.nodes
    paths, digests = [], []
    for number in range(40):
        data = random.Random(number).randbytes(200 << 10)
        write_synced(c.nodes[number % 2].path(f'f{number}'), data)
        paths.append(three.path(f'f{number}'))
        digests.append(digest(data))
    readers = [Job(read_on, paths[i:] + paths[:i], digests[i:] + digests[:i], 24) for i in range(8)]
    for number in range(4):
        node = c.nodes[number % 2]
        node.kill9()
        time.sleep(1)
        node.mount()
        c.settle()
    gaps = [reader.result(60) for reader in readers]
    print('  ' + ', '.join(f'{gap * 1000:.0f} ms in {n} reads' for gap, n in gaps))
    check(max(gap for gap, _ in gaps) <= 2, f'(longest gap in s, reads) of the readers: {gaps}')
    same_trees(c.nodes)


def _lock(path, how):
    fd = os.open(path, os.O_RDWR)
    fcntl.flock(fd, how)
    return fd


@case(timeout=100)
def restarted_node_waits_for_no_lock_of_its_own(c):
    """Locks of a daemon that was killed, shared ones too, are in nobody's way a lease later: not in
    that of other nodes, nor of the same node, which is started at once."""
    one, two, _ = c.nodes
    for name in ('shared', 'own'):
        put(two.path(name))
    held = [_lock(one.path('shared'), fcntl.LOCK_SH), _lock(two.path('shared'), fcntl.LOCK_SH)]
    held.append(_lock(one.path('own'), fcntl.LOCK_EX))
    other = Job(_lock, two.path('own'), fcntl.LOCK_EX)
    os.close(held.pop(1))
    one.kill9()
    one.mount()
    started = time.monotonic()
    took, _ = timed(within, FAILOVER_S + 15, _lock, one.path('own'), fcntl.LOCK_EX)
    other.result(FAILOVER_S + 15)
    took_shared, _ = timed(within, FAILOVER_S + 15, _lock, two.path('shared'), fcntl.LOCK_EX)
    print(f'  {took:.2f} s here, {took_shared:.2f} s there')
    check(time.monotonic() - started <= FAILOVER_S, 'the locks came later than the lease')

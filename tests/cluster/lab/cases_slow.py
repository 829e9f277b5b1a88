"""A node that is far away: each of its packets takes its time, to etcd as well."""
import os
import random
import statistics

from cases_failures import SMALL_CACHE, same_trees
from jobs import Job, barrier, timed, within
from races import read_uncached
from support import case, check, code, equal, get, put, write_synced
from volume import counter

WAY_MS = 40  # in each direction
COUNT = 12


def _median_ms(calls):
    times = [timed(within, 30, *call)[0] for call in calls]
    check(max(times) <= 3, f'a call took {max(times):.2f} s')
    return statistics.median(times) * 1000


def _append(path, who, gate):
    """open(O_CREAT) of one name on all nodes at the same moment, and a record."""
    for number in range(COUNT):
        gate.wait()
        fd = os.open(f'{path}{number}', os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
        os.write(fd, f'{who}\n'.encode())
        os.close(fd)


@case(options=SMALL_CACHE, timeout=100)
def far_node_is_slow_and_nothing_else(c):
    """A node whose packets take 40 ms each way makes, writes, syncs and reads, and so do the others
    beside it: each call takes some round trips, all bytes are right, one name has one inode, and no
    session ends."""
    near, other, far = c.nodes
    data = random.Random(1).randbytes(8 << 20)
    for number in range(COUNT):
        write_synced(near.path(f'f{number}'), data[number << 12 : (number + 1) << 12])
    write_synced(near.path('big'), data)
    far.host.delay(WAY_MS)
    for name, node in (('the far node', far), ('a near node', near)):
        folder = node.path(node.name)
        within(30, os.mkdir, folder)
        print(
            f'  {name}: '
            f'create {_median_ms((put, f"{folder}/c{i}", b"") for i in range(COUNT)):.0f} ms, '
            f'write + fsync '
            f'{_median_ms((write_synced, f"{folder}/w{i}", b"w" * 4096) for i in range(COUNT)):.0f}'
            f' ms, 4 KiB open + read '
            f'{_median_ms((read_uncached, node.path(f"f{i}")) for i in range(COUNT)):.0f} ms, '
            f'unlink {_median_ms((os.unlink, f"{folder}/c{i}") for i in range(COUNT)):.0f} ms'
        )
    took, _ = timed(within, 60, write_synced, far.path('mine'), data)
    back, got = timed(within, 60, read_uncached, far.path('big'))
    equal(got, data, 'what the far node reads')
    print(f'  8 MiB: written and synced in {took:.2f} s, read in {back:.2f} s')
    equal(within(30, get, other.path('mine')), data, 'what it wrote')
    gate = barrier(3)
    jobs = [Job(_append, node.path('log'), node.name, gate) for node in c.nodes]
    for job in jobs:
        job.result(60)
    for number in range(COUNT):
        lines = {tuple(sorted(get(n.path(f'log{number}')).split())) for n in c.nodes}
        equal(lines, {(b'node1', b'node2', b'node3')}, f'records of log{number}')
    for node in c.nodes:
        equal(code(os.listdir, node.mnt), '', node.name)
        equal(counter(node.stat(), 'leases_lost'), 0, f'leases that {node.name} lost')
        equal(counter(node.stat(), 'members_up'), 3, f'nodes that {node.name} sees')
    same_trees(c.nodes)

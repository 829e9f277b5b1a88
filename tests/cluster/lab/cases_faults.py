"""etcd without its majority, and holders that are killed, frozen or slow."""
import os
import random
import statistics
import time

from cases_failures import SMALL_CACHE, change_often, same_trees, serves_again
from cluster import FAILOVER_S
from jobs import Job, timed, within
from races import digest, read_uncached
from support import case, check, code, equal, put, write_synced
from volume import wait_until


@case(etcd=3, options='timeout=8', timeout=120)
def majority_of_etcd_is_lost_and_comes_back(c):
    """Two of three etcd servers are killed: changes fail with ETIMEDOUT within the time-out, open
    files are read on, nothing hangs; with them back all nodes go on under their mounts."""
    one, two, three = c.nodes
    put(one.path('f'), b'f')
    handle = os.open(two.path('f'), os.O_RDONLY)
    for index in (0, 1):
        c.etcd.kill9(index)
    took, got = timed(within, 40, code, os.mkdir, one.path('d'))
    equal(got, 'ETIMEDOUT', 'mkdir without a majority of etcd')
    check(took <= 8 + 3, f'mkdir took {took:.2f} s with a time-out of 8 s')
    took, got = timed(within, 40, code, os.stat, three.path('f'))
    check(got in ('ETIMEDOUT', ''), f'stat without a majority of etcd: {got}')
    check(took <= 8 + 3, f'stat took {took:.2f} s with a time-out of 8 s')
    took, got = timed(within, 20, os.pread, handle, 1, 0)
    equal(got, b'f', 'a file that was open')
    check(took <= 2, f'reading a file that was open took {took:.2f} s')
    os.close(handle)
    time.sleep(6)  # the leases end
    for index in (0, 1):
        c.etcd.start(index)
    c.etcd.wait_healthy()
    for node in c.nodes:
        serves_again(node, 'f', b'f')
        wait_until(
            lambda n=node: not within(40, code, put, n.path(n.name), b'x'),
            30,
            f'writes of {node.name}',
        )
    same_trees(c.nodes)


def _read_for(paths, digests, seconds):
    """Seconds that each of the reads took which the time was enough for."""
    took, end, number = [], time.monotonic() + seconds, 0
    while time.monotonic() < end:
        place = number % len(paths)
        seconds_of_one, data = timed(read_uncached, paths[place])
        equal(digest(data), digests[place], paths[place])
        took.append(seconds_of_one)
        number += 1
    return took


def _held_elsewhere(c, count, size):
    """Files that the first node wrote, and their digests."""
    names, digests = [], []
    for number in range(count):
        data = random.Random(number).randbytes(size)
        write_synced(c.nodes[0].path(f'f{number}'), data)
        names.append(f'f{number}')
        digests.append(digest(data))
    return names, digests


def _judge_readers(c, disturb):
    names, digests = _held_elsewhere(c, 48, 256 << 10)
    jobs = [Job(_read_for, [n.path(p) for p in names], digests, 8) for n in c.nodes[1:]]
    time.sleep(2)
    disturb()
    for node, job in zip(c.nodes[1:], jobs):
        took = job.result(60)
        median = statistics.median(took)
        print(
            f'  {node.name}: {len(took)} reads, median {median * 1000:.1f} ms, '
            f'longest {max(took) * 1000:.0f} ms'
        )
        check(max(took) <= 1, f'a read of {node.name} took {max(took):.2f} s')
        check(median < 0.2, f'the median of {node.name} is {median:.3f} s')


@case(options=SMALL_CACHE)
def killed_holder_costs_a_reader_little(c):
    """The holder of what others read is killed: no read takes above a second, the median is below
    200 ms."""
    _judge_readers(c, c.nodes[0].kill9)


@case(options=SMALL_CACHE)
def frozen_holder_costs_a_reader_little(c):
    """The same for one that is stopped, whose connections stay: another holder is asked after a
    moment."""
    _judge_readers(c, c.nodes[0].stop)
    c.nodes[0].cont()
    serves_again(c.nodes[0], 'f0', random.Random(0).randbytes(256 << 10))


def _stutter(node, seconds):
    """Lets a daemon run for a tenth of the time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        node.stop()
        time.sleep(0.09)
        node.cont()
        time.sleep(0.01)


@case()
def slow_node_costs_no_hang(c):
    """A node that runs for a tenth of the time slows the others' changes down, and keeps its
    place or loses it within the lease; afterwards all show the same."""
    one, _, three = c.nodes
    changing = Job(change_often, one.mnt, 'one', 10)
    slow = Job(_stutter, three, 8)
    slow.result(30)
    longest, rounds = changing.result(60)
    print(f'  {rounds} rounds, longest step {longest:.2f} s')
    check(longest <= FAILOVER_S, f'a step took {longest:.2f} s')
    check(rounds > 5, f'{rounds} rounds')
    put(one.path('f'), b'f')
    serves_again(three, 'f', b'f')
    same_trees(c.nodes)

"""Readers whose holders are killed or frozen."""
import random
import statistics
import time

from cases_failures import SMALL_CACHE, serves_again
from jobs import Job, timed
from races import digest, read_uncached
from support import case, check, equal, write_synced


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

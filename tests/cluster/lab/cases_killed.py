"""Processes that are killed while their calls wait for nodes that are silent."""
import os
import signal
import time

from cluster import FAILOVER_S, LEASE_S
from jobs import Job, timed, within
from cases_failures import same_trees
from support import case, check, equal, get, put
from volume import process_alive, wait_until


def _write_and_wait(path, mark):
    """Writes to a file that stays open, and closes it only by its end."""
    with open(path, 'r+b', buffering=0) as file:
        file.write(b'new')
        put(mark)
        signal.pause()


def _ends_soon(job, what):
    os.kill(job.pid, signal.SIGKILL)
    took, _ = timed(wait_until, lambda: not process_alive(job.pid), 40, f'the end of {what}')
    print(f'  {what} ended {took:.2f} s after kill -9')
    check(took < LEASE_S - 1, f'{what} ended {took:.2f} s after kill -9')


@case(timeout=90)
def killed_process_waits_for_no_silent_node(c):
    """kill -9 ends a process at once whose change or close waits for another node, before the
    lease of the silent one is over; the nodes agree afterwards, and the close's bytes are there."""
    one, two, three = c.nodes
    put(one.path('f'), b'old')
    mark = os.path.join(c.root, 'mark')
    writer = Job(_write_and_wait, one.path('f'), mark)
    wait_until(lambda: os.path.exists(mark), 20, 'a write')
    two.stop()
    three.stop()
    begin = time.monotonic()
    try:
        maker = Job(os.mkdir, one.path('d'))
        wait_until(lambda: _is_in_a_call(maker.pid), 10, 'a change that waits')
        _ends_soon(maker, 'a process in mkdir')
        _ends_soon(writer, 'a process with a changed file')
        check(time.monotonic() - begin < FAILOVER_S, 'the others were given up meanwhile')
    finally:
        two.cont()
        three.cont()
    within(60, put, one.path('g'), b'x')
    equal(within(40, get, two.path('f')), b'new', 'what the killed process wrote, elsewhere')
    same_trees(c.nodes)


def _is_in_a_call(pid):
    with open(f'/proc/{pid}/wchan', encoding='ascii') as name:
        return name.read().startswith(('request_wait_answer', '__fuse_', 'fuse_'))

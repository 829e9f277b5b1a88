"""Random load on a node that is killed again and again; --more N and --seed N go on for longer."""
import os
import pickle
import random
import time

from cluster import FAILOVER_S
from jobs import within
from kill9 import fork_worker
from load import Worker
from oracle import tree
from support import case, check, equal, put, write_synced
from volume import process_alive, wait_until


def _take_note(worker, pid, note, number):
    """The worker as its process left it, or a new one if SIGBUS ended it: a mapped page could not
    be read any more."""
    wait_until(lambda: not process_alive(pid), 30, 'end of a worker whose daemon is dead')
    os.waitpid(pid, 0)
    if not os.path.exists(note):
        return worker.again(number)
    with open(note, 'rb') as file:
        worker = pickle.load(file)
    os.unlink(note)
    return worker


def _judge(worker, node):
    folder = node.path(worker.folder_name)
    complaints = worker.judge(folder) if os.path.isdir(folder) else []
    return worker, complaints


@case(timeout=100)
def killed_node_keeps_its_promises_on_all(c):
    """A node under random load is killed at random moments: what another one shows, and itself
    when it is back, is what its syncs promised, and both show the same."""
    rng = random.Random(c.seed)
    workers = [Worker(i) for i in range(len(c.nodes))]
    for number in range(3 * c.more):
        index = number % len(c.nodes)
        victim, other = c.nodes[index], c.nodes[(index + 1) % len(c.nodes)]
        note = os.path.join(c.root, 'worker')
        folder = victim.path(workers[index].folder_name)
        pid = fork_worker(workers[index], folder, rng.random(), note)
        time.sleep(0.5 + rng.random() * 3)
        check(process_alive(pid), f'the load of {victim.name} ended by itself')
        victim.kill9()
        worker = _take_note(workers[index], pid, note, number)
        # Done when the killed session has ended, and with it whatever it had on its way.
        within(FAILOVER_S + 20, put, other.path('after'), b'%d' % number)
        for node in (other, victim):
            if node is victim:
                node.mount()
            worker, complaints = within(30, _judge, worker, node)
            equal(complaints, [], f'round {number}, {victim.name} killed, seen on {node.name}')
        workers[index] = worker
        write_synced(victim.path('round'), b'%d' % number)
        trees = [within(30, tree, node.mnt) for node in c.nodes]
        equal(trees[1:] == trees[:-1], True, f'round {number}: the nodes show the same')
    print(f'  {sum(worker.steps for worker in workers)} operations')

"""Nodes that reach etcd, but not each other: one of them gives way, and comes back."""
import os
import time

from cases_failures import change_often, same_trees, serves_again
from cluster import CUT_S
from jobs import Job, timed, within
from namespaces import cut_between, join_between
from support import case, check, get, put


def judge_cut(c, cut, mend, leaving):
    """While `cut` lasts every node but those of `leaving` changes names and files, none for longer
    than a cut may cost; afterwards `leaving` serve again."""
    staying = [node for node in c.nodes if node not in leaving]
    put(c.nodes[0].path('f'), b'old')
    for node in c.nodes:
        check(get(node.path('f')) == b'old', f'before, on {node.name}')
    jobs = [Job(change_often, node.mnt, node.name, CUT_S + 4) for node in staying]
    time.sleep(1)
    cut()
    for node, job in zip(staying, jobs):
        longest, rounds = job.result(60)
        print(f'  {node.name}: {rounds} rounds, longest step {longest:.2f} s')
        check(longest <= CUT_S, f'a step of {node.name} took {longest:.2f} s')
        check(rounds > 10, f'{node.name} went {rounds} rounds')
    took, _ = timed(within, CUT_S, put, staying[0].path('f'), b'new')
    check(took <= 2, f'a change took {took:.2f} s after the others had given way')
    mend()
    for node in leaving:
        serves_again(node, 'f', b'new')
        within(20, put, node.path('g'), node.name.encode())
    same_trees(c.nodes)


@case(timeout=90)
def one_cut_link_makes_one_node_give_way(c):
    """Two of three nodes cannot reach each other: the one with the greater number gives way within
    a lease and a margin, and the other two go on."""
    one, _, three = c.nodes
    judge_cut(
        c,
        lambda: cut_between(one.host, three.host),
        lambda: join_between(one.host, three.host),
        [three],
    )


@case(timeout=90)
def cut_in_one_direction_makes_one_node_give_way(c):
    """What one node sends to another vanishes, the other direction goes on: as a cut link."""
    one, two, _ = c.nodes
    judge_cut(
        c,
        lambda: one.host.lose_packets_to(two.host),
        lambda: one.host.reach(two.host),
        [two],
    )


@case(timeout=90)
def node_cut_from_all_gives_way(c):
    """A node that reaches etcd and no other node gives way to them, whatever its number is."""
    one, two, three = c.nodes

    def both(change):
        change(one.host, two.host)
        change(one.host, three.host)

    judge_cut(c, lambda: both(cut_between), lambda: both(join_between), [one])


@case(nodes=2, replicas=1, timeout=90)
def of_two_nodes_one_gives_way(c):
    """Of two nodes that cannot reach each other one goes on."""
    one, two = c.nodes
    judge_cut(
        c,
        lambda: cut_between(one.host, two.host),
        lambda: join_between(one.host, two.host),
        [two],
    )


@case(timeout=90)
def node_does_not_join_where_it_is_not_heard(c):
    """A node that does not reach another one that is up is not mounted, says whom, and costs the
    others nothing; it is when the network is whole."""
    one, two, three = c.nodes
    three.end_in_order()
    cut_between(one.host, three.host)
    changing = Job(change_often, two.mnt, 'two', 8)
    done = three.mount(options=three.options + ',timeout=8', check=False)
    check(done.returncode, 'it was mounted')
    check('node1' in done.stderr and 'node2' not in done.stderr, f'what it says: {done.stderr}')
    longest, _ = changing.result(40)
    check(longest <= 2, f'a change of another node took {longest:.2f} s')
    join_between(one.host, three.host)
    three.mount()
    same_trees(c.nodes)


def _look_on(path, seconds):
    """When the last look began that was answered."""
    last = None
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            begun = time.monotonic()
            os.stat(path)
            last = begun
            time.sleep(0.01)
    except OSError as error:
        print(f'  the last look: {error}')
    return last


def _list_often(path, seconds):
    """Each listing makes the kernel ask for the folder's attributes again."""
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            os.listdir(path)
            time.sleep(0.05)
    except OSError as error:
        print(f'  the last listing: {error}')


@case(timeout=90)
def kernel_keeps_no_attributes_of_a_session_that_ended(c):
    """What the kernel of a node keeps goes with the session, not with the lease that the node
    proved last: nothing is answered from it once others' changes do not wait for the node."""
    one, _, three = c.nodes
    put(one.path('f'), b'f')
    looker = Job(_look_on, three.mnt, CUT_S + 3)
    lister = Job(_list_often, three.mnt, CUT_S + 3)
    time.sleep(0.5)
    cut_between(one.host, three.host)
    within(CUT_S + 20, os.chmod, one.mnt, 0o755)
    returned = time.monotonic()
    late = looker.result(60) - returned
    lister.result(60)
    print(f'  the last look began {late:.2f} s after the change of another node')
    check(late < 0.5, f'the kernel answered {late:.2f} s after the change')
    join_between(one.host, three.host)
    serves_again(three, 'f', b'f')

"""Nodes that are lost for good and taken out of the volume."""
import json
import random
import time

from cluster import FAILOVER_S, refused
from jobs import within
from oracle import tree
from support import case, check, equal, get, loud, write_synced
from volume import counter, wait_until


def remove(c, node, *words, by=None):
    """By the store of the first node."""
    by = by or c.nodes[0]
    return by.tool('kvsyncfs-ctl', by.store, 'remove', node.name, *words)


def remove_when_away(c, node):
    """A node that was killed is up until its lease has ended."""
    end = time.monotonic() + FAILOVER_S + 2
    while (done := remove(c, node)).returncode:
        loud(done, node.name, 'is up')
        check(time.monotonic() < end, f'{node.name} is up {FAILOVER_S + 2} s after its death')
        time.sleep(0.2)


def healed_bytes(*nodes):
    """Copied to new holders by these nodes."""
    return sum(counter(node.stat(), 'healed_bytes') for node in nodes)


def at_risk(*nodes):
    """Segments that lack a holder, as these nodes count them."""
    return sum(counter(node.stat(), 'at_risk_segments') for node in nodes)


@case(timeout=120)
def removed_node_is_replaced_at_once(c):
    """What a removed node held is copied without heal_delay; its store is refused, and its name
    serves a new store."""
    one, two, three = c.nodes
    for number in range(8):
        data = random.Random(number).randbytes(1 << 20)
        write_synced(three.path(f'f{number}'), data)
    want = within(30, tree, one.mnt)
    loud(remove(c, three), three.name, 'is up')
    three.kill9()
    remove_when_away(c, three)
    listed = one.tool('kvsyncfs-ctl', one.store, 'nodes', check=True).stdout
    check(three.name not in listed, f'the list of nodes after the removal:\n{listed}')
    wait_until(lambda: healed_bytes(one, two) >= 8 << 20, 60, 'copies of what it held')
    wait_until(lambda: at_risk(one, two) == 0, 30, 'the last copy')
    one.kill9()  # every byte has two holders again, so that one of them is enough
    equal(within(FAILOVER_S + 20, tree, two.mnt), want, 'what the last node shows')
    one.mount()
    refused(three, f'{three.name} was removed from volume lab')
    again = c.make('again')
    again.name = three.name
    again.format_next(c.etcd.cluster_url(), c.secret())
    again.mount()
    c.nodes[2] = again
    equal(within(30, tree, again.mnt), want, 'what a new store under the old name shows')
    write_synced(again.path('mine'), b'mine')
    equal(within(20, get, two.path('mine')), b'mine', 'its file on another node')


@case(nodes=2)
def nobody_else_is_removed(c):
    """A node that is up, one that is not there and the only one are not removed."""
    one, two = c.nodes
    loud(remove(c, two), two.name, 'is up')
    nobody = c.make('nobody')
    loud(remove(c, nobody), 'nobody')
    two.end_in_order()
    equal(remove(c, two).returncode, 0, 'removal of a node that was unmounted in order')
    loud(remove(c, one), 'only one')
    refused(two, 'removed')


@case(nodes=3, timeout=150)
def node_with_the_last_copies_is_not_removed(c):
    """A node is not removed while nobody else who is up has what it has, nor without a daemon that
    could tell; --force removes it."""
    one = c.nodes[0]
    write_synced(one.path('f'), random.Random(1).randbytes(100_000))
    seen = json.loads(one.tool('kvsyncfs-ctl', one.mnt, 'locate', '/f', '--json').stdout)
    holders = {node['name'] for node in seen['nodes']}
    other = next(node for node in c.nodes[1:] if node.name in holders)
    left = next(node for node in c.nodes if node.name not in holders)
    one.kill9()
    other.kill9()

    def why():
        done = remove(c, other, by=left)
        check(done.returncode, 'it was removed')
        return done.stderr

    wait_until(lambda: 'is up' not in why(), 3 * FAILOVER_S, 'the end of its session')
    wait_until(lambda: '1 segment,' in why(), 3 * FAILOVER_S, 'the refusal')
    check(f'node {other.name}' in why() and '--force' in why(), why())
    left.kill9()
    check('no daemon' in why() and '--force' in why(), why())
    left.mount()
    wait_until(lambda: '1 segment,' in why(), 3 * FAILOVER_S, 'the refusal')
    equal(remove(c, other, '--force', by=left).returncode, 0, 'the removal by force')
    refused(other, 'removed')
    one.mount()
    equal(len(within(30, get, left.path('f'))), 100_000, 'what the other holder had')

"""etcd loses its data, or is put back to a backup: the log begins anew with one node's catalog."""
import json
import os
import random
import subprocess

from cluster import LEASE_S, refused
from jobs import within
from oracle import tree
from support import case, check, code, equal, get, loud, put, write_synced
from volume import wait_until


def _fill(c, mark):
    """Files of all nodes, large and small, whose bytes are synced; what a mount shows of them."""
    rng = random.Random(mark)
    for index, node in enumerate(c.nodes):
        os.mkdir(node.path(f'{mark}{index}'))
        for number in range(12):
            write_synced(node.path(f'{mark}{index}', f'f{number}'), rng.randbytes(9000))
        write_synced(node.path(f'{mark}{index}', 'big'), rng.randbytes(3 << 20))
        os.symlink('f1', node.path(f'{mark}{index}', 'link'))
    os.unlink(c.nodes[0].path(f'{mark}0', 'f3'))
    return within(30, tree, c.nodes[0].mnt)


def _end_all(c):
    """All daemons, whose etcd is not the one that they know, in order as far as that goes."""
    for node in c.nodes:
        node.tool('umount.fuse.kvsyncfs', '-f', node.mnt, timeout=90)
        if node.daemon:
            node.daemon.wait(60)
        node.detach()


def _look(node):
    done = node.tool('kvsyncfs-ctl', node.store, 'reseed-log', '--dry-run', '--json', check=True)
    return json.loads(done.stdout)


def _reseed(node, *words):
    return node.tool('kvsyncfs-ctl', node.store, 'reseed-log', *words, timeout=90)


def _newest(c):
    return max(c.nodes, key=lambda node: _look(node)['position'])


def _begin_anew(c, first, *words):
    done = _reseed(first, *words)
    equal(done.returncode, 0, done.stderr)
    _mount_all(c, first)


def _mount_all(c, first):
    first.mount()
    for node in c.nodes:
        if node is not first:
            node.mount()
    c.settle()


def _expect_equal(c, want):
    for node in c.nodes:
        equal(within(60, tree, node.mnt), want, f'what {node.name} shows')


@case(timeout=200)
def etcd_loses_its_data(c):
    """With etcd's data gone no node mounts and none has changed; after reseed-log on the newest all
    show every name and byte that was confirmed, and go on."""
    want = _fill(c, 'a')
    loud(_reseed(c.nodes[0]), 'in use')
    c.etcd.put_back()
    wait_until(lambda: code(put, c.nodes[0].path('late'), b'x'), 40, 'changes fail')
    _end_all(c)
    for node in c.nodes:
        refused(node, 'volume lab in etcd', 'reseed-log')
    _begin_anew(c, _newest(c))
    _expect_equal(c, want)
    want = _fill(c, 'b')
    _expect_equal(c, want)
    loud(_reseed(c.nodes[1]), 'in use')
    c.nodes[1].end_in_order()
    loud(_reseed(c.nodes[1]), 'is up')
    c.nodes[1].mount()
    four = c.add()
    equal(within(60, tree, four.mnt), want, 'what a new node shows')


@case(timeout=200)
def reseed_is_killed_at_any_moment(c):
    """A reseed-log that is killed leaves a volume that the next call, or the next mount, brings to
    its new log."""
    want = _fill(c, 'a')
    c.etcd.put_back()
    wait_until(lambda: code(put, c.nodes[0].path('late'), b'x'), 40, 'changes fail')
    _end_all(c)
    first = _newest(c)
    rng = random.Random(c.seed)
    words = [*first.prefix, first.tools['kvsyncfs-ctl'], first.store, 'reseed-log']
    for _ in range(20):
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as tool:
            try:
                tool.wait(rng.uniform(0, 0.2))
            except subprocess.TimeoutExpired:
                tool.kill()
    done = _reseed(first)
    if done.returncode:
        loud(done, 'mount the node instead')
    _mount_all(c, first)
    _expect_equal(c, want)


@case(timeout=200)
def etcd_is_put_back_to_a_backup(c):
    """Nodes that have more than etcd refuse to be mounted, and reseed-log makes what they have the
    volume's; it does so twice."""
    _fill(c, 'a')
    backup = os.path.join(c.root, 'backup')
    c.etcd.save(backup)
    want = None
    for mark in 'bc':
        want = _fill(c, mark)
        c.etcd.put_back(backup)
        wait_until(lambda: code(put, c.nodes[0].path('late'), b'x'), 40, 'changes fail')
        _end_all(c)
        first = _newest(c)
        refused(first, 'went back')
        wait_until(lambda: not _sessions(c), LEASE_S + 10, 'the end of sessions of the backup')
        _begin_anew(c, first)
        _expect_equal(c, want)
    check(get(c.nodes[2].path('c0', 'big')), 'bytes')


def _sessions(c):
    return c.etcd.keys('/kvsyncfs/lab/session/')


@case(timeout=200)
def node_with_more_than_the_new_log(c):
    """A node with a later catalog than the one that the log began with is kept out, untouched; it
    can begin the log instead, and the other one gives its catalog up."""
    one, two, three = c.nodes
    _fill(c, 'a')
    one.end_in_order()
    write_synced(two.path('later'), b'later')
    three.end_in_order()
    two.end_in_order()
    c.etcd.put_back()
    equal(_reseed(one).returncode, 0, 'the log begins with an older catalog')
    one.mount()
    refused(two, 'began anew', 'take-catalog')
    one.end_in_order()
    loud(_reseed(two), 'another node began')
    equal(_reseed(two, '--force').returncode, 0, 'the log begins with the later one')
    two.mount()
    three.mount()
    equal(within(30, get, three.path('later')), b'later', 'what only the later one had')
    refused(one, 'began anew', 'take-catalog')
    done = one.tool('kvsyncfs-ctl', one.store, 'take-catalog')
    check(done.returncode == 2 and '--yes' in done.stderr, done.stderr)
    one.tool('kvsyncfs-ctl', one.store, 'take-catalog', '--yes', check=True)
    one.mount()
    c.settle()
    _expect_equal(c, within(30, tree, two.mnt))

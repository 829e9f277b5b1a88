"""Nodes, volumes and an etcd that are not what they seem to be."""
import os
import shutil
import socket
import subprocess
import sys
import time

from cases_failures import BACK_S, same_trees, serves_again
from cluster import FAILOVER_S, Node, refused
from etcd import CLIENT_PORT
from jobs import Job, timed, within
from oracle import tree
from support import Skip, case, check, code, equal, get, loud, put, write_synced
from volume import wait_until


def _log_of(node):
    with open(node.log, encoding='utf-8', errors='replace') as log:
        return log.read()


def _rename_volume(node, old, new):
    """The store's configuration names another volume."""
    path = os.path.join(node.store, 'cluster')
    put(path, get(path).replace(old, new))


@case(nodes=2, timeout=120)
def copied_store_is_one_node(c):
    """A store is copied and both are started: the later one serves, though the first one is still
    there; at no time do both change the volume as one node, and the first one says why."""
    one, two = c.nodes
    two.end_in_order()
    twin = c.make('twin')
    shutil.rmtree(twin.store, ignore_errors=True)
    shutil.copytree(two.store, twin.store)
    two.mount()
    within(30, write_synced, two.path('before'), b'before')
    took, _ = timed(twin.mount)
    print(f'  the mount of the copy took {took:.2f} s')
    within(BACK_S, write_synced, twin.path('twin'), b'twin')
    check(within(BACK_S, code, write_synced, two.path('two'), b'two'), 'both change the volume')
    check('another life' in _log_of(two), 'the first one does not say that it has ended')
    two.abort()
    within(BACK_S, write_synced, twin.path('after'), b'after')
    equal(get(one.path('before')), b'before', 'what was written before')
    equal(get(one.path('twin')), b'twin', 'what the later one was promised')
    check(not os.path.exists(one.path('two')), 'a change that was refused has happened')
    same_trees([one, twin])
    c.nodes = [one, twin]


@case(nodes=1)
def unknown_volume_is_refused(c):
    """A store whose volume etcd does not know is not mounted, and the message names the volume."""
    node = c.nodes[0]
    node.end_in_order()
    _rename_volume(node, b'lab', b'moon')
    refused(node, 'moon')
    _rename_volume(node, b'moon', b'lab')
    node.mount()


@case(nodes=2, timeout=120)
def wiped_etcd_is_told(c):
    """etcd comes back empty: nothing is changed any more, mounts are refused by the volume's name,
    and no daemon dies of it."""
    one, two = c.nodes
    within(30, write_synced, one.path('f'), b'f')
    c.etcd.kill9(0)
    shutil.rmtree(os.path.join(c.root, 'etcd1'))
    c.etcd.start(0)
    c.etcd.wait_healthy()
    failed = within(60, code, write_synced, one.path('g'), b'g')
    check(failed, 'a change in a volume that is gone was acknowledged')
    check(one.pid() is not None, 'the daemon died')
    two.abort()
    two.detach()
    refused(two, 'lab')
    for node in c.nodes:
        node.abort()
        node.detach()
    c.nodes = []


@case(nodes=3, timeout=120)
def peer_of_another_volume_is_refused(c):
    """A daemon of another volume listens where a node did: neither side gives anything, the volume
    goes on, and the node takes part again when it is back."""
    one, two, three = c.nodes
    within(30, write_synced, one.path('f'), b'mine')
    three.kill9()
    stranger = Node(c.build, os.path.join(c.root, 'other'), three.host, three.options)
    os.makedirs(os.path.dirname(stranger.log), exist_ok=True)
    words = ['--volume', 'other', '--cluster', c.etcd.cluster_url(), '--replicas', '1']
    stranger.format(*words, '--node', 'node3', '--listen', stranger.listen, size='1G')
    stranger.mount()
    within(30, write_synced, stranger.path('s'), b'its own')
    for number in range(5):
        took, failed = timed(within, 40, code, write_synced, two.path(f'g{number}'), b'g')
        equal(failed, '', f'a synced write, after {took:.1f} s')
        check(number == 0 or took < FAILOVER_S, f'a synced write took {took:.1f} s')
    wait_until(
        lambda: stranger.stat(stranger.mnt)['engine']['refused_connections'] > 0,
        30,
        'the other volume counts who did not prove to be its node',
    )
    equal(sorted(within(20, tree, stranger.mnt)), sorted({'', 's'}), 'what the other volume has')
    stranger.end_in_order()
    three.mount()
    same_trees(c.nodes)


def _talk_nonsense(address):
    """Answers whatever comes with bytes that are no HTTP/2, or begin as such."""
    listener = socket.create_server((address, CLIENT_PORT))
    settings_then_more = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 64, 0, 1, 4]) + bytes(200)
    answers = [b'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes', b'\xff' * 5000, b'']
    answers.append(settings_then_more)
    number = 0
    while True:
        connection, _ = listener.accept()
        try:
            connection.settimeout(1)
            connection.recv(4096)
            connection.sendall(answers[number % len(answers)])
        except OSError:
            pass
        connection.close()
        number += 1


@case(nodes=2, timeout=150)
def nonsense_of_etcd_is_an_error(c):
    """Where etcd was something else answers: a mount is refused with a message, a daemon that is
    up neither dies nor answers what it cannot know, and goes on when etcd is back."""
    one, two = c.nodes
    within(30, write_synced, one.path('f'), b'f')
    two.end_in_order()
    c.etcd.kill9(0)
    here = os.path.dirname(os.path.abspath(__file__))
    script = f'import sys; sys.path[:0] = {[here, *sys.path]!r}; import cases_identity as m;'
    script += f'm._talk_nonsense("{c.etcd.hosts[0].address}")'
    liar = subprocess.Popen([*c.etcd.hosts[0].prefix, sys.executable, '-c', script])
    try:
        took, _ = timed(refused, two, 'etcd')
        print(f'  refused after {took:.1f} s')
        time.sleep(8)  # longer than a lease
        took, failed = timed(within, 60, code, write_synced, one.path('g'), b'g')
        check(failed, 'a change without etcd was acknowledged')
        check(one.pid() is not None, 'the daemon died')
    finally:
        liar.kill()
        liar.wait()
    c.etcd.start(0)
    c.etcd.wait_healthy()
    serves_again(one, 'f', b'f')
    two.mount()
    c.settle()
    same_trees(c.nodes)


def _other_clock(days):
    """Words before a program whose clocks since boot are so much ahead."""
    seconds = str(days * 86400)
    words = ['unshare', '--time', '--fork', '--boottime', seconds, '--monotonic', seconds]
    keeper = subprocess.Popen([*words, 'sleep', '1000'], stderr=subprocess.DEVNULL)
    children = f'/proc/{keeper.pid}/task/{keeper.pid}/children'
    end = time.monotonic() + 10
    while keeper.poll() is None and time.monotonic() < end:
        with open(children, encoding='ascii') as file:
            child = file.read().split()
        if child and os.readlink(f'/proc/{child[0]}/ns/time') != os.readlink('/proc/self/ns/time'):
            return keeper, ['nsenter', f'--time=/proc/{child[0]}/ns/time', '--']
        time.sleep(0.02)
    raise Skip('this kernel has no time namespaces')


@case(nodes=2, timeout=120)
def clocks_since_boot_need_not_agree(c):
    """A node's clock is days ahead of the other's when it is started again: leases, locks and
    deadlines are as ever."""
    one, two = c.nodes
    within(30, write_synced, one.path('f'), b'f')
    two.end_in_order()
    keeper, words = _other_clock(40)
    two.prefix = [*two.prefix, *words]
    two.mount()
    c.settle()
    writers = [Job(_write_often, node.path(), node.name) for node in c.nodes]
    for writer in writers:
        longest = writer.result(60)
        check(longest < FAILOVER_S, f'a change took {longest:.1f} s')
    same_trees(c.nodes)
    two.kill9()
    took, failed = timed(within, 40, code, write_synced, one.path('g'), b'g')
    print(f'  a write after the death of the node took {took:.1f} s: {failed or "ok"}')
    two.mount()
    c.settle()
    same_trees(c.nodes)
    two.end_in_order()
    keeper.kill()


def _write_often(folder, name):
    longest = 0.0
    for number in range(60):
        took, _ = timed(write_synced, os.path.join(folder, f'{name}{number % 7}'), b'%d' % number)
        longest = max(longest, took)
    return longest

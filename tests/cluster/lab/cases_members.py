"""Who may be a node of the volume, and what a node shows to strangers."""
import os
import random
import shutil
import socket
import subprocess
import sys

from cluster import PORT, refused
from jobs import timed, within
from oracle import tree
from support import case, check, code, equal, get, loud, put, sh, write_synced
from volume import Volume


@case(nodes=2)
def wrong_secret_is_refused(c):
    """A node whose secret is not the volume's gets nothing from the others, and says so."""
    put(c.nodes[0].path('f'), b'f')
    node = c.make('node3')
    wrong = os.path.join(c.root, 'wrong')
    put(wrong, b'5a' * 32 + b'\n')
    done = node.tool(
        'mkfs.kvsyncfs',
        '--volume',
        'lab',
        '--cluster',
        c.etcd.cluster_url(),
        '--join',
        '--secret',
        wrong,
        '--node',
        node.name,
        '--listen',
        node.listen,
        node.store,
    )
    if done.returncode:
        loud(done, 'secret')
    else:
        refused(node, 'secret')
    equal(within(20, get, c.nodes[1].path('f')), b'f', 'the volume goes on')


@case(nodes=2)
def changed_secret_is_refused(c):
    """A store whose secret was changed after it was made does not mount."""
    node = c.nodes[1]
    node.end_in_order()
    put(os.path.join(node.store, 'secret'), b'5a' * 32 + b'\n')
    refused(node, 'secret')


@case(nodes=2)
def second_daemon_of_a_store_is_refused(c):
    """A store that is mounted cannot be mounted a second time; the first goes on."""
    node = c.nodes[1]
    other = os.path.join(c.root, 'other')
    os.mkdir(other)
    done = node.tool('kvsyncfs', node.store, other, '-o', node.options)
    loud(done, node.store)
    put(node.path('f'), b'f')
    equal(get(c.nodes[0].path('f')), b'f', 'the first daemon')


@case(nodes=1)
def store_of_another_volume_is_refused(c):
    """A store that was made for another volume does not mount as a node of this one."""
    node = c.make('node2')
    node.format(
        '--volume',
        'other',
        '--cluster',
        c.etcd.cluster_url(),
        '--node',
        'node2',
        '--listen',
        node.listen,
    )
    for name in ('cluster', 'secret'):
        with open(os.path.join(c.nodes[0].store, name), 'rb') as file:
            data = file.read().replace(b'node1', b'node2')
        put(
            os.path.join(node.store, name),
            data.replace(c.nodes[0].host.address.encode(), node.host.address.encode()),
        )
    refused(node, 'volume|uuid')


@case(nodes=2)
def volume_is_made_once(c):
    """mkfs.kvsyncfs neither makes a volume a second time nor gives a node's name away twice."""
    put(c.nodes[0].path('f'), b'f')
    store = os.path.join(c.root, 'again')
    os.mkdir(store)
    words = ['mkfs.kvsyncfs', store, '--size', '1G', '--volume', 'lab']
    words += ['--cluster', c.etcd.cluster_url(), '--listen', '10.77.0.99:7420']
    loud(c.nodes[0].tool(*words, '--node', 'other'), 'lab')
    loud(c.nodes[0].tool(*words, '--node', 'node2', '--join', '--secret', c.secret()), 'node2')
    equal(get(c.nodes[1].path('f')), b'f', 'the volume goes on')


@case(nodes=1)
def plain_store_does_not_join(c):
    """A store that was made without --cluster is not a node, and its name stays free."""
    store = Volume(c.build, os.path.join(c.root, 'alone'), size='1G')
    store.format()
    for name in ('cluster', 'secret'):
        shutil.copy(os.path.join(c.nodes[0].store, name), store.store)
    before = c.etcd.keys('/kvsyncfs/lab/members/')
    done = store.mount(check=False)
    if done.returncode == 0:
        equal(os.listdir(store.mnt), [], 'names of a store of its own')
        store.unmount()
    equal(sorted(c.etcd.keys('/kvsyncfs/lab/members/')), sorted(before), 'members')


@case(nodes=3)
def wiped_node_takes_nothing_away(c):
    """A node whose store was lost comes back empty under its name: refused, or it shows what the
    others have, and they lose nothing."""
    for number in range(20):
        put(c.nodes[number % 3].path(f'f{number}'), random.Random(number).randbytes(20_000))
    for node in c.nodes:
        fd = os.open(node.mnt, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)
    want = within(20, tree, c.nodes[0].mnt)
    three = c.nodes[2]
    three.end_in_order()
    shutil.copy(c.secret(), 'secret')
    shutil.rmtree(three.store)
    os.mkdir(three.store)
    done = three.tool(
        'mkfs.kvsyncfs',
        '--volume',
        'lab',
        '--cluster',
        c.etcd.cluster_url(),
        '--join',
        '--secret',
        'secret',
        '--node',
        three.name,
        '--listen',
        three.listen,
        '--size',
        '1G',
        three.store,
    )
    if done.returncode == 0 and three.mount(check=False).returncode == 0:
        equal(within(30, tree, three.mnt), want, 'what the new store of the node shows')
    elif done.returncode:
        loud(done, three.name)
    for node in c.nodes[:2]:
        equal(within(30, tree, node.mnt), want, f'what {node.name} shows')


@case(nodes=2)
def new_node_shows_everything(c):
    """A node that joins a volume with files in it shows them all, and takes part."""
    for number in range(30):
        put(c.nodes[number % 2].path(f'f{number}'), random.Random(number).randbytes(50_000))
    node = c.add()
    equal(within(30, tree, node.mnt), within(30, tree, c.nodes[0].mnt), 'what the new node shows')
    put(node.path('mine'), b'mine')
    equal(get(c.nodes[1].path('mine')), b'mine', 'its file on another node')


@case(nodes=1)
def first_write_waits_for_enough_nodes(c):
    """As soon as the second node is mounted both can sync what they write: none fails because it
    has not heard of the other yet."""
    node = c.add()
    for each in (node, c.nodes[0]):
        took, got = timed(within, 30, code, write_synced, each.path(each.name), b'first')
        equal(got, '', f'the first synced write on {each.name}, after {took:.2f} s')


GARBAGE = [
    b'\xff\xff\xff\xff',
    bytes(4),
    b'\x7f\xff\xff\xff' + bytes(100),
    b'GET / HTTP/1.0\r\n\r\n',
]


def _shout(address):
    """Connections that send nonsense, or nothing; returns what came back beyond a greeting."""
    held = []
    for number in range(100):
        s = socket.create_connection((address, PORT), 5)
        s.sendall(GARBAGE[number % len(GARBAGE)])
        held.append(s)
    answers = b''
    for s in held[:8]:
        s.settimeout(10)
        try:
            while part := s.recv(4096):
                answers += part
        except OSError:
            pass
    return len(answers)


@case(nodes=2)
def strangers_get_nothing_from_the_port(c):
    """The port listens on its address only; a stranger's bytes are answered with no data, cost
    little memory, and the nodes serve on."""
    put(c.nodes[0].path('f'), b'private' * 1000)
    for node in c.nodes:
        done = subprocess.run([*node.prefix, 'ss', '-Hlnt'], capture_output=True, check=True)
        listening = [line.split()[3] for line in done.stdout.decode().splitlines()]
        equal(listening, [node.listen], f'sockets that listen on {node.name}')
    stranger = c.network.add('stranger')
    before = _resident(c.nodes[0].pid())
    here = os.path.dirname(os.path.abspath(__file__))
    script = f'import sys; sys.path[:0] = {[here, *sys.path]!r}; import cases_members as m;'
    script += f'print(m._shout("{c.nodes[0].host.address}"))'
    done = subprocess.run(
        [*stranger.prefix, sys.executable, '-c', script],
        capture_output=True,
        check=True,
        timeout=100,
    )
    check(int(done.stdout) < 8 * 200, f'{int(done.stdout)} bytes came back to a stranger')
    grown = _resident(c.nodes[0].pid()) - before
    check(grown < 16 << 20, f'the daemon grew by {grown} bytes')
    equal(within(20, get, c.nodes[1].path('f')), b'private' * 1000, 'another node')


def _resident(pid):
    done = sh(f"awk '/VmRSS/ {{ print $2 }}' /proc/{pid}/status")
    return int(done.stdout) * 1024

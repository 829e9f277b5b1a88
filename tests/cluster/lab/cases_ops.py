"""What operators do with nodes."""
import json
import os
import random
import signal
import subprocess

from cluster import FAILOVER_S, Node, refused
from jobs import Job, timed, within
from support import case, check, code, equal, get, loud, needs, put, write_synced
from volume import Volume, wait_until

MEMBERS = '/kvsyncfs/lab/members/'


@case(nodes=1)
def node_without_a_mount_holds_bytes(c):
    """A node that only holds data is a holder: the writer is killed, and another node reads its
    bytes there and writes on. It is asked by its store, has the store for itself, and leaves in
    order at a SIGTERM."""
    holder = c.add(Node.serve)
    c.settle()
    data = random.Random(c.seed).randbytes(3 << 20)
    within(30, write_synced, c.nodes[0].path('f'), data)
    within(30, write_synced, c.nodes[0].path('h'), data)
    counts = holder.stat(holder.store)
    equal(counts['mountpoint'], '', 'mount point')
    equal(counts['transport'], 'tcp', 'transport')
    check(counts['engine']['copied_bytes'] >= len(data), 'the node has a copy')
    loud(holder.tool('kvsyncfs', '--no-mount', holder.store, '-o', 'timeout=1'), holder.store)
    reader = c.add()
    c.nodes[0].kill9()
    equal(within(30, get, reader.path('f')), data, 'bytes that only the node without a mount has')
    took, failed = timed(within, 40, code, write_synced, reader.path('g'), b'g')
    equal(failed, '', 'a synced write on the reader')
    check(took < FAILOVER_S, f'it took {took:.1f} s')
    holder.daemon.send_signal(signal.SIGTERM)
    equal(holder.daemon.wait(20), 0, 'exit status of the node without a mount')
    loud(holder.tool('kvsyncfs-stat', holder.store), 'no daemon')
    waiting = Job(get, reader.path('h'))
    holder.serve()
    equal(waiting.result(30), data, 'a read that began while the only holder was away for a moment')
    equal(within(30, get, reader.path('f')), data, 'bytes of the node that came back')


@case(cluster=False)
def lone_store_needs_a_mount(c):
    """A store that is no node of a cluster is not served without a mount."""
    store = Volume(c.build, c.root + '/alone')
    store.format()
    loud(store.tool('kvsyncfs', '--no-mount', store.store), store.store, 'needs a mount')


def _openssl(*words):
    subprocess.run(['openssl', *words], check=True, capture_output=True, timeout=20)


def _authority(folder, name):
    path = os.path.join(folder, name)
    _openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-noenc',
             '-subj', f'/CN={name}', '-keyout', path + '.key', '-out', path + '.pem')  # fmt: skip
    return path


def _certificate(folder, authority, name):
    path = os.path.join(folder, name)
    _openssl('req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-noenc',
             '-subj', f'/CN={name}', '-keyout', path + '.key', '-out', path + '.csr')  # fmt: skip
    _openssl('x509', '-req', '-in', path + '.csr', '-CA', authority + '.pem', '-CAkey',
             authority + '.key', '-CAcreateserial', '-out', path + '.pem')  # fmt: skip
    return f'tls_cert={path}.pem,tls_key={path}.key,tls_ca={authority}.pem'


@case(nodes=0)
def nodes_speak_tls(c):
    """With certificates of one authority the nodes serve each other, and a stranger hears nothing
    but TLS; a certificate of another authority is refused at the mount in one line."""
    needs('openssl')
    authority = _authority(c.root, 'authority')

    def start(node):
        node.options += ',' + _certificate(c.root, authority, node.name)
        node.mount()

    one, two = c.add(start), c.add(start)
    c.settle()
    data = random.Random(c.seed).randbytes(3 << 20)
    within(30, write_synced, one.path('f'), data)
    equal(within(30, get, two.path('f')), data, 'bytes on the other node')
    check(two.stat()['engine']['copied_bytes'] >= len(data), 'the other node has a copy')
    hello = ['openssl', 's_client', '-connect', one.listen, '-brief']
    done = two.tool(*hello, timeout=20)
    said = done.stdout + done.stderr
    check('TLSv1.3' in said and 'CN = node1' in said, f'what a stranger sees: {said}')
    files = _certificate(c.root, _authority(c.root, 'another'), 'liar').split(',tls_ca=')[0]
    node = c.make()
    node.format_next(c.etcd.cluster_url(), c.secret())
    node.options += f',{files},tls_ca={authority}.pem'
    refused(node, 'tls_cert')
    node.options = node.options.split(',tls_cert')[0]
    refused(node, 'is without tls|has tls')
    equal(within(30, get, two.path('f')), data, 'the volume goes on')


@case(nodes=2)
def node_of_another_version_is_refused(c):
    """Beside a node that speaks no common version of the protocol none joins: it says so in one
    line, and so do those who are there. When that node is gone it joins."""
    lines = {key.decode(): json.loads(value) for key, value in c.etcd.keys(MEMBERS).items()}
    later = {**lines[MEMBERS + 'node1'], 'id': 99, 'name': 'later', 'version': '9.0.0'}
    later.update(protocol_min=7, protocol_max=9, addresses=['10.77.0.99:7420'], new_field=[1])
    c.etcd.put(MEMBERS + 'later', json.dumps(later))
    node = c.make()
    node.format_next(c.etcd.cluster_url(), c.secret())
    refused(node, 'later', '9.0.0', '7 to 9')

    def told(line='node later of version 9.0.0 speaks versions 7 to 9'):
        with open(c.nodes[0].log, encoding='utf-8', errors='replace') as log:
            return line in log.read()

    wait_until(told, 10, 'a word of the node that was there before')
    c.etcd.put(MEMBERS + 'later', json.dumps({'format': 2}))
    refused(node, 'later', 'version')
    c.etcd.delete(MEMBERS + 'later')
    c.nodes.append(node)
    node.mount()
    put(node.path('f'), b'f')
    equal(within(30, get, c.nodes[0].path('f')), b'f', 'a file of the node that joined')


def _file_with(folder, piece):
    """(path, offset) of the file below `folder` that has these bytes."""
    for name in os.listdir(folder):
        found = get(os.path.join(folder, name)).find(piece)
        if found >= 0:
            return os.path.join(folder, name), found
    raise AssertionError(f'no file below {folder} has the bytes')


@case(nodes=2)
def fsck_checks_what_a_node_has(c):
    """Of a node's store fsck finds the catalog and the copies good, without etcd; it names the file
    of a damaged page, and takes a segment that is not there for no fault. A store whose daemon was
    killed is good as well."""
    one, two = c.nodes
    data = random.Random(c.seed).randbytes(3 << 20)
    within(30, write_synced, one.path('f'), data)
    two.end_in_order()
    report = json.loads(two.fsck('--scrub', '--json').stdout)
    equal((report['problems'], report['is_node']), (0, True), 'verdict on a good store')
    check(report['pages_checked'] >= len(data) // 4096, f'pages read: {report["pages_checked"]}')
    path, offset = _file_with(os.path.join(two.store, 'segments'), data[8192:12288])
    with open(path, 'r+b') as file:
        file.seek(offset)
        file.write(bytes([data[8192] ^ 1]))
    done = two.fsck('--scrub', check=False)
    equal(done.returncode, 4, 'exit status with a damaged page')
    check('(/f)' in done.stderr, f'the file is named: {done.stderr}')
    os.unlink(path)
    done = two.fsck('--scrub', check=False)
    check('note: segment' in done.stderr, f'the missing file is told: {done.stderr}')
    equal(done.returncode, 0, 'exit status without the file')
    two.mount()
    equal(within(30, get, two.path('f')), data, 'bytes that only the other holder has')
    within(30, write_synced, two.path('g'), data)
    two.kill9()
    equal(two.fsck('--scrub').returncode, 0, 'exit status after a kill')

"""What operators do with nodes."""
import random
import signal

from cluster import FAILOVER_S, Node
from jobs import timed, within
from support import case, check, code, equal, get, loud, write_synced
from volume import Volume


@case(nodes=1)
def node_without_a_mount_holds_bytes(c):
    """A node that only holds data is a holder: the writer is killed, and another node reads its
    bytes there and writes on. It is asked by its store, has the store for itself, and leaves in
    order at a SIGTERM."""
    holder = c.add(Node.serve)
    c.settle()
    data = random.Random(c.seed).randbytes(3 << 20)
    within(30, write_synced, c.nodes[0].path('f'), data)
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
    holder.serve()
    equal(within(30, get, reader.path('f')), data, 'bytes of the node that came back')


@case(cluster=False)
def lone_store_needs_a_mount(c):
    """A store that is no node of a cluster is not served without a mount."""
    store = Volume(c.build, c.root + '/alone')
    store.format()
    loud(store.tool('kvsyncfs', '--no-mount', store.store), store.store, 'needs a mount')

"""The two clusters that the benchmark compares, each with a mount on two hosts of one network:
kvsyncfs as the lab runs it, and a GlusterFS volume of two bricks that hold the same bytes."""
import os
import subprocess

from cluster import Cluster
from support import Skip
from volume import counter, drop_caches, wait_until

PORT = 7500  # of what measures the network
GLUSTER_FILES = ('/var/lib/glusterd', '/var/log/glusterfs')


def write_file(path, text):
    with open(path, 'w', encoding='ascii') as file:
        file.write(text)


class KvCluster:
    """Its second mount is on a node that has no copy of what was written last, where there is one:
    the harder case."""

    name = 'kvsyncfs'

    def __init__(self, build, root, nodes, size):
        self.cluster = Cluster(build, root, nodes=nodes, size=size)
        self.nodes = self.cluster.nodes
        self.network = self.cluster.network
        self.mnt = self.nodes[0].mnt
        self.far = self.nodes[1]
        self.copied = {}

    def note_copies(self):
        """From here on writes are looked at, for far_mount()."""
        self.copied = {n: counter(n.stat(), 'copied_bytes') for n in self.nodes[1:]}

    def far_mount(self):
        """Chooses the node, and returns its mount."""
        grown = {n: counter(n.stat(), 'copied_bytes') - self.copied[n] for n in self.nodes[1:]}
        self.far = min(grown, key=grown.get)
        return self.far.mnt

    def far_has_copy(self):
        return counter(self.far.stat(), 'copied_bytes') > self.copied[self.far]

    @staticmethod
    def _cold(node):
        node.end_in_order()
        drop_caches()
        node.mount()

    def cold(self):
        self._cold(self.nodes[0])

    def cold_far(self):
        self._cold(self.far)

    def finish(self):
        self.cluster.finish()


class Gluster:
    """One server with both bricks, a host for each of two mounts. It keeps its state below `root`:
    the folders that are built into it are taken away in this namespace."""

    name = 'GlusterFS'
    volume = 'bench'

    def __init__(self, root, network):
        self.root = os.path.join(root, 'gluster')
        self.server = network.add('gluster')
        self.hosts = [network.add('client1'), network.add('client2')]
        self.mounts = [os.path.join(self.root, f'mnt{i}') for i in range(2)]
        self.mnt = self.mounts[0]
        for path in self.mounts + [os.path.join(self.root, 'brick')]:
            os.makedirs(path)
        for path in GLUSTER_FILES:
            if not os.path.isdir(path):
                raise Skip('glusterd is not installed: tools/install-deps --bench')
            own = self.root + path
            os.makedirs(own)
            subprocess.run(['mount', '--bind', own, path], check=True)
        self._start_server()
        for i in range(2):
            self._mount(i)

    def _start_server(self):
        volfile = os.path.join(self.root, 'glusterd.vol')
        options = {
            'working-directory': GLUSTER_FILES[0],
            'transport-type': 'socket',
            'transport.socket.bind-address': self.server.address,
        }
        lines = [f'    option {name} {word}' for name, word in options.items()]
        head = ['volume management', '    type mgmt/glusterd']
        write_file(volfile, '\n'.join([*head, *lines, 'end-volume', '']))
        self.log = os.path.join(self.root, 'glusterd.log')
        os.makedirs('/run/gluster', exist_ok=True)
        self.daemon = subprocess.Popen(
            [*self.server.prefix, 'glusterd', '-N', '-f', volfile, '-l', self.log]
        )
        wait_until(lambda: self.ask('pool', 'list').returncode == 0, 30, 'glusterd')
        bricks = [f'{self.server.address}:{self.root}/brick/{i}' for i in range(2)]
        self.tell('volume', 'create', self.volume, 'replica', '2', *bricks, 'force')
        self.tell('volume', 'start', self.volume)

    def ask(self, *words):
        command = [*self.server.prefix, 'gluster', '--mode=script', *words]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )

    def tell(self, *words):
        done = self.ask(*words)
        if done.returncode != 0:
            raise RuntimeError(f'gluster {" ".join(words)}: {done.stdout} {done.stderr}')

    def _mount(self, i):
        words = ['glusterfs', f'--volfile-server={self.server.address}']
        words += [f'--volfile-id={self.volume}', '-l', f'{self.root}/mnt{i}.log', self.mounts[i]]
        subprocess.run([*self.hosts[i].prefix, *words], check=True)
        wait_until(lambda: self._works(self.mounts[i]), 30, f'mount of GlusterFS {i}')

    @staticmethod
    def _works(path):
        try:
            os.listdir(path)
            return os.path.ismount(path)
        except OSError:
            return False

    def note_copies(self):
        pass

    def far_mount(self):
        return self.mounts[1]

    def _cold(self, i):
        subprocess.run(['umount', self.mounts[i]], check=True)
        drop_caches()
        self._mount(i)

    def cold(self):
        self._cold(0)

    def cold_far(self):
        self._cold(1)

    def finish(self):
        for path in self.mounts:
            subprocess.run(['umount', path], check=True)
        self.tell('volume', 'stop', self.volume)
        self.daemon.terminate()
        self.daemon.wait(20)

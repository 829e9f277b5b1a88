"""Nodes of one volume, each with a store, a mount and a host; or, for proof of the cases
themselves, several names of one plain folder."""
import os
import signal
import subprocess
from types import SimpleNamespace

from etcd import Etcd
from jobs import within
from namespaces import Network
from support import check, code, equal, loud, write_synced
from volume import OPTIONS, CommandFailed, Volume, freeze, process_alive, wait_until

LEASE_S = 5  # of a session
# What a change waits for at most when a node has died: its lease, the second in which etcd looks
# for leases that ended, and what the rest takes on a loaded machine.
FAILOVER_S = LEASE_S + 3
# The same where one reaches etcd, but not another node, which takes a second or two to be seen.
CUT_S = FAILOVER_S + 2
PORT = 7420


class Node(Volume):
    def __init__(self, build, folder, host, options):
        super().__init__(build, os.path.join(folder, host.name), options=options)
        self.name, self.host, self.prefix = host.name, host, host.prefix
        self.listen = f'{host.address}:{PORT}'
        self.log = os.path.join(folder, host.name + '.log')
        self.daemon = None

    def format_first(self, url, *words):
        self.format('--volume', 'lab', '--cluster', url, *self._names(), *words)

    def format_next(self, url, secret, *words):
        self.format(
            '--volume',
            'lab',
            '--cluster',
            url,
            '--join',
            '--secret',
            secret,
            *self._names(),
            *words,
        )

    def _names(self):
        return ['--node', self.name, '--listen', self.listen]

    def mount(self, options=None, *args, check=True, **kwargs):
        """Starts the daemon in the foreground, with its log in a file; returns when it serves or
        has ended, with the words of its end as a finished program has them."""
        seconds = kwargs.pop('timeout', 60)
        if self.pid() is None:
            self.detach()  # what a killed daemon left behind could not be told from the new mount
        done = self._start([self.store, self.mnt, *args], options, self.mounted, check, seconds)
        if done.returncode == 0:
            within(seconds, os.stat, self.mnt)
        return done

    def serve(self, options=None, check=True):
        """As mount(), of a node that only holds data."""
        words = ['--no-mount', self.store]
        return self._start(words, options, self.answers, check, 60)

    def answers(self):
        return self.tool('kvsyncfs-stat', self.store).returncode == 0

    def _start(self, words, options, ready, check, seconds):
        start = os.path.getsize(self.log) if os.path.exists(self.log) else 0
        words = [self.tools['kvsyncfs'], '-f', '-o', self.options if options is None else options,
                 *words]  # fmt: skip
        with open(self.log, 'ab') as log:
            self.daemon = subprocess.Popen(
                [*self.prefix, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        wait_until(
            lambda: ready() or self.daemon.poll() is not None, seconds, f'start of {self.name}'
        )
        if self.daemon.poll() is None:
            return SimpleNamespace(returncode=0, stdout='', stderr='')
        with open(self.log, encoding='utf-8', errors='replace') as log:
            log.seek(start)
            said = [line for line in log.read().splitlines() if line.startswith('kvsyncfs: ')]
        done = SimpleNamespace(
            returncode=self.daemon.returncode, stdout='', stderr='\n'.join(said[-1:])
        )
        if check:
            raise CommandFailed(f'mount of {self.name}: exit {done.returncode}: {done.stderr}')
        return done

    def stop(self):
        freeze(self.pid())

    def cont(self):
        os.kill(self.pid(), signal.SIGCONT)

    def path(self, *parts):
        return os.path.join(self.mnt, *parts)

    def end_in_order(self, seconds=40):
        """Unmounts, or ends a daemon without a mount; it must end with status 0."""
        if self.daemon and self.daemon.poll() is None:
            if self.mounted():
                within(seconds, self.unmount)
            else:
                self.daemon.terminate()
            equal(self.daemon.wait(20), 0, f'exit status of the daemon of {self.name}')


class Cluster:
    """`nodes` are mounted when a case begins."""

    def __init__(self, build, root, nodes=3, etcd=1, replicas=2, options='', size='1G'):
        self.root, self.build, self.plain = root, build, False
        self.network = Network()
        self.etcd = Etcd(self.network, root, etcd)
        self.options, self.size, self.replicas = options, size, replicas
        self.nodes = []
        for _ in range(nodes):
            self.add()
        if nodes >= replicas:
            self.settle()

    def make(self, name=None):
        """A node that is neither formatted nor mounted."""
        host = self.network.add(name or f'node{len(self.nodes) + 1}')
        options = [OPTIONS, f'listen={host.address}:{PORT}', self.options]
        node = Node(self.build, self.root, host, ','.join(filter(None, options)))
        node.size = self.size
        return node

    def secret(self):
        return os.path.join(self.nodes[0].store, 'secret')

    def add(self, start=Node.mount):
        node = self.make()
        if self.nodes:
            node.format_next(self.etcd.cluster_url(), self.secret())
        else:
            node.format_first(self.etcd.cluster_url(), '--replicas', str(self.replicas))
        self.nodes.append(node)
        start(node)
        return node

    def settle(self):
        """Waits until every node has found the others: a synced write needs enough of them."""
        for node in self.nodes:
            if not node.mounted():
                continue
            path = node.path('settled')
            wait_until(
                lambda p=path: not within(60, code, write_synced, p, b'x'),
                60,
                f'the first synced write of {node.name}',
            )
            os.unlink(path)

    def finish(self):
        """After a case that passed: what is still mounted ends in order."""
        for node in self.nodes:
            node.end_in_order()


class PlainNode:
    def __init__(self, folder, number):
        self.mnt, self.name = folder, f'node{number}'

    def path(self, *parts):
        return os.path.join(self.mnt, *parts)


class PlainCluster:
    """Several names of one folder: what the cases ask for holds here."""

    def __init__(self, root, nodes=3):
        self.root, self.plain = root, True
        folder = os.path.join(root, 'plain')
        os.mkdir(folder)
        self.nodes = [PlainNode(folder, i + 1) for i in range(nodes)]

    def finish(self):
        pass


def refused(node, *words):
    """The node does not mount, and says why in one line with these words."""
    done = node.mount(check=False)
    check(done.returncode, f'{node.name} was mounted, expected a refusal')
    loud(done, *words)
    check(not process_alive(node.daemon.pid), 'the refused daemon still runs')

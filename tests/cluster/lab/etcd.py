"""Real etcd servers, each on a host of its own."""
import base64
import json
import os
import shutil
import signal
import subprocess
import urllib.request

from support import Skip
from volume import process_alive, wait_until

CLIENT_PORT, PEER_PORT = 2379, 2380


class Etcd:
    def __init__(self, network, folder, count):
        if not shutil.which('etcd'):
            raise Skip('etcd is not installed')
        self.folder = folder
        self.hosts = [network.add(f'etcd{i + 1}') for i in range(count)]
        self.processes = [None] * count
        for index in range(count):
            self.start(index)
        self.wait_healthy()

    def url(self, index, port=CLIENT_PORT):
        return f'http://{self.hosts[index].address}:{port}'

    def cluster_url(self):
        """The word after --cluster of mkfs.kvsyncfs."""
        return 'etcd://' + ','.join(f'{host.address}:{CLIENT_PORT}' for host in self.hosts)

    def start(self, index):
        host = self.hosts[index]
        members = ','.join(f'{h.name}={self.url(i, PEER_PORT)}' for i, h in enumerate(self.hosts))
        words = {
            'name': host.name,
            'data-dir': os.path.join(self.folder, host.name),
            'listen-client-urls': self.url(index),
            'advertise-client-urls': self.url(index),
            'listen-peer-urls': self.url(index, PEER_PORT),
            'initial-advertise-peer-urls': self.url(index, PEER_PORT),
            'initial-cluster': members,
            'heartbeat-interval': '50',
            'election-timeout': '500',
        }
        with open(os.path.join(self.folder, host.name + '.log'), 'ab') as log:
            self.processes[index] = subprocess.Popen(
                [*host.prefix, 'etcd', *(f'--{name}={value}' for name, value in words.items())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def healthy(self, index):
        try:
            with urllib.request.urlopen(self.url(index) + '/health', timeout=1) as answer:
                return b'true' in answer.read()
        except OSError:
            return False

    def wait_healthy(self):
        for index, process in enumerate(self.processes):
            if process:
                wait_until(lambda i=index: self.healthy(i), 30, f'health of etcd {index}')

    def signal(self, index, number):
        os.kill(self.processes[index].pid, number)

    def kill9(self, index):
        process, self.processes[index] = self.processes[index], None
        os.kill(process.pid, signal.SIGKILL)
        process.wait(20)
        assert not process_alive(process.pid)

    def data(self, index):
        return os.path.join(self.folder, self.hosts[index].name)

    def save(self, copy):
        """A copy of the one member's data, as a backup has it."""
        self.signal(0, signal.SIGTERM)
        self.processes[0].wait(30)
        shutil.copytree(self.data(0), copy)
        self.start(0)
        self.wait_healthy()

    def put_back(self, copy=None):
        """The one member dies and begins with a copy of earlier data, or with nothing."""
        self.kill9(0)
        shutil.rmtree(self.data(0))
        if copy:
            shutil.copytree(copy, self.data(0))
        self.start(0)
        self.wait_healthy()

    def keys(self, prefix):
        """What etcd holds below `prefix`: {key: value}, as bytes."""
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        pairs = self._ask('range', key=prefix, range_end=end).get('kvs', [])
        return {base64.b64decode(p['key']): base64.b64decode(p.get('value', '')) for p in pairs}

    def put(self, key, value):
        self._ask('put', key=key, value=value)

    def delete(self, key):
        self._ask('deleterange', key=key)

    def _ask(self, what, **words):
        body = {name: base64.b64encode(word.encode()).decode() for name, word in words.items()}
        request = urllib.request.Request(
            f'{self.url(0)}/v3/kv/{what}', data=json.dumps(body).encode(), method='POST'
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)

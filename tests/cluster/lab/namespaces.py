"""A world of its own for one case, and the hosts in it.

`run_apart` runs a program in private mount, pid and network namespaces with a /run of its own:
whatever it mounts, starts or links ends with it, also when it is killed. Inside, each Host is a
network namespace behind one bridge; links are cut without a reset or a change of carrier, as a
broken switch does it.
"""
import ctypes
import os
import signal
import subprocess
import sys

from support import Skip

PR_SET_PDEATHSIG = 1
APART = [
    *('unshare', '--mount', '--pid', '--net', '--fork', '--kill-child', '--mount-proc'),
    *('--propagation', 'private', 'sh', '-ec'),
    # Copies of mounts would keep those of other tests alive.
    'umount -i -l -a -t fuse.kvsyncfs || true; mount -t tmpfs none /run; exec "$@"',
    'lab',
]
NOWHERE = '02:00:00:00:00:01'  # nobody's address on the bridge


def run_apart(words, seconds):
    """Exit status of the program `words`, None after a time-out. Returns when all its processes
    have ended, whatever happens to it or to the caller."""
    libc = ctypes.CDLL(None)
    outer = subprocess.Popen(
        APART + words,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0),
    )
    try:
        return outer.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if outer.poll() is None:
            # The first process of the pid namespace takes all others with it; `unshare` waits.
            with open(f'/proc/{outer.pid}/task/{outer.pid}/children', encoding='ascii') as children:
                for pid in children.read().split():
                    os.kill(int(pid), signal.SIGKILL)
            outer.wait()


def ip(*words, host=None):
    subprocess.run(['ip', *(['-n', host] if host else []), *words], check=True)


class Network:
    """The bridge that joins all hosts, and this process's own place at it."""

    PREFIX = '10.77.0.'

    def __init__(self):
        self.hosts = []
        ip('link', 'set', 'lo', 'up')
        ip('link', 'add', 'bridge', 'type', 'bridge')
        ip('addr', 'add', self.PREFIX + '254/24', 'dev', 'bridge')
        ip('link', 'set', 'bridge', 'up')

    def add(self, name):
        host = Host(name, self.PREFIX + str(len(self.hosts) + 1), f'port{len(self.hosts) + 1}')
        self.hosts.append(host)
        return host


class Host:
    """A network namespace; `prefix` are the words before a program that is to run in it."""

    def __init__(self, name, address, port):
        self.name, self.address, self.port = name, address, port
        ip('netns', 'add', name)
        ip('link', 'add', port, 'type', 'veth', 'peer', 'name', 'e0', 'netns', name)
        ip('link', 'set', port, 'master', 'bridge', 'up')
        ip('link', 'set', 'lo', 'up', host=name)
        ip('addr', 'add', address + '/24', 'dev', 'e0', host=name)
        ip('link', 'set', 'e0', 'up', host=name)
        # Not `ip netns exec`: that has a mount namespace of its own.
        self.prefix = ['nsenter', f'--net=/run/netns/{name}', '--']

    def cut(self):
        """From now on no packet comes here or leaves."""
        ip('link', 'set', self.port, 'nomaster')

    def join(self):
        ip('link', 'set', self.port, 'master', 'bridge')

    def lose_packets_to(self, other):
        """What this host sends to `other` vanishes; the other direction goes on."""
        ip(
            'neigh',
            'replace',
            other.address,
            'lladdr',
            NOWHERE,
            'nud',
            'permanent',
            'dev',
            'e0',
            host=self.name,
        )

    def reach(self, other):
        ip('neigh', 'del', other.address, 'dev', 'e0', host=self.name)

    def delay(self, milliseconds):
        """From now on each packet that comes or leaves is on its way for so long."""
        if not os.path.exists('/dev/net/tun'):
            raise Skip('no /dev/net/tun to delay packets with')
        slow, inside = 's' + self.port, 'i' + self.port
        here = os.path.dirname(os.path.abspath(__file__))
        self.relay = subprocess.Popen(
            [sys.executable, os.path.join(here, 'slow_link.py'), slow, inside, str(milliseconds)],
            stdout=subprocess.PIPE,
        )
        self.relay.stdout.readline()
        ip('link', 'del', self.port)
        self.port = slow
        ip('link', 'set', slow, 'master', 'bridge', 'up')
        ip('link', 'set', inside, 'netns', self.name)
        ip('link', 'set', inside, 'name', 'e0', host=self.name)
        ip('addr', 'add', self.address + '/24', 'dev', 'e0', host=self.name)
        ip('link', 'set', 'e0', 'up', host=self.name)


def cut_between(one, other):
    one.lose_packets_to(other)
    other.lose_packets_to(one)


def join_between(one, other):
    one.reach(other)
    other.reach(one)

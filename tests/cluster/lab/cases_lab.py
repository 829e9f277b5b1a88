"""The laboratory itself: what the other cases rely on."""
import glob
import os
import signal
import subprocess
import sys
import tempfile

from etcd import CLIENT_PORT, Etcd
from jobs import Hang, within
from namespaces import Network, cut_between, join_between
from oracle import BYTE_STEPS, NAME_STEPS, Walk
from races import judge_records, judge_synced, record, synced_record
from support import case, check, equal, put
from volume import wait_until


def _reaches(host, other, port=CLIENT_PORT):
    """Whether a connection from `host` to `other` is made within half a second."""
    script = f'import socket; socket.create_connection(("{other.address}", {port}), 0.5)'
    done = subprocess.run(
        [*host.prefix, sys.executable, '-c', script], check=False, stderr=subprocess.DEVNULL
    )
    return done.returncode == 0


def _listen(host):
    script = f'import socket, time; s = socket.create_server(("", {CLIENT_PORT})); time.sleep(99)'
    process = subprocess.Popen([*host.prefix, sys.executable, '-c', script])
    wait_until(lambda: _reaches(host, host), 10, 'a listening socket')
    return process


@case(cluster=False)
def cut_hosts_do_not_reach_each_other(c):
    """A cut takes away one link, one direction or a whole host, and joining brings it back."""
    network = Network()
    one, two, three = (network.add(f'h{i}') for i in range(3))
    for host in (one, two, three):
        _listen(host)
    check(_reaches(one, two), 'a link that nobody cut')
    cut_between(one, two)
    equal([_reaches(one, two), _reaches(two, one)], [False, False], 'the cut link')
    equal([_reaches(one, three), _reaches(two, three)], [True, True], 'the links beside it')
    join_between(one, two)
    equal([_reaches(one, two), _reaches(two, one)], [True, True], 'the joined link')
    two.cut()
    equal([_reaches(one, two), _reaches(three, two)], [False, False], 'a host that is cut off')
    two.join()
    check(_reaches(one, two), 'the host is back')


@case(cluster=False)
def one_way_cut_lets_the_other_way_through(c):
    """Packets that one host loses do not hinder those that it is sent."""
    network = Network()
    one, two = network.add('h1'), network.add('h2')
    script = 'import socket; s = socket.socket(2, 2); s.bind(("", 9)); s.settimeout(2); s.recv(9)'
    one.lose_packets_to(two)
    for sender, receiver, arrives in ((two, one, True), (one, two, False)):
        listener = subprocess.Popen(
            [*receiver.prefix, sys.executable, '-c', script], stderr=subprocess.DEVNULL
        )
        wait_until(lambda r=receiver: ':0009' in _udp_table(r), 10, 'a bound socket')
        send = f'import socket; socket.socket(2, 2).sendto(b"x", ("{receiver.address}", 9))'
        subprocess.run([*sender.prefix, sys.executable, '-c', send], check=True)
        equal(listener.wait(10) == 0, arrives, f'from {sender.name} to {receiver.name}')


def _udp_table(host):
    done = subprocess.run([*host.prefix, 'cat', '/proc/net/udp'], capture_output=True, check=True)
    return done.stdout.decode()


@case(cluster=False)
def delayed_host_answers_later(c):
    """A delay of a host's packets is there, in both directions."""
    network = Network()
    one, two = network.add('h1'), network.add('h2')
    _listen(two)
    two.delay(300)
    script = (
        'import socket, time; t = time.monotonic();'
        f'socket.create_connection(("{two.address}", {CLIENT_PORT}), 5);'
        'raise SystemExit(not 0.55 < time.monotonic() - t < 2)'
    )
    subprocess.run([*one.prefix, sys.executable, '-c', script], check=True)


@case(cluster=False)
def etcd_survives_one_of_three(c):
    """Three etcd servers answer, also with one killed, and the killed one comes back."""
    etcd = Etcd(Network(), c.root, 3)
    equal([etcd.healthy(i) for i in range(3)], [True] * 3, 'health')
    etcd.kill9(0)
    wait_until(lambda: etcd.healthy(1) and etcd.healthy(2), 10, 'health of the other two')
    check(not etcd.healthy(0), 'the killed server answers')
    etcd.start(0)
    etcd.wait_healthy()


@case(cluster=False)
def hanging_call_is_given_up(c):
    """A call that does not come back costs its bound and no more."""
    reader, _ = os.pipe()
    try:
        within(0.3, os.read, reader, 1)
    except Hang:
        return
    raise AssertionError('the read of an empty pipe came back')


def _processes_of(folder):
    """Processes, here and in namespaces below, that name the folder on their command line."""
    found = []
    for path in glob.glob('/proc/[0-9]*/cmdline'):
        try:
            with open(path, 'rb') as words:
                if os.fsencode(folder) in words.read():
                    found.append(path)
        except OSError:
            pass
    return found


@case(cluster=False)
def interrupted_run_leaves_nothing(c):
    """SIGTERM and SIGKILL of a run end every process that it started; SIGTERM takes its folder
    away."""
    run = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'run.py')
    for number in (signal.SIGTERM, signal.SIGKILL):
        work = tempfile.mkdtemp(dir=c.root)
        words = ['--plain', '--more', '100000', '--work', work, 'names_are_the_same_everywhere']
        outer = subprocess.Popen(
            [sys.executable, run, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_until(lambda w=work: glob.glob(w + '/*/plain/*'), 20, 'start of the case')
        outer.send_signal(number)
        outer.wait(20)
        wait_until(lambda w=work: not _processes_of(w), 10, 'end of all that the case started')
        equal(len(os.listdir(work)), int(number == signal.SIGKILL), f'folders after {number}')


def _complains(function, *args):
    try:
        function(*args)
    except AssertionError as error:
        return str(error)
    raise AssertionError(f'{function.__name__} saw nothing wrong')


@case(cluster=False)
def oracles_see_what_is_wrong(c):
    """Each oracle complains where a node shows old names or bytes, or records are damaged."""
    os.mkdir('/run/plain')
    for steps in (NAME_STEPS, BYTE_STEPS):
        mounts = [tempfile.mkdtemp(dir=c.root) for _ in range(2)]  # changes never cross
        _complains(Walk(mounts, tempfile.mkdtemp(dir='/run/plain'), c.seed, steps).run, 50)
    lines = [record('n1', i) for i in range(4)]
    damaged = (lines[:2] + lines[3:], lines + lines[3:], lines[:3] + [lines[3][:-9] + b'\n'])
    for found in (*damaged, lines[::-1], lines[:1] + [bytes(100)] + lines[1:]):
        put('records', b''.join(found))
        _complains(judge_records, 'records', ['n1'], 4)
    put('records', b''.join(lines))
    judge_records('records', ['n1'], 4)
    size = len(synced_record(0))
    put('own0', synced_record(0))
    good = synced_record(0) + synced_record(1)
    for data in (good[: 2 * size - 1], good + b'x', good[:size] + bytes(size)):
        put('data', data)
        _complains(judge_synced, '.', 2)
    put('data', good + synced_record(2)[:100])
    judge_synced('.', 2)

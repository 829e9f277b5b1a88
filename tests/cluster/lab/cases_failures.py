"""Nodes that are killed, stopped or cut off, and what the others notice of it."""
import mmap
import os
import random
import shutil
import time

from cluster import FAILOVER_S
from jobs import Job, timed, within
from namespaces import cut_between, join_between
from oracle import tree
from races import (
    digest,
    judge_synced,
    read_on,
    read_uncached,
    synced_count,
    write_synced_records,
)
from support import case, check, code, equal, get, put, write_synced
from volume import wait_until

# Small enough that readers ask the holders, not their own memory.
SMALL_CACHE = 'cache_size=4M'
BACK_S = 30  # until a node that was cut off or stopped serves again, or says that it does not


def put_synced(node, name, data):
    write_synced(node.path(name), data)


def change_often(mnt, who, seconds):
    """Makes, fills, renames and removes files for so long; returns (longest step, rounds)."""
    longest, rounds, end = 0.0, 0, time.monotonic() + seconds
    while time.monotonic() < end:
        path = os.path.join(mnt, f'{who}.{rounds}')
        for step in (
            lambda p=path: put(p, b'x' * 5000),
            lambda p=path: os.rename(p, p + '.moved'),
            lambda p=path: os.unlink(p + '.moved'),
        ):
            took, _ = timed(step)
            longest = max(longest, took)
        rounds += 1
    return longest, rounds


def same_trees(nodes, seconds=40):
    """All mounts show the same names, attributes and bytes."""
    first = within(seconds, tree, nodes[0].mnt)
    for node in nodes[1:]:
        other = within(seconds, tree, node.mnt)
        differs = {p for p in {*first, *other} if first.get(p) != other.get(p)}
        equal(
            {p: other.get(p) for p in differs},
            {p: first.get(p) for p in differs},
            f'what {node.name} shows against {nodes[0].name}',
        )
    return first


def serves_again(node, name, want):
    """Under the same mount the node shows the present bytes, after errors perhaps; never stale
    bytes."""
    started, errors = time.monotonic(), set()
    while True:
        try:
            got = within(BACK_S, get, node.path(name))
            break
        except OSError as error:
            errors.add(error.strerror)
            check(time.monotonic() - started < BACK_S, f'{node.name} does not come back: {errors}')
            time.sleep(0.2)
    took = time.monotonic() - started
    print(f'  {node.name} is back after {took:.2f} s {", ".join(sorted(errors))}')
    equal(got, want, f'{name} on {node.name}, which was away')


@case(options=SMALL_CACHE)
def readers_go_on_when_a_holder_dies(c):
    """A holder is killed while others read its bytes, and comes back: no read fails, none waits
    above a second."""
    paths, digests = [], []
    for number in range(64):
        data = random.Random(number).randbytes(256 << 10)
        put_synced(c.nodes[0], f'f{number}', data)
        paths.append(f'f{number}')
        digests.append(digest(data))
    readers = [Job(read_on, [node.path(p) for p in paths], digests, 12) for node in c.nodes[1:]]
    time.sleep(3)
    c.nodes[0].kill9()
    time.sleep(4)
    c.nodes[0].mount()
    gaps = [reader.result(40) for reader in readers]
    print('  ' + ', '.join(f'longest gap {gap * 1000:.0f} ms in {n} reads' for gap, n in gaps))
    check(max(gap for gap, _ in gaps) <= 1, f'(longest gap in s, reads) of the readers: {gaps}')


@case(options=SMALL_CACHE)
def mapped_file_goes_on_when_its_writer_dies(c):
    """A program that maps a file whose writer is killed reads on from another holder."""
    data = random.Random(1).randbytes(8 << 20)
    put_synced(c.nodes[0], 'f', data)

    def read_mapped(start, end):
        fd = os.open(c.nodes[2].path('f'), os.O_RDONLY)
        mapped = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
        return digest(mapped[start:end])

    half = len(data) // 2
    equal(within(20, read_mapped, 0, half), digest(data[:half]), 'the first half')
    c.nodes[0].kill9()
    equal(within(20, read_mapped, half, len(data)), digest(data[half:]), 'the second half')


@case()
def writer_dies_and_its_synced_bytes_are_there(c):
    """A writer's node is killed: the others go on within the lease and its margin, and read every
    byte whose fsync had returned."""
    one, two, three = c.nodes
    os.mkdir(one.path('w'))
    note = os.path.join(c.root, 'note')
    writer = Job(write_synced_records, one.path('w'), note)
    other = Job(change_often, two.mnt, 'other', 3 + FAILOVER_S + 3)
    wait_until(lambda: synced_count(note) > 40 * c.more, 40, 'synced records')
    one.kill9()
    count = synced_count(note)
    code(writer.result, 20)
    longest, rounds = other.result(60)
    print(f'  {count} synced records; longest change of another node {longest:.2f} s')
    check(rounds > 10 and longest <= FAILOVER_S, f'{rounds} rounds, longest step {longest:.2f} s')
    for node in (two, three):
        within(30, judge_synced, node.path('w'), count)
    one.mount()
    within(30, judge_synced, one.path('w'), count)
    same_trees(c.nodes)


@case()
def returning_node_shows_what_the_others_show(c):
    """While a node is dead the others rename, remove, overwrite and make; when it is back it shows
    exactly that, and nothing reappears anywhere."""
    one, two, three = c.nodes
    for folder in ('stays', 'moves', 'goes'):
        os.mkdir(one.path(folder))
        for number in range(40):
            put(one.path(folder, f'f{number}'), random.Random(number).randbytes(2000))
    put_synced(three, 'f', b'old' * 10_000)
    for number in range(2):
        three.kill9()
        os.rename(one.path('moves'), one.path('moved'))
        if number == 0:
            shutil.rmtree(two.path('goes'))
        put(two.path('stays', 'f1'), b'overwritten %d' % number)
        put(two.path('f'), b'new%d' % number * 9000)
        os.rename(one.path('f'), one.path('g'))
        os.mkdir(one.path(f'made{number}'))
        put(one.path(f'made{number}', 'x'), random.Random(7).randbytes(3 << 20))
        want = same_trees([one, two])
        three.mount()
        equal(within(30, tree, three.mnt), want, 'what the node shows that is back')
        equal(same_trees([one, two]), want, 'what the others show then')
        os.rename(three.path('g'), three.path('f'))
        os.rename(three.path('moved'), three.path('moves'))


@case()
def returning_holder_serves_whole_files(c):
    """Files that a node listed before their holder was killed and came back are read whole."""
    one, _, three = c.nodes
    files = {f'f{i}': random.Random(i).randbytes(108 << 10) for i in range(60)}
    for name, data in files.items():
        put_synced(one, name, data)
    equal(
        {n: os.stat(three.path(n)).st_size for n in os.listdir(three.mnt)},
        {n: len(d) for n, d in files.items()},
        'names and sizes',
    )
    one.kill9()
    one.mount()
    jobs = [Job(read_uncached, three.path(name)) for name in files]
    for job, data in zip(jobs, files.values()):
        equal(job.result(40), data, 'a file read after its holder came back')


@case(timeout=90)
def stopped_node_delays_and_then_shows_nothing_stale(c):
    """A daemon is stopped for longer than its lease: the others' changes go on, and afterwards it
    shows what they did."""
    one, two, three = c.nodes
    put(one.path('f'), b'old')
    for node in c.nodes:
        equal(get(node.path('f')), b'old', f'before, on {node.name}')
    os.chmod(one.mnt, 0o711)
    os.stat(one.mnt)  # the kernel may keep this as long as the lease holds
    one.stop()
    waiting = Job(get, one.path('f'))
    took, _ = timed(within, FAILOVER_S + 20, os.chmod, two.mnt, 0o755)
    print(f'  the first change took {took:.2f} s')
    looking = Job(os.stat, one.mnt)
    put(two.path('f'), b'new')
    longest, _ = Job(change_often, three.mnt, 'three', 2).result(40)
    one.cont()
    check(took <= FAILOVER_S, f'a change took {took:.2f} s while another node was stopped')
    check(longest <= 2, f'a change took {longest:.2f} s after the lease of the stopped node')
    try:
        equal(waiting.result(30), b'new', 'what an open of the stopped node reads afterwards')
    except OSError as error:
        print(f'  the open that waited: {error}')
    try:
        equal(looking.result(30).st_mode & 0o777, 0o755, 'mode that the stopped node shows')
    except OSError as error:
        print(f'  the stat that waited: {error}')
    serves_again(one, 'f', b'new')
    put(one.path('f'), b'newest')
    equal(get(three.path('f')), b'newest', 'a change of the node that was stopped')
    same_trees(c.nodes)


@case(options='timeout=8', timeout=100)
def node_cut_from_etcd_answers_nothing_stale(c):
    """A node that lost etcd answers ETIMEDOUT once its lease is over, never old bytes; nothing
    hangs above the time-out; it serves again when etcd is back."""
    one, two, _ = c.nodes
    put(one.path('f'), b'old')
    equal(get(one.path('f')), b'old', 'before')
    handle = os.open(one.path('f'), os.O_RDONLY)
    cut_between(one.host, c.etcd.hosts[0])
    took, _ = timed(within, FAILOVER_S + 20, put, two.path('f'), b'new')
    check(took <= FAILOVER_S, f'a change took {took:.2f} s while another node had lost etcd')
    calls = {
        'stat': (os.stat, one.path('f')),
        'read': (get, one.path('f')),
        'list': (os.listdir, one.mnt),
        'write': (put, one.path('f'), b'mine'),
        'mkdir': (os.mkdir, one.path('d')),
    }
    for name, call in calls.items():
        took, got = timed(within, 40, code, *call)
        check(got, f'{name} succeeded on a node without etcd, whose lease is over')
        equal(got, 'ETIMEDOUT', f'{name} on a node without etcd')
        check(took <= 8 + 3, f'{name} took {took:.2f} s with a time-out of 8 s')
    took, got = timed(within, 40, os.pread, handle, 3, 0)
    check(len(got) == 3, f'a handle that was open read {got}')
    check(took <= 2, f'a read of a handle that was open took {took:.2f} s')
    os.close(handle)
    join_between(one.host, c.etcd.hosts[0])
    serves_again(one, 'f', b'new')
    put(one.path('g'), b'g')
    equal(get(two.path('g')), b'g', 'its change on another node')
    same_trees(c.nodes)


@case()
def silent_peer_costs_one_lease(c):
    """A node whose packets vanish without a reset: the others' changes wait for its lease once, and
    the counters answer."""
    one, two, three = c.nodes
    changing = [Job(change_often, n.mnt, n.name, FAILOVER_S + 6) for n in (one, two)]
    time.sleep(2)
    three.host.cut()
    took, _ = timed(within, 30, one.stat)
    check(took < 5, f'kvsyncfs-stat took {took:.2f} s')
    for node, job in zip((one, two), changing):
        longest, rounds = job.result(60)
        print(f'  {node.name}: {rounds} rounds, longest step {longest:.2f} s')
        check(longest <= FAILOVER_S, f'a step of {node.name} took {longest:.2f} s')
    three.host.join()
    put(one.path('f'), b'f')
    serves_again(three, 'f', b'f')
    same_trees(c.nodes)


@case(timeout=90)
def removed_open_file_outlives_no_session(c):
    """A node that holds a removed file open is cut off for longer than its lease: using it works
    or fails cleanly, and the mount serves on."""
    one, two, _ = c.nodes
    put(one.path('f'), b'kept' * 1000)
    put(one.path('g'), b'g')
    fd = os.open(one.path('f'), os.O_RDWR)
    os.unlink(two.path('f'))
    one.host.cut()
    within(FAILOVER_S + 20, put, two.path('g'), b'new')
    one.host.join()
    serves_again(one, 'g', b'new')

    def use():
        check(os.pread(fd, 4, 0) in (b'kept', b''), 'bytes that the file never had')
        os.pwrite(fd, b'more', 0)

    got = within(40, code, use)
    clean = ('', 'EIO', 'ESTALE', 'ENOENT', 'ETIMEDOUT', 'ENOTCONN', 'ECONNABORTED')
    check(got in clean, f'using the removed file: {got}')
    code(os.close, fd)
    put(one.path('h'), b'h')
    same_trees(c.nodes)


@case(timeout=90)
def restarted_etcd_costs_a_pause(c):
    """etcd is killed and started again: no call hangs, nothing is lost, and all go on."""
    one, two, three = c.nodes
    put_synced(one, 'f', b'f')
    c.etcd.kill9(0)
    changing = Job(code, put, two.path('g'), b'g')
    c.etcd.start(0)
    c.etcd.wait_healthy()
    print(f'  a change in between: {changing.result(40) or "succeeded"}')
    for node in c.nodes:
        wait_until(
            lambda n=node: not within(40, code, put, n.path(n.name), b'x'),
            BACK_S,
            f'changes of {node.name}',
        )
    for node in (two, three):
        equal(get(node.path('f')), b'f', f'on {node.name}')
    same_trees(c.nodes)


@case(etcd=3)
def one_of_three_etcd_servers_may_die(c):
    """With one etcd server of three killed, its leader perhaps, all nodes go on."""
    changing = [Job(change_often, node.mnt, node.name, 12) for node in c.nodes]
    time.sleep(2)
    c.etcd.kill9(c.seed % 3)
    for node, job in zip(c.nodes, changing):
        longest, rounds = job.result(60)
        print(f'  {node.name}: {rounds} rounds, longest step {longest:.2f} s')
        check(longest <= FAILOVER_S, f'a step of {node.name} took {longest:.2f} s')
    same_trees(c.nodes)


@case()
def unmount_ends_while_another_node_is_dead(c):
    """With a node dead, another one unmounts in order and mounts again."""
    one, two, three = c.nodes
    put(two.path('f'), b'two' * 1000)
    one.kill9()
    took, _ = timed(two.end_in_order)
    check(took <= FAILOVER_S + 5, f'unmounting took {took:.2f} s')
    two.mount()
    for node in (two, three):
        equal(within(20, get, node.path('f')), b'two' * 1000, f'on {node.name}')


@case()
def all_nodes_killed_come_back(c):
    """All nodes are killed at once and started again: every synced byte and name is there."""
    one = c.nodes[0]
    os.mkdir(one.path('w'))
    note = os.path.join(c.root, 'note')
    writer = Job(write_synced_records, one.path('w'), note)
    wait_until(lambda: synced_count(note) > 30, 40, 'synced records')
    for node in c.nodes:
        node.kill9()
    code(writer.result, 20)
    for node in c.nodes:
        node.mount()
    for node in c.nodes:
        within(30, judge_synced, node.path('w'), synced_count(note))
    same_trees(c.nodes)

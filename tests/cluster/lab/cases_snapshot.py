"""Nodes that are too late for the log: they take the catalog of another one."""
import os
import random
import subprocess
import time

from cluster import refused
from jobs import Job, within
from oracle import tree
from support import case, check, code, equal, get, put, write_synced
from volume import wait_until

# The log is trimmed after a thousand changes or two, and not full before that.
SHORT_LOG = 'log_size=1M'


def trimmed(c):
    """Position up to which the log is gone."""
    records = c.etcd.keys('/kvsyncfs/lab/log/1/trim')
    return int(next(iter(records.values())).split()[1])


def change_until_trimmed(c, node, who, beyond):
    """Makes and removes files on a node until the log begins after `beyond`; two of three stay."""
    end = time.monotonic() + 60
    number = 0
    while trimmed(c) <= beyond:
        for _ in range(50):
            put(node.path(f'{who}{number}'), random.Random(number).randbytes(300))
            if number % 3 == 0:
                os.unlink(node.path(f'{who}{number}'))
            number += 1
        check(time.monotonic() < end, f'the log is not trimmed beyond {beyond} in a minute')
    return number


def says(node, *words):
    with open(node.log, encoding='utf-8', errors='replace') as log:
        text = log.read()
    return all(word in text for word in words)


@case(nodes=2, options=SHORT_LOG, timeout=150)
def node_joins_after_the_log_was_trimmed(c):
    """A new node of a volume whose log has lost its beginning shows everything, and takes part."""
    one, two = c.nodes
    big = random.Random(1).randbytes(4 << 20)
    write_synced(one.path('big'), big)
    with open(one.path('removed'), 'w+b') as held:  # an orphan comes with the catalog as well
        held.write(b'held')
        held.flush()
        os.unlink(one.path('removed'))
        change_until_trimmed(c, one, 'a', 0)
        writer = Job(change_until_trimmed, c, two, 'b', trimmed(c) + 200)
        three = c.add()
        writer.result(90)
        check(says(three, 'taking that of another node', 'is here'), 'the catalog was taken')
        equal(within(30, tree, three.mnt), within(30, tree, one.mnt), 'what the new node shows')
        write_synced(three.path('mine'), b'mine')
        equal(within(20, get, two.path('mine')), b'mine', 'its file on another node')
        held.seek(0)
        equal(held.read(), b'held', 'a removed file that another node has open')
    three.kill9()
    three.mount()
    equal(within(30, tree, three.mnt), within(30, tree, two.mnt), 'what it shows after a kill')


@case(options=SHORT_LOG, timeout=150)
def log_is_trimmed_while_a_node_is_away(c):
    """A dead node holds up no trimming; when it is back it takes the catalog by itself, keeps what
    it held, and copies nothing of that again."""
    one, two, three = c.nodes
    for number in range(4):
        write_synced(three.path(f'old{number}'), random.Random(number).randbytes(1 << 20))
    three.kill9()
    change_until_trimmed(c, one, 'a', 0)
    begin = trimmed(c)
    change_until_trimmed(c, two, 'b', begin + 300)
    segments = os.path.join(three.store, 'segments')
    before = {name: os.stat(os.path.join(segments, name)).st_ino for name in os.listdir(segments)}
    three.mount()
    check(says(three, 'taking that of another node', 'is here'), 'the catalog was taken')
    equal(within(30, tree, three.mnt), within(30, tree, one.mnt), 'what it shows')
    after = {name: os.stat(os.path.join(segments, name)).st_ino for name in os.listdir(segments)}
    kept = {name for name, inode in before.items() if after.get(name) == inode}
    check(kept, f'files of segments that stayed, of {sorted(before)}, now {sorted(after)}')
    put(three.path('mine'), b'mine')
    equal(get(one.path('mine')), b'mine', 'its file on another node')


@case(options=SHORT_LOG, timeout=180)
def fetch_is_killed_at_any_moment(c):
    """A daemon that is killed while it takes a catalog leaves a store that mounts."""
    one, _, three = c.nodes
    write_synced(three.path('old'), b'old')
    three.kill9()
    change_until_trimmed(c, one, 'a', 0)
    rng = random.Random(c.seed)
    words = [*three.prefix, three.tools['kvsyncfs'], '-f', three.store, three.mnt, '-o']
    for _ in range(12):
        with open(three.log, 'ab') as log:
            starting = [*words, three.options]
            subprocess.Popen(starting, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(lambda: three.pid() is not None, 20, 'start of the daemon')
        time.sleep(rng.uniform(0, 0.3))
        if three.pid() is not None:
            three.kill9()
    three.mount()
    check(says(three, 'taking that of another node', 'is here'), 'the catalog was taken')
    equal(within(30, tree, three.mnt), within(30, tree, one.mnt), 'what it shows')


@case(options=f'{SHORT_LOG},timeout=6', timeout=150)
def nobody_gives_a_catalog(c):
    """Without a node that has it, one that is too late says so in one line and changes nothing."""
    one, two, three = c.nodes
    three.kill9()
    change_until_trimmed(c, one, 'a', 0)
    want = within(30, tree, one.mnt)
    two.end_in_order()
    one.end_in_order()
    refused(three, 'no other node')
    one.mount()
    three.mount()
    two.mount()
    equal(within(30, tree, three.mnt), want, 'what it shows')


def _chmod_often(node, name, count):
    for number in range(count):
        os.chmod(node.path(name), 0o600 | number % 8)


@case(timeout=150)
def wrong_catalog_is_found_and_replaced(c):
    """A node whose catalog is not that of the two others fences itself within some thousand
    changes, and takes theirs at its next mount."""
    one, two, three = c.nodes
    write_synced(one.path('f'), b'f')
    three.end_in_order()
    done = three.tool(os.path.join(c.build, 'spoil_catalog'), three.store, 'f')
    equal(done.returncode, 0, done.stderr)
    three.mount()
    equal(os.stat(three.path('f')).st_uid, 12345, 'the owner there')
    within(100, _chmod_often, one, 'f', 2100)
    want = os.stat(one.path('f')).st_uid
    wait_until(lambda: says(three, 'not that of most nodes'), 30, 'the node finds out')
    check(code(os.stat, three.path('f')), 'it shows nothing any more')
    put(two.path('g'), b'g')
    three.tool('umount.fuse.kvsyncfs', '-f', three.mnt, timeout=60)
    three.abort()
    three.mount()
    check(says(three, 'was found wrong', 'is here'), 'it took another catalog')
    equal(os.stat(three.path('f')).st_uid, want, 'the owner there')
    within(100, _chmod_often, one, 'f', 2100)
    equal(within(30, tree, three.mnt), within(30, tree, two.mnt), 'what it shows')

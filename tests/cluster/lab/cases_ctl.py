"""kvsyncfs-ctl on nodes that are up."""
import glob
import json
import os
import random
import shutil
import threading
import time

from cluster import FAILOVER_S, refused
from jobs import within
from support import case, check, code, equal, get, loud, put, write_synced
from volume import counter, wait_until

PAGE = 4096
HEALED_S = 60


def _ctl(node, *words):
    done = node.tool('kvsyncfs-ctl', node.mnt, *words, timeout=100)
    equal((done.returncode, done.stderr), (0, ''), f'kvsyncfs-ctl {" ".join(words)}')
    return done.stdout


def _ask(node, *words):
    return json.loads(_ctl(node, *words, '--json'))


def _names(location, extent):
    names = {node['id']: node['name'] for node in location['nodes']}
    return sorted(names[holder] for holder in extent['holders'])


@case(nodes=3)
def flush_waits_until_all_is_on_the_holders(c):
    """What was written without fsync survives the node after kvsyncfs-ctl flush."""
    one, two, _ = c.nodes
    data = random.Random(1).randbytes(1 << 20)
    fd = os.open(one.path('f'), os.O_CREAT | os.O_WRONLY)
    os.write(fd, data)
    _ctl(one, 'flush')
    one.kill9()
    code(os.close, fd)
    equal(within(30, get, two.path('f')), data, 'the bytes on another node')


@case(nodes=3)
def locate_names_holders_and_who_is_away(c):
    """kvsyncfs-ctl locate tells the same holders on every node, and which of them is away."""
    one, two, three = c.nodes
    write_synced(one.path('f'), random.Random(1).randbytes(64 * PAGE))
    seen = _ask(one, 'locate', one.path('f'))
    equal(seen['size_bytes'], 64 * PAGE, 'size')
    extent = seen['extents'][0]
    holders = _names(seen, extent)
    equal(len(holders), 2, 'holders')
    check(one.name in holders and extent['here'], 'the writer has a copy')
    for other in (two, three):
        same = _ask(other, 'locate', '/f')
        equal(_names(same, same['extents'][0]), holders, f'holders as {other.name} sees them')
        equal(same['extents'][0]['here'], other.name in holders, f'a copy at {other.name}')
    loud(one.tool('kvsyncfs-ctl', one.mnt, 'locate', '/none'), '/none', 'ENOENT')
    gone = next(node for node in (two, three) if node.name in holders)
    gone.kill9()
    within(30, put, one.path('g'))  # returns when the session has ended
    table = _ctl(one, 'locate', one.path('f'))
    check(f'{gone.name} (away)' in table, table)


def _segment_file(node, location):
    """Path of the file that has the first extent in this node's store, and the place in it."""
    extent = location['extents'][0]
    (path,) = glob.glob(os.path.join(node.store, 'segments', f'{extent["segment"]:016x}.seg'))
    return path, extent['segment_offset']


def _seal(c, node):
    """Nodes seal what they have open when they end."""
    node.end_in_order()
    node.mount()
    c.settle()


def _damage(node, location):
    path, at = _segment_file(node, location)
    with open(path, 'r+b') as file:
        file.seek(at + 100)
        file.write(b'?' * 10)
        os.fsync(file.fileno())


@case(nodes=3, timeout=120)
def verify_mends_a_bad_copy_from_a_good_one(c):
    """kvsyncfs-ctl verify finds the node whose copy is damaged and mends it; on any node."""
    one = c.nodes[0]
    write_synced(one.path('f'), random.Random(1).randbytes(64 * PAGE))
    _seal(c, one)
    seen = _ask(one, 'locate', '/f')
    for node in c.nodes:  # the others may be on their way to the node that came back
        asks = (node.tool, 'kvsyncfs-ctl', node.mnt, 'verify', '/f')
        wait_until(lambda a=asks: a[0](*a[1:]).returncode == 0, 10, f'{node.name} asks all copies')
    equal(_ctl(one, 'verify', '/f'), '', 'what is said of good copies')
    holders = _names(seen, seen['extents'][0])
    bad = next(node for node in c.nodes[1:] if node.name in holders)
    stranger = next(node for node in c.nodes if node.name not in holders)
    _damage(bad, seen)
    said = _ctl(stranger, 'verify', '/f')
    check(said.startswith(f'{bad.name}: segment') and 'mended from another copy' in said, said)
    equal(_ctl(one, 'verify', '/f'), '', 'after it was mended')


@case(nodes=3, timeout=120)
def scrub_mends_this_nodes_copies(c):
    """kvsyncfs-ctl scrub reads what the node holds and mends a bad page from another holder; with
    no good copy left it says which file is hit, goes on behind that, and exits with 1."""
    one = c.nodes[0]
    for name in ('f', 'g'):
        write_synced(one.path(name), random.Random(1).randbytes(64 * PAGE))
    _seal(c, one)
    seen = _ask(one, 'locate', '/f')
    behind = _ask(one, 'locate', '/g')
    equal(behind['extents'][0]['segment'], seen['extents'][0]['segment'], 'the segment of both')
    holders = _names(seen, seen['extents'][0])
    other = next(node for node in c.nodes[1:] if node.name in holders)
    _damage(one, seen)
    said = _ctl(one, 'scrub')
    check(said.startswith(f'{one.name}: segment') and 'mended' in said, said)
    equal(_ctl(one, 'scrub'), '', 'after it was mended')
    for node in (one, other):
        _damage(node, seen)
    _damage(one, behind)
    done = one.tool('kvsyncfs-ctl', one.mnt, 'scrub')
    equal(done.returncode, 1, 'exit status')
    check('not mended\n  /f\n' in done.stdout, done.stdout)
    check('mended from another copy' in done.stdout, done.stdout)


@case(nodes=3, timeout=150)
def scrub_makes_a_lost_segment_file_anew(c):
    """A segment's file that is deleted under a node that is up is made anew by its scrub, the same
    bytes; verify does so for a file on any holder; the other holder can then be lost."""
    one = c.nodes[0]
    data = {name: random.Random(name).randbytes(300 * PAGE) for name in 'fgh'}
    for name, content in data.items():
        write_synced(one.path(name), content)
    _seal(c, one)
    seen = _ask(one, 'locate', '/f')
    holders = _names(seen, seen['extents'][0])
    other = next(node for node in c.nodes[1:] if node.name in holders)
    left = next(node for node in c.nodes if node.name not in holders)
    path, _ = _segment_file(one, seen)
    with open(path, 'rb') as file:
        whole = file.read()
    os.unlink(path)
    said = _ctl(one, 'scrub')
    check('mended from another copy' in said, said)
    with open(path, 'rb') as file:
        equal(file.read() == whole, True, 'the new file is the old one')
    equal(_ctl(one, 'scrub'), '', 'after it was made anew')
    os.unlink(_segment_file(other, seen)[0])
    said = _ctl(left, 'verify', '/f')
    check(said.startswith(f'{other.name}: segment') and 'mended' in said, said)
    equal(_ctl(one, 'verify', '/f'), '', 'verify again')
    _ctl(other, 'scrub')
    with open(_segment_file(other, seen)[0], 'rb') as file:
        equal(file.read() == whole, True, 'the file of the other holder')
    one.kill9()
    other.kill9()
    other.mount()  # what it has is on its disk
    c.nodes.remove(one)
    for name, content in data.items():
        equal(within(30, get, left.path(name)), content, name)


@case(nodes=3, timeout=120, options='scrub_period=1')
def copies_are_scrubbed_by_themselves(c):
    """A damaged copy, and one whose file is gone, are found and mended without anybody's asking."""
    one = c.nodes[0]
    write_synced(one.path('f'), random.Random(1).randbytes(64 * PAGE))
    _seal(c, one)
    seen = _ask(one, 'locate', '/f')
    holders = _names(seen, seen['extents'][0])
    other = next(node for node in c.nodes[1:] if node.name in holders)
    left = next(node for node in c.nodes if node.name not in holders)

    def wait_for(node):
        wait_until(lambda: counter(node.stat(), 'scrub_mended_pages'), 30,
                   f'{node.name} to mend its copy')

    _damage(one, seen)  # one after the other: a good copy has to be left
    wait_for(one)
    os.unlink(_segment_file(other, seen)[0])
    wait_for(other)
    equal(_ctl(left, 'verify', '/f'), '', 'what is said of the copies')
    equal(counter(one.stat(), 'scrub_bad_pages'), 0, 'pages that nothing could mend')


@case(nodes=3)
def pull_brings_a_file_into_memory(c):
    """After kvsyncfs-ctl pull every page of the file is in the node's memory."""
    one = c.nodes[0]
    write_synced(one.path('f'), random.Random(1).randbytes(300 * PAGE))
    holders = _names(*(lambda seen: (seen, seen['extents'][0]))(_ask(one, 'locate', '/f')))
    away = next(node for node in c.nodes if node.name not in holders)
    said = _ask(away, 'pull', away.path('f'))
    equal(said['pulled_bytes'], 300 * PAGE, 'bytes pulled')
    for extent in _ask(away, 'locate', '/f')['extents']:
        equal(extent['pages_in_memory'], extent['pages'], 'pages in memory')
    equal(_ask(away, 'pull', '/f')['pulled_bytes'], 0, 'bytes pulled again')


def _holders(node, path):
    seen = _ask(node, 'locate', path)
    return [_names(seen, extent) for extent in seen['extents']]


@case(nodes=4, timeout=150)
def drained_node_holds_nothing_any_more(c):
    """kvsyncfs-ctl drain moves a node's copies elsewhere while all go on; then it can be lost."""
    one, two, three, four = c.nodes
    data = {}
    for number, node in enumerate(c.nodes * 2):
        data[f'f{number}'] = random.Random(number).randbytes(100_000)
        write_synced(node.path(f'f{number}'), data[f'f{number}'])
    _ctl(one, 'drain', four.name)
    check('drain' in _ctl(one, 'nodes'), 'nodes does not show it')

    def left():
        leaving = _ask(one, 'heal')['leaving']  # once the order has come
        return leaving[0]['left']['segments'] if leaving else None

    wait_until(lambda: left() == 0, HEALED_S, 'the node to be empty')
    check(f'{four.name}' in _ctl(one, 'nodes') and 'drained' in _ctl(one, 'nodes'), 'nodes')
    for name in data:
        for holders in _holders(one, '/' + name):
            check(four.name not in holders and len(holders) == 2, f'{name}: {holders}')
    equal(_ask(one, 'heal')['at_risk']['segments'], 0, 'segments at risk')
    four.kill9()
    for name, want in data.items():
        equal(within(30, get, two.path(name)), want, name)
    equal(_ctl(three, 'lost'), 'nothing is lost\n', 'lost')
    loud(one.tool('kvsyncfs-ctl', one.mnt, 'drain', 'nobody'), 'nobody', 'ENOENT')
    _ctl(one, 'drain', three.name)
    _ctl(one, 'drain', three.name, '--cancel')
    check('drain' not in _ctl(one, 'nodes').split(three.name)[1].split('\n')[0], 'after --cancel')


@case(nodes=3, timeout=120)
def healing_reads_on_from_another_holder(c):
    """Where the copy of the node that heals is bad, the new one is made from another holder's."""
    one = c.nodes[0]
    data = random.Random(1).randbytes(64 * PAGE)
    write_synced(one.path('f'), data)
    _seal(c, one)
    seen = _ask(one, 'locate', '/f')
    other = next(node for node in c.nodes[1:] if node.name in _names(seen, seen['extents'][0]))
    new = next(node for node in c.nodes[1:] if node is not other)
    _damage(one, seen)
    _ctl(one, 'drain', other.name)
    wait_until(lambda: other.name not in _holders(one, '/f')[0], HEALED_S, 'the copy to move')
    equal(_holders(one, '/f'), [sorted([one.name, new.name])], 'holders')
    other.kill9()
    equal(within(30, get, new.path('f')), data, 'what the new copy has')


@case(nodes=2)
def drain_that_cannot_end_is_refused(c):
    """A node is not drained where the others could not hold all copies."""
    one, two = c.nodes
    loud(one.tool('kvsyncfs-ctl', one.store, 'drain', two.name), 'ENOSPC', '1 nodes')


@case(nodes=3, timeout=150, options='heal_delay=3')
def maintenance_starts_no_healing(c):
    """A node whose absence is planned is not replaced; one that is away without a word is."""
    one, two, _ = c.nodes
    write_synced(one.path('f'), random.Random(1).randbytes(100_000))
    (holders,) = _holders(one, '/f')
    gone = next(node for node in c.nodes[1:] if node.name in holders)
    _ctl(one, 'maintenance', gone.name, '--for', '10m')
    gone.end_in_order()
    check('maintenance' in _ctl(one, 'nodes'), 'nodes does not show it')
    end = time.monotonic() + 10
    while time.monotonic() < end:
        equal(_holders(one, '/f'), [holders], 'holders during the maintenance')
        time.sleep(0.5)
    equal(_ask(one, 'heal')['at_risk']['segments'] > 0, True, 'it is shown to be at risk')
    _ctl(one, 'maintenance', gone.name, '--end')
    wait_until(lambda: gone.name not in _holders(one, '/f')[0], HEALED_S, 'healing')
    equal(len(_holders(one, '/f')[0]), 2, 'copies')


@case(nodes=3, timeout=120)
def heal_now_does_not_wait(c):
    """kvsyncfs-ctl heal --now replaces who is away at once; --rate changes the cap everywhere."""
    one, two, _ = c.nodes
    write_synced(one.path('f'), random.Random(1).randbytes(100_000))
    (holders,) = _holders(one, '/f')
    gone = next(node for node in c.nodes[1:] if node.name in holders)
    gone.kill9()
    within(30, put, one.path('g'))  # returns when the session has ended
    check(_ask(one, 'heal')['at_risk']['segments'] > 0, 'nothing at risk')
    _ctl(one, 'heal', '--now', '--rate', '100M')
    wait_until(lambda: gone.name not in _holders(one, '/f')[0], HEALED_S, 'healing')
    wait_until(lambda: _ask(one, 'heal')['at_risk']['segments'] == 0, HEALED_S, 'no risk')
    equal(_ask(one, 'heal')['rate_bytes'], 100 << 20, 'the cap')


@case(nodes=3, timeout=120)
def lost_names_files_without_a_live_holder(c):
    """kvsyncfs-ctl lost lists what nobody that lives has, and nothing when a holder is back."""
    one = c.nodes[0]
    write_synced(one.path('f'), random.Random(1).randbytes(100_000))
    (holders,) = _holders(one, '/f')
    gone = [node for node in c.nodes if node.name in holders]
    left = next(node for node in c.nodes if node.name not in holders)
    equal(_ctl(left, 'lost'), 'nothing is lost\n', 'before')
    for node in gone:
        node.kill9()
    wait_until(lambda: _ask(left, 'lost')['paths'], 3 * FAILOVER_S, 'the loss to be seen')
    equal(_ask(left, 'lost')['paths'], ['/f'], 'paths')
    gone[0].mount()
    wait_until(lambda: not _ask(left, 'lost')['paths'], 30, 'the holder to be back')


@case(nodes=4, timeout=150)
def two_drained_holders_leave_no_time_with_one_copy(c):
    """Where all holders of a file are drained, copies go only when as many others are there."""
    one = c.nodes[0]
    write_synced(one.path('f'), random.Random(1).randbytes(100_000))
    (holders,) = _holders(one, '/f')
    for name in holders:
        _ctl(one, 'drain', name)
    seen = []

    def moved():
        seen.append(_holders(one, '/f')[0])
        return not set(seen[-1]) & set(holders)

    wait_until(moved, HEALED_S, 'the copies to be elsewhere')
    check(all(len(each) >= 2 for each in seen), f'holders in turn: {seen}')


@case(nodes=3, timeout=150)
def secret_is_changed_while_all_go_on(c):
    """kvsyncfs-ctl rotate-secret gives the volume another secret under load; a node that was away
    without it is refused in one line until it gets it, and nodes that restart find one another."""
    one, two, three = c.nodes
    three.end_in_order()
    over, faults = threading.Event(), []

    def work(node):
        number = 0
        while not over.is_set():
            number += 1
            try:
                write_synced(node.path(f'{node.name}.{number % 20}'), b'x' * number)
            except OSError as fault:
                faults.append(f'{node.name}: {fault}')

    workers = [threading.Thread(target=work, args=(node,)) for node in (one, two)]
    for worker in workers:
        worker.start()
    try:
        old = get(c.secret())
        next_one = os.path.join(one.store, 'secret.next')
        said = _ctl(one, 'rotate-secret')
        check(next_one in said and 'away: node3' in said, said)
        done = one.tool('kvsyncfs-ctl', one.mnt, 'rotate-secret', '--finish')
        loud(done, 'node2')
        shutil.copy(next_one, two.store)
        wait_until(
            lambda: one.tool('kvsyncfs-ctl', one.mnt, 'rotate-secret', '--finish').returncode == 0,
            20,
            'the end of the change',
        )
        for node in (one, two):
            path = os.path.join(node.store, 'secret')
            wait_until(lambda p=path: get(p) != old, 20, f'the new secret of {node.name}')
        refused(three, 'secret')
        shutil.copy(os.path.join(one.store, 'secret'), three.store)
        three.mount()
    finally:
        over.set()
        for worker in workers:
            worker.join()
    equal(faults, [], 'faults of the load')
    two.end_in_order()
    two.mount()
    c.settle()
    write_synced(two.path('f'), b'f')
    for node in c.nodes:
        equal(within(20, get, node.path('f')), b'f', f'on {node.name}')

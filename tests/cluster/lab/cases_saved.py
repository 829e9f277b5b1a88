"""Saved catalogs: a snapshot of a live volume at one position, and the volume put back to it."""
import json
import os
import random

from jobs import Job, within
from oracle import tree
from support import case, check, code, equal, get, loud, write_synced
from volume import wait_until

FILES, SIZE = 12, 9000
BIG = 8 << 20


def _ctl(node, *words):
    return node.tool('kvsyncfs-ctl', node.store, *words, timeout=120)


def _done(node, *words):
    done = _ctl(node, *words)
    equal(done.returncode, 0, done.stderr)
    return done.stdout


def _holds(node):
    return json.loads(_done(node, 'snapshots', '--json'))['holds']


def _content(number):
    return random.Random(number).randbytes(SIZE)


def _write_on(folder):
    """Until it is ended: one file after the other, each synced."""
    number = 0
    while True:
        write_synced(os.path.join(folder, f'{number:06}'), _content(number))
        number += 1


def _left(node):
    """Segments on nodes that are drained."""
    report = json.loads(_done(node, 'heal', '--json'))
    return [leaving['left']['segments'] for leaving in report['leaving']]


def _fill(c):
    rng = random.Random(1)
    for index, node in enumerate(c.nodes):
        os.mkdir(node.path(f'd{index}'))
        for number in range(FILES):
            write_synced(node.path(f'd{index}', f'f{number}'), rng.randbytes(SIZE))
        write_synced(node.path(f'd{index}', 'big'), rng.randbytes(BIG))
        os.symlink('f1', node.path(f'd{index}', 'link'))


def _shown(node):
    """All but the folder that is written to meanwhile."""
    return {path: seen for path, seen in tree(node.mnt).items() if path.split('/')[0] != 'load'}


def _spoil(c):
    """Files go, get other bytes and other names; segments are emptied over and over."""
    rng = random.Random(2)
    for index, node in enumerate(c.nodes[:3]):
        for number in range(0, FILES, 3):
            os.unlink(node.path(f'd{index}', f'f{number}'))
            write_synced(node.path(f'd{index}', f'f{number + 1}'), rng.randbytes(SIZE // 2))
        os.rename(node.path(f'd{index}', 'f2'), node.path(f'd{index}', 'renamed'))
        for _ in range(12):
            write_synced(node.path(f'd{index}', 'big'), rng.randbytes(BIG))
        write_synced(node.path(f'd{index}', 'new'), rng.randbytes(BIG))
        os.unlink(node.path(f'd{index}', 'link'))


def _end_all(c):
    for node in c.nodes:
        node.end_in_order()


def _restore(c, first, file, *words):
    done = _ctl(first, 'restore-catalog', file, *words)
    equal(done.returncode, 0, done.stderr)
    first.mount()
    for node in c.nodes:
        if node is not first:
            _done(node, 'take-catalog', '--yes')
            node.mount()


def _check_load(folder):
    """Of what was written one after the other there is a beginning, the last file perhaps empty."""
    names = sorted(os.listdir(folder))
    equal(names, [f'{number:06}' for number in range(len(names))], 'names in their order')
    for number, name in enumerate(names):
        data = get(os.path.join(folder, name))
        is_last = number == len(names) - 1
        check(data == _content(number) or (is_last and not data), f'the bytes of {name}')
    return len(names)


@case(timeout=300, size='512M')
def snapshot_of_a_live_volume_is_put_back(c):
    """What a snapshot under load has comes back byte for byte after deletes, overwrites, renames
    and the cleaner, also where copies have moved to other nodes since."""
    one, two, three = c.nodes
    _fill(c)
    os.mkdir(two.path('load'))
    file = os.path.join(c.root, 'monday.catalog')
    job = Job(_write_on, two.path('load'))
    try:
        wait_until(lambda: len(os.listdir(one.path('load'))) > 20, 60, 'the load')
        want = within(30, _shown, one)
        _done(one, 'snapshot-catalog', file, '--name', 'monday', '--for', '1d')
        wait_until(lambda: len(os.listdir(one.path('load'))) > 60, 60, 'the load goes on')
    finally:
        job.stop()
    check(not os.path.exists(file + '.part'), 'one file, under its name')
    loud(_ctl(one, 'snapshot-catalog', file), 'monday.catalog')
    loud(_ctl(one, 'snapshot-catalog', file + '2', '--name', 'monday'), 'monday')
    check(not os.path.exists(file + '2'), 'nothing where it failed')
    within(120, _spoil, c)
    four = c.add()
    _done(one, 'drain', three.name)
    wait_until(lambda: _left(one) == [0], 120, 'all copies of the drained node are elsewhere')
    _done(one, 'drain', three.name, '--cancel')
    wait_until(lambda: _holds(one)[0]['kept_bytes'] > 3 * BIG, 30, 'the hold keeps dead bytes')
    _end_all(c)
    look = json.loads(_done(one, 'restore-catalog', file, '--dry-run', '--json'))
    equal((look['begun'], look['lost']), (False, []), 'a look')
    _restore(c, one, file)
    c.settle()
    for node in (one, two, three, four):
        equal(within(60, _shown, node), want, f'what {node.name} shows')
        check(within(60, _check_load, node.path('load')) >= 20, 'the load up to the snapshot')
    equal([hold['name'] for hold in _holds(four)], ['monday'], 'the hold stands')
    within(120, _spoil, c)
    _done(two, 'release-snapshot', 'monday')
    equal(_holds(one), [], 'no hold')
    loud(_ctl(two, 'release-snapshot', 'monday'), 'monday')


@case(timeout=200)
def spoiled_snapshots_change_nothing(c):
    """A snapshot of another volume, a cut one, one with a flipped bit, and none at all: one clear
    error each, and the volume is as it was."""
    one = c.nodes[0]
    _fill(c)
    file = os.path.join(c.root, 'a.catalog')
    _done(one, 'snapshot-catalog', file)
    loud(_ctl(one, 'restore-catalog', file), 'in use')
    want = within(30, _shown, one)
    c.nodes[1].end_in_order()
    c.nodes[2].end_in_order()
    one.end_in_order()
    whole = get(file)
    rng = random.Random(c.seed)

    def spoiled(data, *words):
        path = os.path.join(c.root, 'spoiled')
        with open(path, 'wb') as out:
            out.write(data)
        loud(_ctl(one, 'restore-catalog', path), 'spoiled', *words)

    for _ in range(10):
        at = rng.randrange(len(whole) * 8)
        flipped = bytearray(whole)
        flipped[at // 8] ^= 1 << at % 8
        spoiled(flipped)
    for size in [0, 50, 128, 140, len(whole) - 1, rng.randrange(len(whole))]:
        spoiled(whole[:size])
    spoiled(whole + b'x', 'follows')
    loud(_ctl(one, 'restore-catalog', os.path.join(c.root, 'none')), 'none')
    for node in c.nodes:
        node.mount()
    c.settle()
    equal(within(60, _shown, c.nodes[1]), want, 'the volume')


@case(timeout=200)
def snapshot_without_its_bytes_is_refused(c):
    """A snapshot whose hold was released names the files that lost bytes, and --force goes on with
    the others."""
    one, two, three = c.nodes
    _fill(c)
    want = within(30, _shown, one)
    file = os.path.join(c.root, 'a.catalog')
    _done(one, 'snapshot-catalog', file)
    _done(one, 'release-snapshot', 'a.catalog')
    for node in c.nodes:
        node.end_in_order()
        node.mount()
    c.settle()
    for index, node in enumerate(c.nodes):
        os.unlink(node.path(f'd{index}', 'big'))
        for number in range(FILES):
            os.unlink(node.path(f'd{index}', f'f{number}'))
    _end_all(c)
    _mount_and_end(c)
    loud(_ctl(one, 'restore-catalog', file), 'big', '--force')
    _restore(c, one, file, '--force')
    equal(within(30, os.listdir, two.path()), within(30, os.listdir, three.path()), 'names')
    shown = sorted(os.listdir(two.path('d0')))
    equal(shown, sorted(path[3:] for path in want if path.startswith('d0/')), 'all names are back')
    for node in c.nodes:
        seen = within(60, code, get, node.path('d0', 'big'))
        check(seen in ('EIO', 'EHOSTUNREACH'), f'what is gone is no zeros: {seen}')
    done = _ctl(one, 'verify', '/d0/big')
    check(done.returncode == 1 and '/d0/big' in done.stdout, done.stdout + done.stderr)


def _mount_and_end(c):
    """The dead segments go at the latest at an orderly end."""
    for node in c.nodes:
        node.mount()
    c.settle()
    _end_all(c)

"""kvsyncfs-ctl on nodes that are up."""
import json
import os
import random

from jobs import within
from support import case, check, code, equal, get, loud, put, write_synced

PAGE = 4096


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

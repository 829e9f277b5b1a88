"""Programs of several nodes at the same moment on the same files and folders."""
import mmap
import os
import random
import sqlite3

from jobs import barrier, together, within
from oracle import tree
from support import PAGE, case, check, code, equal, put


def _move(mnt, source, target, rounds, gate):
    """Moves the folder into the other one and back."""
    outcomes = []
    for _ in range(rounds):
        gate.wait()
        inside = os.path.join(mnt, target, source)
        outcomes.append(code(os.rename, os.path.join(mnt, source), inside))
        gate.wait()
        if not outcomes[-1]:
            os.rename(inside, os.path.join(mnt, source))
        gate.wait()
    return outcomes


@case(plain=True)
def folders_are_never_moved_into_each_other(c):
    """Two nodes move two folders into each other at the same moment: one of them at most succeeds,
    so that both can be reached afterwards."""
    one, two = c.nodes[:2]
    for name in ('a', 'b'):
        os.mkdir(one.path(name))
        put(one.path(name, f'in.{name}'))
    before, rounds, gate = tree(one.mnt), 60 * c.more, barrier(2)
    outcomes = together(
        50 * c.more,
        (_move, one.mnt, 'a', 'b', rounds, gate),
        (_move, two.mnt, 'b', 'a', rounds, gate),
    )
    for number, both in enumerate(zip(*outcomes)):
        check('' in both and both != ('', ''), f'round {number}: the moves said {both}')
        check(set(both) <= {'', 'EINVAL', 'ENOENT'}, f'round {number}: the moves said {both}')
    for node in c.nodes:
        equal(within(20, tree, node.mnt), before, f'the tree on {node.name}')


def _write_versions(path, rounds, closed):
    for number in range(1, rounds + 1):
        fd = os.open(path, os.O_WRONLY)
        for page in random.Random(number).sample(range(8), 8):
            os.pwrite(fd, number.to_bytes(8, 'little') * (PAGE // 8), page * PAGE)
        os.close(fd)
        closed[:8] = number.to_bytes(8, 'little')


def _read_versions(path, rounds, closed):
    """Opens and reads until the last version is there; no page of an open file is older than what
    was closed before the open."""
    looks, known = 0, 0
    while known < rounds:
        known = int.from_bytes(closed[:8], 'little')
        fd = os.open(path, os.O_RDONLY)
        if looks % 2:
            mapped = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
            data = mapped[:]
            mapped.close()
        else:
            data = os.pread(fd, 8 * PAGE, 0)
        os.close(fd)
        equal(len(data), 8 * PAGE, 'bytes read')
        words = memoryview(data).cast('Q')  # a page that is being written may have two versions
        check(min(words) >= known, f'{min(words)} was read, {known} was closed before')
        check(max(words) <= rounds, f'{max(words)} was read, which nobody wrote')
        looks += 1
    return looks


@case(plain=True)
def pages_are_never_older_than_the_last_close(c):
    """While one node rewrites a file again and again, what others read and map of it is never older
    than what was closed before they opened it."""
    rounds = 300 * c.more
    put(c.nodes[0].path('f'), bytes(8 * PAGE))
    closed = mmap.mmap(-1, PAGE)
    _, *looks = together(
        50 * c.more,
        (_write_versions, c.nodes[0].path('f'), rounds, closed),
        *((_read_versions, node.path('f'), rounds, closed) for node in c.nodes),
    )
    print(f'  {looks} looks at {rounds} versions')
    check(min(looks) > 2, f'{looks} looks')


def _insert(path, who, count):
    base = sqlite3.connect(path, timeout=40, isolation_level=None)
    for number in range(count):
        base.execute('begin immediate')
        base.execute('insert into t values (?, ?, ?)', (who, number, 'x' * 700))
        base.execute('update sums set n = n + 1')
        base.execute('commit')
    base.close()


@case(plain=True)
def sqlite_is_whole_on_several_nodes(c):
    """A database with a rollback journal that all nodes change keeps each transaction, once."""
    count, path = 12 * c.more, [node.path('base') for node in c.nodes]
    base = sqlite3.connect(path[0])
    base.executescript(
        'create table t (who, number, text); create index i on t (who, number);'
        'create table sums (n); insert into sums values (0);'
    )
    base.close()
    together(50 * c.more, *((_insert, p, f'n{i}', count) for i, p in enumerate(path)))
    for there in path:
        base = sqlite3.connect(there)
        equal(base.execute('pragma integrity_check').fetchall(), [('ok',)], there)
        rows = base.execute('select who, number from t order by who, number').fetchall()
        base_sum = base.execute('select n from sums').fetchall()
        base.close()
        want = [(f'n{i}', number) for i in range(len(path)) for number in range(count)]
        equal(rows, want, f'rows in {there}')
        equal(base_sum, [(len(want),)], f'the sum in {there}')

"""Names and attributes seen from several nodes. Nobody is killed here."""
import os
import stat
import subprocess
import threading

from jobs import barrier, timed, together, within
from oracle import BYTE_STEPS, NAME_STEPS, Walk, tree
from races import EXCLUSIVE, exclusive
from support import case, check, code, create, equal, fails, get, put
from volume import wait_until

SHADOW = '/run/plain'


def walk(c, steps, count):
    """Runs a random sequence on all mounts and on a tmpfs; at least a third must succeed."""
    os.mkdir(SHADOW)
    for node in c.nodes:
        os.makedirs(node.path('walk'), exist_ok=True)
    mounts = [node.path('walk') for node in c.nodes]
    count *= c.more
    done = within(50 * c.more, Walk(mounts, SHADOW, c.seed, steps).run, count)
    check(done * 3 > count, f'only {done} of {count} steps succeeded')


@case(plain=True)
def names_are_the_same_everywhere(c):
    """Every change of names has the outcome that POSIX says, and is seen by all nodes at once."""
    walk(c, NAME_STEPS, 250)


@case(plain=True)
def closed_bytes_are_the_same_everywhere(c):
    """Whoever opens a file after another node closed it reads exactly its bytes."""
    walk(c, BYTE_STEPS, 200)


@case(plain=True)
def exclusive_name_has_one_winner(c):
    """create, mkdir, symlink, link and rename without replacing: of three nodes exactly one
    succeeds, the others get EEXIST."""
    mounts = [node.mnt for node in c.nodes]
    if c.plain:
        mounts = [os.path.join(mounts[0], f'm{i}') for i in range(len(mounts))]
        for mnt in mounts:
            os.symlink('.', mnt)
    for kind in EXCLUSIVE:
        exclusive(mounts, kind, 25 * c.more, 50 * c.more)


def _open_all(mnt, rounds, gate):
    outcomes = []
    for number in range(rounds):
        gate.wait()
        path = os.path.join(mnt, f'shared{number}')
        outcomes.append(code(lambda p=path: os.close(create(p, os.O_APPEND))))
    return outcomes


@case(plain=True)
def shared_create_succeeds_on_all(c):
    """open(O_CREAT) of one name on all nodes at once succeeds everywhere, on one inode."""
    rounds, gate = 40 * c.more, barrier(len(c.nodes))
    outcomes = together(40 * c.more, *((_open_all, n.mnt, rounds, gate) for n in c.nodes))
    for number, round_ in enumerate(zip(*outcomes)):
        equal(round_, ('',) * len(c.nodes), f'open(O_CREAT) of one name, round {number}')
        inodes = {os.stat(n.path(f'shared{number}')).st_ino for n in c.nodes}
        equal(len(inodes), 1, f'inodes of shared{number}')


@case(plain=True)
def removed_name_is_gone_and_its_successor_new(c):
    """A name that was removed and made again elsewhere is the new file at once; "no such file" is
    never remembered."""
    one, two = c.nodes[:2]
    for number in range(30 * c.more):
        put(one.path('f'), b'old%d' % number)
        equal(get(two.path('f')), b'old%d' % number, f'bytes on {two.name}')
        os.unlink(one.path('f'))
        equal(code(os.stat, two.path('f')), 'ENOENT', f'removed name on {two.name}')
        put(one.path('f'), b'new%d' % number)
        equal(get(two.path('f')), b'new%d' % number, f'bytes of the new file on {two.name}')
        fails('ENOENT', os.stat, one.path(f'd{number}'))
        os.mkdir(two.path(f'd{number}'))
        fails('EEXIST', os.mkdir, one.path(f'd{number}'))
        check(stat.S_ISDIR(os.stat(one.path(f'd{number}')).st_mode), 'the directory is seen')


@case(plain=True)
def renamed_directory_leaves_an_empty_name(c):
    """After mv A B; mkdir A the new A is empty, whichever node did which."""
    nodes = c.nodes
    for number in range(10 * c.more):
        a, b = f'a{number}', f'b{number}'
        os.mkdir(nodes[0].path(a))
        for name in ('x', 'y', 'z'):
            put(nodes[0].path(a, name), name.encode())
        for node in nodes:
            equal(len(os.listdir(node.path(a))), 3, f'{a} on {node.name}')
        os.rename(nodes[number % 2].path(a), nodes[number % 2].path(b))
        os.mkdir(nodes[1].path(a))
        for node in nodes:
            equal(os.listdir(node.path(a)), [], f'the new {a} on {node.name}')
            equal(sorted(os.listdir(node.path(b))), ['x', 'y', 'z'], f'{b} on {node.name}')


def _remove(folder, names):
    for name in names:
        os.unlink(os.path.join(folder, name))


def _moves(node, source, target):
    return not code(os.rename, node.path(source), node.path(target))


@case(plain=True)
def folder_is_moved_on_from_where_another_node_moved_it(c):
    """A folder that nodes move in turn from one to the next, each without a look at it before."""
    one, two = c.nodes[:2]
    for place in ('new', 'work', 'done'):
        os.mkdir(one.path(place))
    for number in range(3):
        job = f'job{number}'
        os.mkdir(one.path('new', job))
        put(one.path('new', job, 'f'), b'x')
        os.rename(two.path('new', job), two.path('work', job))
        wait_until(lambda j=job: _moves(one, f'work/{j}', f'done/{j}'), 5, 'the next move')
        os.rename(two.path('done', job), two.path('done', 'again'))
        wait_until(lambda: _moves(one, 'done/again', 'new/again'), 5, 'the move of a new name')
        equal(get(two.path('new', 'again', 'f')), b'x')
        os.unlink(one.path('new', 'again', 'f'))
        os.rmdir(two.path('new', 'again'))


@case(plain=True)
def parallel_removal_leaves_nothing(c):
    """Two nodes remove one half of a directory each: it is empty everywhere, and can be removed."""
    folders = [node.path('many') for node in c.nodes]
    count = 300 * c.more
    os.mkdir(folders[0])
    for number in range(count):
        put(os.path.join(folders[number % 2], f'n{number}'), b'')
    equal([len(os.listdir(f)) for f in folders], [count] * len(folders), 'names before')
    together(
        40 * c.more,
        (_remove, folders[0], [f'n{i}' for i in range(0, count, 2)]),
        (_remove, folders[1], [f'n{i}' for i in range(1, count, 2)]),
    )
    equal([os.listdir(f) for f in folders], [[]] * len(folders), 'names that are left')
    os.rmdir(folders[-1])
    equal([os.path.exists(f) for f in folders], [False] * len(folders), 'the directory')


def _come_and_go(folder, rounds):
    for number in range(rounds):
        put(os.path.join(folder, f'temp{number}'), b'')
        os.rename(os.path.join(folder, f'temp{number}'), os.path.join(folder, f'moved{number}'))
        os.unlink(os.path.join(folder, f'moved{number}'))


def _list_often(folder, steady, rounds):
    for number in range(rounds):
        names = os.listdir(folder)
        equal(len(names), len(set(names)), f'listing {number}: a name twice')
        missing = steady - set(names)
        equal(missing, set(), f'listing {number}: names that were there all the time')


@case(plain=True)
def listing_shows_what_stays_exactly_once(c):
    """While others make, rename and remove names, a listing shows those that stay once each."""
    folders = [node.path('d') for node in c.nodes]
    os.mkdir(folders[0])
    steady = {f'stays{i}' for i in range(200)}
    for name in steady:
        put(os.path.join(folders[0], name), b'')
    together(
        45 * c.more,
        (_come_and_go, folders[1], 60 * c.more),
        (_list_often, folders[0], steady, 60 * c.more),
        (_list_often, folders[2], steady, 60 * c.more),
    )


NAMES = ['café'.encode(), 'cafe\u0301'.encode(), 'café'.encode('latin1'), b'a\nb', b'\t', b'-rf']
NAMES += [b'blank ', b'dot.', b'%2F', b'back\\slash', b'"quote\'', b'\x01', b'\xff', b'n' * 255]


@case(plain=True)
def names_are_bytes(c):
    """Names that are not UTF-8, differ by normalisation or hold control characters are the same
    bytes on every node."""
    for name in NAMES:
        put(os.path.join(os.fsencode(c.nodes[0].mnt), name), name)
    for node in c.nodes:
        root = os.fsencode(node.mnt)
        equal(sorted(os.listdir(root)), sorted(NAMES), f'names on {node.name}')
        for name in NAMES:
            equal(get(os.path.join(root, name)), name, f'bytes of {name} on {node.name}')
    for name in NAMES:
        os.unlink(os.path.join(os.fsencode(c.nodes[-1].mnt), name))
    equal([os.listdir(node.mnt) for node in c.nodes], [[]] * len(c.nodes), 'names at the end')


@case(plain=True)
def attributes_are_the_same_everywhere(c):
    """Owner, rights, link count, times (before and after flushes) and xattrs are the maker's on all
    nodes."""
    one, two, three = c.nodes
    put(one.path('f'), b'data')
    os.chown(one.path('f'), 1001, 1002)
    os.chmod(two.path('f'), 0o640)
    os.setxattr(three.path('f'), 'trusted.lab', b'value')
    os.link(two.path('f'), two.path('g'))
    os.link(three.path('g'), three.path('h'))
    fd = os.open(one.path('f'), os.O_WRONLY)
    os.write(fd, b'more')
    os.utime(fd, ns=(-86_400 * 10**9, 123_456_789))
    os.close(fd)
    os.unlink(two.path('f'))
    for node in c.nodes:
        info = os.stat(node.path('h'))
        seen = (info.st_uid, info.st_gid, stat.S_IMODE(info.st_mode), info.st_nlink)
        equal(seen, (1001, 1002, 0o640, 2), f'owner, group, mode, links on {node.name}')
        equal(
            (info.st_atime_ns, info.st_mtime_ns),
            (-86_400 * 10**9, 123_456_789),
            f'times on {node.name}',
        )
        equal(os.getxattr(node.path('h'), 'trusted.lab'), b'value', f'xattr on {node.name}')


@case(plain=True)
def birth_time_asked_for_keeps_no_old_size(c):
    """stat(1) asks for the birth time by a request of its own; what the kernel learns from it does
    not outlive a change on another node, also where no name is looked up."""
    one, two, _ = c.nodes
    put(one.path('f'), b'1')
    fd = os.open(two.path('f'), os.O_RDONLY)
    for size in range(2, 8):
        said = subprocess.check_output(['stat', '-c', '%w %s', '-'], stdin=fd, text=True)
        equal(int(said.split()[-1]), size - 1, 'size that stat(1) says there')
        with open(one.path('f'), 'r+b') as file:
            file.write(b'x' * size)
        equal(os.fstat(fd).st_size, size, 'size on another node')
    os.close(fd)


def _write_from(mnt, who):
    fd = create(os.path.join(mnt, who))
    os.write(fd, who.encode())
    os.close(fd)


@case(plain=True)
def changes_cost_no_long_wait(c):
    """While all nodes make files at once in one directory nobody waits for long."""
    seconds, _ = timed(
        together,
        40,
        *((_make_some, node.mnt, node.name, 40 * c.more) for node in c.nodes),
    )
    check(seconds < 20 * c.more, f'{40 * c.more} files on each of three nodes took {seconds:.1f} s')
    trees = [within(20, tree, node.mnt) for node in c.nodes]
    equal(trees[1:], trees[:-1], 'the trees of the nodes')


def _make_some(mnt, who, count):
    for number in range(count):
        seconds, _ = timed(_write_from, mnt, f'{who}.{number}')
        check(seconds < 5, f'{who} file {number} took {seconds:.1f} s')


@case(plain=True)
def set_id_bits_go_with_a_foreign_write(c):
    """A write by an ordinary user on one node takes the set-ID bits away on all."""
    one, two, three = c.nodes
    put(one.path('f'), b'x')
    os.chmod(one.path('f'), 0o6777)
    equal(stat.S_IMODE(os.stat(two.path('f')).st_mode), 0o6777, 'mode before')

    def append():
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        fd = os.open(two.path('f'), os.O_WRONLY | os.O_APPEND)
        os.write(fd, b'y')
        os.close(fd)

    within(20, append)
    equal(stat.S_IMODE(os.stat(three.path('f')).st_mode), 0o777, 'mode after')
    equal(get(one.path('f')), b'xy', 'bytes')


def _stat_on(paths, until):
    while not until.is_set():
        for path in paths:
            os.stat(path)


@case()
def attributes_are_never_old(c):
    """While programs on a node look at attributes all the time, so that its kernel keeps them, each
    change of another node is seen as soon as it has returned."""
    one, two, three = c.nodes
    os.mkdir(one.path('d'))
    put(one.path('d/f'), b'')
    put(one.path('g'), b'')
    until = threading.Event()
    lookers = [
        threading.Thread(target=_stat_on, args=([node.path('d'), node.path('d/f')], until))
        for node in (two, three)
        for _ in range(2)
    ]
    handle = os.open(two.path('d/f'), os.O_RDONLY)
    # Nobody looks its name up on that node, so that its kernel keeps what it was told once.
    unnamed = os.open(three.path('g'), os.O_RDONLY)
    for looker in lookers:
        looker.start()
    try:
        for number in range(1, 60 * c.more):
            path = one.path('d/f')
            mode = 0o600 | number % 64
            os.fstat(unnamed)
            os.chmod(one.path('g'), mode)
            equal(os.fstat(unnamed).st_mode & 0o777, mode, 'mode of a file that is only open')
            os.chmod(path, mode)
            for node in (two, three):
                equal(os.stat(node.path('d/f')).st_mode & 0o777, mode, f'mode on {node.name}')
            equal(os.fstat(handle).st_mode & 0o777, mode, 'mode of the open file')
            put(path, b'x' * number)
            for node in (two, three):
                equal(os.stat(node.path('d/f')).st_size, number, f'size on {node.name}')
            equal(len(os.pread(handle, 1000, 0)), number, 'bytes of the open file')
            os.link(path, one.path(f'd/l{number}'))
            for node in (two, three):
                equal(os.stat(node.path('d/f')).st_nlink, number + 1, f'links on {node.name}')
            os.mkdir(one.path(f'd/s{number}'))
            for node in (two, three):
                equal(os.stat(node.path('d')).st_nlink, number + 2, f'folders on {node.name}')
    finally:
        until.set()
        for looker in lookers:
            looker.join()
        os.close(handle)
        os.close(unnamed)

"""rename(2) and renameat2(2): what moves, what is refused, and that nothing is ever lost."""
import os
import stat

from support import (
    RENAME_EXCHANGE,
    RENAME_NOREPLACE,
    RENAME_WHITEOUT,
    Stream,
    all_end_well,
    case,
    check,
    code,
    create,
    equal,
    fails,
    get,
    put,
    python,
    renameat2,
    sh_ok,
    supported,
)


def rename_over_a_nonempty_directory(v):
    """rename onto a directory with entries is ENOTEMPTY, into itself EINVAL, and nothing moves."""
    os.mkdir('a')
    os.mkdir('b')
    put('b/x')
    put('a/y')
    fails('ENOTEMPTY EEXIST', os.rename, 'a', 'b')
    fails('EINVAL', os.rename, 'a', 'a/sub')
    os.mkdir('a/s')
    fails('EINVAL', os.rename, 'a', 'a/s/t')
    fails('ENOTEMPTY EEXIST', os.rename, 'a/s', 'a')
    equal((sorted(os.listdir('a')), os.listdir('b')), (['s', 'y'], ['x']))
    os.unlink('b/x')
    os.rename('a', 'b')
    equal((sorted(os.listdir('b')), sorted(os.listdir('.'))), (['s', 'y'], ['b']))


def rename_kinds_must_match(v):
    """A file does not replace a directory (EISDIR) nor a directory a file (ENOTDIR)."""
    put('f')
    os.mkdir('d')
    fails('EISDIR', os.rename, 'f', 'd')
    fails('ENOTDIR', os.rename, 'd', 'f')
    fails('ENOENT', os.rename, 'missing', 'f')
    fails('ENOENT', os.rename, 'f', 'missing/f')
    fails('ENOTDIR', os.rename, 'f', 'f/x')
    fails('EINVAL EBUSY', os.rename, 'd', '.')
    equal(sorted(os.listdir('.')), ['d', 'f'])


def rename_between_links_of_one_file(v):
    """rename of a name onto another link of the same file does nothing and succeeds."""
    put('a', b'x')
    os.link('a', 'b')
    os.rename('a', 'b')
    equal((sorted(os.listdir('.')), os.stat('a').st_nlink), (['a', 'b'], 2))
    os.rename('a', 'a')
    equal(get('a'), b'x')


def rename_over_an_open_file(v):
    """The replaced file lives on for its open handles, without a name."""
    put('old', b'old')
    put('new', b'new')
    fd = os.open('old', os.O_RDWR)
    os.rename('new', 'old')
    equal((get('old'), os.pread(fd, 9, 0), os.fstat(fd).st_nlink), (b'new', b'old', 0))
    os.pwrite(fd, b'!', 3)
    equal(os.pread(fd, 9, 0), b'old!')
    equal(get('old'), b'new')
    equal(os.listdir('.'), ['old'])


def rename_keeps_an_open_file(v):
    """Writes through a handle opened before a rename go to the renamed file."""
    fd = create('a')
    os.write(fd, b'one')
    os.mkdir('d')
    os.rename('a', 'd/b')
    os.write(fd, b'two')
    equal(get('d/b'), b'onetwo')
    os.rename('d', 'e')
    os.write(fd, b'three')
    equal(get('e/b'), b'onetwothree')


def rename_then_new_directory_is_empty(v):
    """After `mv a b; mkdir a` the new directory has none of the old children."""
    os.mkdir('a')
    for n in 'xyz':
        put(f'a/{n}')
    os.listdir('a')
    os.rename('a', 'b')
    os.mkdir('a')
    equal((os.listdir('a'), sorted(os.listdir('b'))), ([], ['x', 'y', 'z']))
    fails('ENOENT', os.stat, 'a/x')
    v.cold()
    equal((os.listdir('a'), sorted(os.listdir('b'))), ([], ['x', 'y', 'z']))


def rename_moves_dotdot(v):
    """The parent of a moved directory is its new parent."""
    sh_ok('mkdir -p a/b c')
    os.rename('a/b', 'c/b')
    equal(os.stat('c/b/..').st_ino, os.stat('c').st_ino)
    os.chdir('c/b')
    equal(os.path.basename(os.getcwd()), 'b')
    equal(os.stat('..').st_ino, os.stat('../../c').st_ino)


def rename_moves_dotdot_in_listings(v):
    """The listing of a directory that was moved or exchanged, read before, names its new parent."""

    def parent(path):
        return {name: ino for name, ino, _ in Stream(path).rest()}[b'..']

    sh_ok('mkdir -p a/d b/e')
    for path in ('a/d', 'b/e', 'a/d', 'b/e'):
        equal(parent(path), os.stat(path + '/..').st_ino)
    os.rename('a/d', 'b/d')
    equal(parent('b/d'), os.stat('b').st_ino)
    os.rename('b/d', 'a/d')
    equal(parent('a/d'), os.stat('a').st_ino)
    if supported(renameat2, 'a/d', 'b/e', RENAME_EXCHANGE):
        equal(parent('a/d'), os.stat('a').st_ino)
        equal(parent('b/e'), os.stat('b').st_ino)


def rename_flags_are_obeyed(v):
    """NOREPLACE is EEXIST, EXCHANGE swaps (or EINVAL), unknown flags are EINVAL; nothing is ever
    lost."""
    put('a', b'A')
    put('b', b'B')
    check(code(renameat2, 'a', 'b', RENAME_NOREPLACE) in ('EEXIST', 'EINVAL'))
    equal((get('a'), get('b')), (b'A', b'B'))
    if code(renameat2, 'a', 'b', RENAME_EXCHANGE) == '':
        equal((get('a'), get('b')), (b'B', b'A'))
    else:
        equal((get('a'), get('b')), (b'A', b'B'))
    fails('EINVAL', renameat2, 'a', 'c', 0x80)
    fails('EINVAL', renameat2, 'a', 'b', RENAME_NOREPLACE | RENAME_EXCHANGE)
    fails('ENOENT EINVAL', renameat2, 'a', 'missing', RENAME_EXCHANGE)
    equal(sorted(os.listdir('.')), ['a', 'b'])


@case(mounted=True)
def rename_flags_are_supported(v):
    """NOREPLACE and EXCHANGE work, EXCHANGE also between a file and a directory; WHITEOUT is
    EINVAL."""
    put('a', b'A')
    sh_ok('mkdir -p p/d q; echo in > p/d/x')
    renameat2('a', 'c', RENAME_NOREPLACE)
    fails('EEXIST', renameat2, 'c', 'p', RENAME_NOREPLACE)
    renameat2('c', 'p/d', RENAME_EXCHANGE)
    equal((get('p/d'), get('c/x')), (b'A', b'in\n'))
    equal((os.stat('p').st_nlink, os.stat('.').st_nlink), (2, 5))
    fails('EINVAL', renameat2, 'p', 'p/d', RENAME_EXCHANGE)
    fails('EINVAL', renameat2, 'c', 'z', RENAME_WHITEOUT)
    v.cold()
    equal((get('p/d'), get('c/x')), (b'A', b'in\n'))


def rename_cycles_do_not_deadlock(v):
    """Processes that move directories in and out of each other all end, and no directory is
    lost."""
    for n in 'abcd':
        os.mkdir(n)
        put(f'{n}/id-{n}')
    script = (
        'import os,random,sys\nr=random.Random(int(sys.argv[1]))\n'
        'for i in range(400):\n'
        ' dirs=[d for d,_,_ in os.walk(".")][1:]\n'
        ' if len(dirs)<2: continue\n'
        ' x,y=r.sample(dirs,2)\n'
        ' try: os.rename(x, y+"/"+os.path.basename(x))\n except OSError: pass\n'
        ' try: os.rename(x, os.path.basename(x))\n except OSError: pass\n'
    )
    all_end_well([python(script, k) for k in range(4)], 50)
    found = sorted(f for _, _, files in os.walk('.') for f in files)
    equal(found, [f'id-{n}' for n in 'abcd'], 'files that are still reachable')

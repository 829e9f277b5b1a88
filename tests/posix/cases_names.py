"""Names: create, link, unlink, mkdir, symlink, mknod, and the bytes a name may hold."""
import fcntl
import os
import socket
import stat

from support import (
    all_end_well,
    case,
    check,
    code,
    create,
    equal,
    fails,
    get,
    mode_of,
    put,
    python,
    sh_ok,
)


def name_bytes_are_exact(v):
    """Names are bytes: no encoding, normalisation, case folding or trimming; each is its own
    file."""
    names = [
        b'caf\xc3\xa9',
        b'cafe\xcc\x81',
        b'caf\xe9',
        b'a\nb',
        b'-rf',
        b' lead',
        b'trail ',
        b'dot.',
        b'..x',
        b'...',
        b'%2F',
        b'back\\slash',
        b'q"\'*?',
        b'\x01\x7f',
        b'Foo',
        b'foo',
        b'FOO',
        b'\xff\xfe',
        b'\xc0\x80',
        b'tab\t',
    ]
    for i, name in enumerate(names):
        put(name, b'%d' % i)
    for _ in range(2):
        equal(sorted(os.listdir(b'.')), sorted(names))
        for i, name in enumerate(names):
            equal(get(name), b'%d' % i, repr(name))
        v.cold()
    for name in names:
        os.unlink(name)
    equal(os.listdir(b'.'), [])


def name_length_limits(v):
    """255 bytes are a name in every operation, 256 are ENAMETOOLONG in every operation."""
    good, bad = 'n' * 255, 'n' * 256
    put(good)
    os.rename(good, 'm' * 255)
    os.link('m' * 255, good)
    os.mkdir('d' * 255)
    os.symlink('x', 's' * 255)
    equal(sorted(os.listdir('.')), sorted([good, 'm' * 255, 'd' * 255, 's' * 255]))
    for call, args in (
        (os.open, (bad, os.O_CREAT)),
        (os.mkdir, (bad,)),
        (os.symlink, ('x', bad)),
        (os.link, (good, bad)),
        (os.rename, (good, bad)),
        (os.stat, (bad,)),
        (os.unlink, (bad,)),
        (os.rmdir, (bad,)),
        (os.mkfifo, (bad,)),
        (os.truncate, (bad, 0)),
        (os.rename, (bad, 'x')),
    ):
        fails('ENAMETOOLONG', call, *args)


def name_path_deeper_than_path_max(v):
    """A path of 200 folders of 60 bytes works step by step and can be removed."""
    top = os.open('.', os.O_RDONLY)
    for i in range(200):
        os.mkdir('%060d' % i)
        os.chdir('%060d' % i)
    put('leaf', b'deep')
    equal(get('leaf'), b'deep')
    os.fchdir(top)
    fails('ENAMETOOLONG', os.stat, '/'.join('%060d' % i for i in range(200)))
    sh_ok('rm -r 0*')
    equal(os.listdir('.'), [])


def open_create_errors(v):
    """open tells missing, existing, directory, loop and bad prefix apart."""
    put('f')
    os.mkdir('d')
    os.symlink('loop', 'loop')
    os.symlink('nowhere', 'dangling')
    fails('ENOENT', os.open, 'missing', os.O_RDONLY)
    fails('ENOENT', os.open, 'missing/f', os.O_CREAT)
    fails('ENOENT', os.open, '', os.O_RDONLY)
    fails('EEXIST', os.open, 'f', os.O_CREAT | os.O_EXCL)
    fails('EEXIST', os.open, 'dangling', os.O_CREAT | os.O_EXCL)
    fails('ENOTDIR', os.open, 'f/x', os.O_RDONLY)
    fails('ENOTDIR', os.open, 'f', os.O_RDONLY | os.O_DIRECTORY)
    fails('EISDIR', os.open, 'd', os.O_CREAT | os.O_WRONLY)
    fails('ELOOP', os.open, 'loop', os.O_RDONLY)
    fails('ELOOP', os.open, 'dangling', os.O_RDONLY | os.O_NOFOLLOW)
    os.close(os.open('dangling', os.O_CREAT | os.O_WRONLY))
    check(os.path.exists('nowhere'), 'create through a dangling link')


def open_create_with_closed_mode(v):
    """A file may be created with mode 0444 or 0000 and be written through the creating handle."""
    for mode in (0o444, 0):
        fd = create(f'f{mode}', os.O_EXCL, mode)
        os.write(fd, b'data')
        equal(os.pread(fd, 9, 0), b'data')
        equal(stat.S_IMODE(os.fstat(fd).st_mode), mode)


def open_exclusive_has_one_winner(v):
    """Of four processes that create one name exclusively exactly one succeeds, each time."""
    script = (
        'import os,sys\nwon=0\nfor i in range(300):\n try:'
        ' os.close(os.open("n%d"%i,os.O_CREAT|os.O_EXCL)); won+=1\n except FileExistsError: pass\n'
        ' try: os.mkdir("d%d"%i); won+=1\n except FileExistsError: pass\n'
        ' os.stat("d%d"%i)\nopen("won"+sys.argv[1],"w").write(str(won))\n'
    )
    all_end_well([python(script, k) for k in range(4)])
    equal(sum(int(get(f'won{k}')) for k in range(4)), 600, 'winners')


def open_creates_the_same_file_for_all(v):
    """Plain O_CREAT of one name by four processes never fails and gives one inode."""
    script = (
        'import os,sys\nfor i in range(200):\n'
        ' fd=os.open("n%d"%i,os.O_CREAT|os.O_WRONLY|os.O_APPEND,0o644)\n os.write(fd,b"x");'
        ' os.close(fd)\n'
    )
    all_end_well([python(script) for _ in range(4)])
    equal({os.stat(f'n{i}').st_size for i in range(200)}, {4}, 'bytes per file')


def link_counts_are_right_at_once(v):
    """The link count of the other names is right as soon as one name appears or goes."""
    put('a')
    os.link('a', 'b')
    os.link('b', 'c')
    equal({os.stat(n).st_nlink for n in 'abc'}, {3})
    os.unlink('a')
    equal([os.stat(n).st_nlink for n in 'bc'], [2, 2])
    os.rename('b', 'a')
    equal([os.stat(n).st_nlink for n in 'ac'], [2, 2])
    put('x')
    os.rename('x', 'c')
    equal(os.stat('a').st_nlink, 1)
    fd = os.open('a', os.O_RDONLY)
    os.unlink('a')
    equal(os.fstat(fd).st_nlink, 0)


def link_shares_one_inode(v):
    """Hard links have one inode number, one size and one content, also after a remount."""
    put('a', b'keep')
    os.mkdir('d')
    os.link('a', 'd/b')
    for _ in range(2):
        equal(os.stat('a').st_ino, os.stat('d/b').st_ino)
        put('d/b', b'+', 'ab')
        equal(get('a'), get('d/b'))
        v.cold()
    fails('EPERM', os.link, 'd', 'e')
    fails('EEXIST', os.link, 'a', 'd/b')
    fails('ENOENT', os.link, 'missing', 'x')
    os.symlink('a', 's')
    os.link('s', 't', follow_symlinks=False)
    equal(os.readlink('t'), 'a')


def link_survives_reuse_of_the_other_name(v):
    """After one link is removed and its name reused, the other link is still the old file."""
    put('a', b'keep')
    os.link('a', 'b')
    fd = os.open('b', os.O_RDWR)
    os.unlink('a')
    put('a', b'new')
    os.chmod('a', 0o644)
    os.pwrite(fd, b'K', 0)
    os.fchmod(fd, 0o600)
    put('b', b'+', 'ab')
    equal((get('b'), get('a')), (b'Keep+', b'new'))
    equal(mode_of('a'), 0o644)
    os.close(fd)
    v.cold()
    equal((get('b'), get('a'), mode_of('b')), (b'Keep+', b'new', 0o600))


def link_many_names(v):
    """A file has 2000 names; each removal is counted."""
    put('f', b'z')
    for i in range(2000):
        os.link('f', f'l{i}')
    equal(os.stat('f').st_nlink, 2001)
    for i in range(0, 2000, 2):
        os.unlink(f'l{i}')
    v.cold()
    equal(os.stat('l1').st_nlink, 1001)


def unlink_errors(v):
    """unlink and rmdir refuse the wrong kind and missing names."""
    os.mkdir('d')
    put('d/f')
    fails('EISDIR EPERM', os.unlink, 'd')
    fails('ENOTDIR', os.rmdir, 'd/f')
    fails('ENOTEMPTY EEXIST', os.rmdir, 'd')
    fails('ENOENT', os.unlink, 'missing')
    fails('ENOENT', os.rmdir, 'missing')
    fails('EINVAL', os.rmdir, 'd/.')
    fails('ENOTEMPTY EEXIST EINVAL', os.rmdir, 'd/..')
    fails('ENOTDIR', os.unlink, 'd/f/x')
    if os.path.ismount(v.mnt):
        fails('EBUSY', os.rmdir, v.mnt)


def mkdir_counts_links(v):
    """A directory has 2 links and one more for each subdirectory."""
    os.mkdir('d')
    equal(os.stat('d').st_nlink, 2)
    for i in range(3):
        os.mkdir(f'd/{i}')
    put('d/f')
    equal(os.stat('d').st_nlink, 5)
    os.mkdir('e')
    os.rename('d/0', 'e/0')
    equal((os.stat('d').st_nlink, os.stat('e').st_nlink), (4, 3))
    os.rmdir('d/1')
    equal(os.stat('d').st_nlink, 3)
    fails('EEXIST', os.mkdir, 'd')
    fails('EEXIST', os.mkdir, 'd/f')
    fails('ENOENT', os.mkdir, 'x/y')


def mkdir_after_exists_is_there(v):
    """After mkdir said EEXIST a stat of that name succeeds; negative answers are not remembered."""
    for i in range(50):
        check(not os.path.exists(f'n{i}'))
        all_end_well([python(f'import os; os.mkdir("n{i}")')] if i % 10 == 0 else [])
        if i % 10:
            os.mkdir(f'n{i}')
        equal(code(os.mkdir, f'n{i}'), 'EEXIST')
        os.stat(f'n{i}')


def symlink_of_any_target(v):
    """A symbolic link holds any target up to 4095 bytes; its size is the target's length."""
    for i, target in enumerate([b'x', b'/abs/../olute', b'\xff\xfe', b'no\nwhere', b't' * 4095]):
        os.symlink(target, f's{i}')
    fails('ENAMETOOLONG', os.symlink, 't' * 4096, 'long')
    fails('ENOENT', os.symlink, '', 'empty')
    for _ in range(2):
        for i, target in enumerate(
            [b'x', b'/abs/../olute', b'\xff\xfe', b'no\nwhere', b't' * 4095]
        ):
            equal(os.readlink(f's{i}'.encode()), target)
            equal(os.lstat(f's{i}').st_size, len(target))
            equal(stat.S_IMODE(os.lstat(f's{i}').st_mode), 0o777)
        v.cold()
    put('f')
    fails('EINVAL', os.readlink, 'f')
    fails('EEXIST', os.symlink, 'x', 's0')
    os.chown('s0', 5, 6, follow_symlinks=False)
    equal((os.lstat('s0').st_uid, os.lstat('s0').st_gid), (5, 6))


def mknod_of_every_kind(v):
    """FIFO, socket, character and block device keep kind, numbers and mode, and work."""
    os.mkfifo('p', 0o640)
    os.mknod('c', stat.S_IFCHR | 0o600, os.makedev(1, 3))
    os.mknod('b', stat.S_IFBLK | 0o600, os.makedev(250, 300))
    os.mknod('r', stat.S_IFREG | 0o604)
    server = socket.socket(socket.AF_UNIX)
    server.bind('s')
    server.listen()
    v_kinds = {
        'p': stat.S_IFIFO,
        'c': stat.S_IFCHR,
        'b': stat.S_IFBLK,
        'r': stat.S_IFREG,
        's': stat.S_IFSOCK,
    }
    for name, kind in v_kinds.items():
        equal(stat.S_IFMT(os.lstat(name).st_mode), kind, name)
    equal(mode_of('p'), 0o640)
    equal(mode_of('r'), 0o604)
    for name, numbers in (('c', (1, 3)), ('b', (250, 300))):
        device = os.lstat(name).st_rdev
        equal((os.major(device), os.minor(device)), numbers, name)
    client = socket.socket(socket.AF_UNIX)
    client.connect('s')
    writer = os.open('p', os.O_RDWR)
    os.write(writer, b'through')
    equal(os.read(writer, 9), b'through')
    for handle in (client, server):
        handle.close()
    v.cold()
    equal(os.major(os.lstat('b').st_rdev), 250)


@case(mounted=True)
def mount_flags_nodev_nosuid_noexec(v):
    """nodev, nosuid and noexec are the kernel's word: no device opens, no program runs."""
    os.mknod('c', stat.S_IFCHR | 0o666, os.makedev(1, 3))
    sh_ok('cp /bin/true prog')
    v.cold(v.options + ',nodev,nosuid,noexec')
    fails('EACCES', os.open, 'c', os.O_RDWR)
    equal(sh_ok('./prog 2>/dev/null; echo $?').strip(), '126')


def inode_numbers_are_stable(v):
    """st_ino is the directory's d_ino, does not change by a remount, and is not given out again."""
    for i in range(50):
        put(f'f{i}')
    os.mkdir('d')
    before = {entry.name: entry.inode() for entry in os.scandir('.')}
    for name, number in before.items():
        equal(os.stat(name).st_ino, number, name)
    if not v.plain:
        os.unlink('f0')
        put('new')
        check(os.stat('new').st_ino not in before.values(), 'an inode number was used again')
        v.cold()
        equal(
            {e.name: e.inode() for e in os.scandir('.') if e.name != 'new'},
            {n: i for n, i in before.items() if n != 'f0'},
        )
        put('after')
        check(
            os.stat('after').st_ino not in before.values(),
            'an inode number was used again after a remount',
        )


def ioctl_unknown_is_refused(v):
    """Operations that no file system of this kind has are refused as unsupported, not as broken."""
    fd = create('f')
    check(code(fcntl.ioctl, fd, 0xDEAD, b'\0' * 8) in ('ENOTTY', 'EOPNOTSUPP', 'EINVAL'))
    fails(
        'EOPNOTSUPP ENOTTY EINVAL EXDEV',
        fcntl.ioctl,
        fd,
        0x40049409,
        os.open('/etc/passwd', os.O_RDONLY),
    )

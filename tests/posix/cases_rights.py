"""Permissions, ownership, ACLs and extended attributes."""
import ctypes
import errno
import os
import stat
import struct
import subprocess

from support import (
    AT_FDCWD,
    LIBC,
    NOBODY,
    Skip,
    as_user,
    case,
    check,
    code,
    create,
    equal,
    fails,
    get,
    mode_of,
    needs,
    put,
    sh,
    sh_ok,
)
from volume import wait_until

SYS_OPEN_TREE, SYS_MOUNT_SETATTR = 428, 442
OPEN_TREE_CLONE, AT_EMPTY_PATH, MOUNT_ATTR_IDMAP = 1, 0x1000, 0x100000


def other_user_is_denied(v):
    """The kernel's permission checks hold for every user: 0600, 0700 and group before other."""
    os.chmod('.', 0o755)
    put('f', b'secret')
    os.chmod('f', 0o600)
    os.mkdir('d')
    put('d/g')
    os.chmod('d/g', 0o644)
    os.chmod('d', 0o700)
    put('h')
    os.chown('h', 0, 27)
    os.chmod('h', 0o004)
    os.mkdir('x', 0o711)

    def child():
        fails('EACCES', os.open, 'f', os.O_RDONLY)
        fails('EACCES', os.stat, 'd/g')
        fails('EACCES', os.open, 'h', os.O_RDONLY)
        fails('EACCES', os.unlink, 'f')
        fails('EACCES', os.open, 'new', os.O_CREAT)
        fails('EACCES', os.truncate, 'f', 0)
        fails('EPERM', os.chmod, 'f', 0o777)
        fails('EPERM', os.chown, 'f', NOBODY, NOBODY)
        fails('EACCES', os.listdir, 'x')
        fails('EACCES', os.rename, 'f', 'g')
        check(not os.access('f', os.R_OK) and os.access('f', os.F_OK), 'access')

    as_user(child, groups=[27])
    equal(get('f'), b'secret')


def other_user_with_supplementary_group(v):
    """A supplementary group opens what the group bits allow."""
    os.chmod('.', 0o755)
    put('g', b'group')
    os.chown('g', 0, 4321)
    os.chmod('g', 0o060)
    as_user(lambda: (get('g'), put('g', b'+', 'ab')), groups=[1, 2, 4321])
    as_user(lambda: fails('EACCES', os.open, 'g', os.O_RDONLY), groups=[1, 2])


def new_files_belong_to_the_caller(v):
    """Files, directories, links and devices get uid and gid of the caller, or the group of a sgid
    folder."""
    os.chmod('.', 0o777)
    os.mkdir('s')
    os.chown('s', 0, 777)
    os.chmod('s', 0o2777)

    def child():
        put('f')
        os.mkdir('d')
        os.symlink('x', 'l')
        os.mkfifo('p')
        put('s/f')
        os.mkdir('s/d')
        fails('EPERM', os.chown, 'f', 0, -1)
        fails('EPERM', os.chown, 'f', -1, 0)
        os.chown('f', -1, 1002)

    as_user(child, uid=1001, gid=1001, groups=[1002])
    v.cold()
    for name, gid in (
        ('f', 1002),
        ('d', 1001),
        ('l', 1001),
        ('p', 1001),
        ('s/f', 777),
        ('s/d', 777),
    ):
        equal((os.lstat(name).st_uid, os.lstat(name).st_gid), (1001, gid), name)
    equal(
        (mode_of('s/d') & 0o2000, mode_of('s/f') & 0o2000),
        (0o2000, 0),
        'set-group-ID is inherited by folders only',
    )


def sticky_directory_protects_names(v):
    """In a sticky directory only owners remove and rename."""
    os.mkdir('t')
    os.chmod('t', 0o1777)
    os.chmod('.', 0o755)
    put('t/roots')
    as_user(lambda: put('t/own'))

    def child():
        fails('EPERM EACCES', os.unlink, 't/roots')
        fails('EPERM EACCES', os.rename, 't/roots', 't/x')
        fails('EPERM EACCES', os.rename, 't/own', 't/roots')
        os.rename('t/own', 't/own2')
        os.unlink('t/own2')

    as_user(child)


def umask_is_applied_once(v):
    """open, mkdir, mkfifo and mknod apply the umask exactly once; chmod not at all."""
    os.umask(0o027)
    os.close(create('f', 0, 0o666))
    os.mkdir('d', 0o777)
    os.mkfifo('p', 0o666)
    os.mknod('n', stat.S_IFREG | 0o777)
    equal([oct(mode_of(n)) for n in 'fdpn'], ['0o640', '0o750', '0o640', '0o750'])
    os.chmod('f', 0o777)
    equal(mode_of('f'), 0o777)


def chmod_keeps_every_bit(v):
    """All twelve mode bits hold, on files and directories, through a remount."""
    put('f')
    os.mkdir('d')
    for mode in (0, 0o7777, 0o4755, 0o2711, 0o1000, 0o644):
        os.chmod('f', mode)
        os.chmod('d', mode)
        equal((mode_of('f'), mode_of('d')), (mode, mode))
    os.chmod('f', 0o4751)
    v.cold()
    equal(mode_of('f'), 0o4751)
    fd = os.open('f', os.O_RDONLY)
    os.fchmod(fd, 0o600)
    equal(mode_of('f'), 0o600)


def chmod_by_a_stranger_to_the_group_clears_setgid(v):
    """An owner outside the file's group cannot set S_ISGID."""
    os.chmod('.', 0o755)
    put('f')
    os.chown('f', NOBODY, 4242)
    as_user(lambda: os.chmod('f', 0o2755))
    equal(mode_of('f'), 0o755)


def acl_default_overrides_umask(v):
    """With a default ACL the umask is not applied, or ACLs are refused with EOPNOTSUPP."""
    needs('setfacl')
    os.mkdir('d')
    done = sh('setfacl -d -m u::rwx,g::rwx,o::r-x,g:65534:rwx d')
    if done.returncode:
        check('not supported' in done.stderr, done.stderr)
        raise Skip('ACLs are refused')
    sh_ok('umask 077; touch d/f; mkdir d/s')
    equal(oct(mode_of('d/f')), oct(0o664))
    check(
        'default:group:nobody' in sh_ok('getfacl -c d/s')
        or 'default:group:65534' in sh_ok('getfacl -nc d/s')
    )


def acl_is_enforced_or_refused(v):
    """An ACL that was accepted is obeyed: for a named user, under the mask, after chmod and a
    remount."""
    needs('setfacl')
    os.chmod('.', 0o755)
    put('f', b'data')
    os.chmod('f', 0o600)
    done = sh(f'setfacl -m u:{NOBODY}:rw f')
    if done.returncode:
        check('not supported' in done.stderr, done.stderr)
        raise Skip('ACLs are refused')
    as_user(lambda: (get('f'), put('f', b'+', 'ab')))
    v.cold()
    as_user(lambda: get('f'))
    os.chmod('f', 0o600)
    as_user(lambda: fails('EACCES', os.open, 'f', os.O_RDONLY))
    sh_ok(f'setfacl -x u:{NOBODY} f; setfacl -b f')
    equal(mode_of('f') & 0o707, 0o600)


def xattr_contract(v):
    """set, get, list and remove keep values and answer with the errno that attr(5) names."""
    put('f')
    got = code(os.setxattr, 'f', 'user.k', b'v' * 20)
    if got == 'EOPNOTSUPP':
        raise Skip('no user attributes')
    equal(os.getxattr('f', 'user.k'), b'v' * 20)
    fails('ENODATA', os.removexattr, 'f', 'user.none')
    fails('ENODATA', os.getxattr, 'f', 'user.none')
    fails('EEXIST', os.setxattr, 'f', 'user.k', b'1', os.XATTR_CREATE)
    fails('ENODATA', os.setxattr, 'f', 'user.q', b'1', os.XATTR_REPLACE)
    both = os.XATTR_CREATE | os.XATTR_REPLACE
    fails('EEXIST', os.setxattr, 'f', 'user.k', b'1', both)
    fails('ENODATA', os.setxattr, 'f', 'user.q', b'1', both)
    buffer = ctypes.create_string_buffer(5)
    equal((LIBC.getxattr(b'f', b'user.k', buffer, 5), ctypes.get_errno()), (-1, 34), 'ERANGE')
    for i in range(30):
        os.setxattr('f', f'user.n{i}', b'')
    size = LIBC.listxattr(b'f', None, 0)
    buffer = ctypes.create_string_buffer(size)
    equal(LIBC.listxattr(b'f', buffer, size), size)
    equal(LIBC.listxattr(b'f', buffer, 3), -1)
    equal(sorted(os.listxattr('f')), sorted(['user.k'] + [f'user.n{i}' for i in range(30)]))
    equal(os.getxattr('f', 'user.n3'), b'', 'empty value')
    os.rename('f', 'g')
    v.cold()
    equal(os.getxattr('g', 'user.k'), b'v' * 20, 'after rename and remount')
    equal(len(os.listxattr('g')), 31)
    os.setxattr('g', 'user.k', b'new', os.XATTR_REPLACE)
    os.removexattr('g', 'user.n0')
    equal((os.getxattr('g', 'user.k'), len(os.listxattr('g'))), (b'new', 30))


@case(mounted=True)
def xattr_limits(v):
    """Names of 255 bytes and values of 64 KiB fit; longer ones are ERANGE, E2BIG or ENOSPC."""
    put('f')
    name, value = 'user.' + 'n' * 250, os.urandom(65536)
    os.setxattr('f', name, value)
    v.cold()
    equal(os.getxattr('f', name), value)
    fails('ERANGE ENAMETOOLONG', os.setxattr, 'f', name + 'x', b'')
    fails('E2BIG ENOSPC', os.setxattr, 'f', 'user.big', bytes(65537))
    equal(os.listxattr('f'), [name])
    os.setxattr('f', name, b'short')
    equal(os.getxattr('f', name), b'short')


def xattr_namespaces(v):
    """user. is for files and folders only, trusted. for root only, unknown name spaces are
    EOPNOTSUPP, and a name space without a name is EINVAL."""
    os.chmod('.', 0o755)
    put('f')
    if code(os.setxattr, 'f', 'user.k', b'') == 'EOPNOTSUPP':
        raise Skip('no user attributes')
    os.mkdir('d')
    os.symlink('f', 's')
    os.setxattr('d', 'user.k', b'1')
    fails('EPERM', os.setxattr, 's', 'user.k', b'1', 0, follow_symlinks=False)
    os.setxattr('f', 'trusted.k', b'root')
    os.chmod('f', 0o666)

    def child():
        fails('EPERM', os.setxattr, 'f', 'trusted.q', b'1')
        fails('ENODATA EPERM', os.getxattr, 'f', 'trusted.k')
        check('trusted.k' not in os.listxattr('f'), 'the name of what only root may read')
        os.setxattr('f', 'user.theirs', b'1')

    as_user(child)
    equal(sorted(os.listxattr('f')), ['trusted.k', 'user.k', 'user.theirs'], 'names for root')
    for name, want in (
        ('nonsense.k', 'EOPNOTSUPP'),
        ('plain', 'EOPNOTSUPP'),
        ('system.k', 'EOPNOTSUPP'),
        ('user.', 'EINVAL'),
        ('trusted.', 'EINVAL'),
    ):
        fails(want, os.setxattr, 'f', name, b'1')
        fails(want, os.getxattr, 'f', name)
        fails(want, os.removexattr, 'f', name)
    os.chmod('f', 0o644)
    as_user(lambda: fails('EACCES', os.setxattr, 'f', 'user.k2', b'1'))


def xattr_goes_with_the_file(v):
    """A new file under an old name has none of the old attributes; hard links share them."""
    put('f')
    if code(os.setxattr, 'f', 'user.k', b'old') == 'EOPNOTSUPP':
        raise Skip('no user attributes')
    os.link('f', 'g')
    os.unlink('f')
    put('f')
    equal((os.listxattr('f'), os.listxattr('g')), ([], ['user.k']))
    fd = os.open('g', os.O_RDONLY)
    os.unlink('g')
    equal(os.getxattr(fd, 'user.k'), b'old')
    os.setxattr(fd, 'user.k', b'orphan')
    equal(os.getxattr(fd, 'user.k'), b'orphan')


@case(mounted=True)
def idmapped_mount_maps_or_is_refused(v):
    """A mount with its own table of users is refused with EINVAL and leaves nothing (or, where it
    is given, shows the mapped users)."""
    put('f', b'data')
    with subprocess.Popen(['unshare', '-U', 'cat'], stdin=subprocess.PIPE) as holder:
        own = os.readlink('/proc/self/ns/user')
        wait_until(
            lambda: os.readlink(f'/proc/{holder.pid}/ns/user') != own, 10, 'a namespace of users'
        )
        for name in ('uid_map', 'gid_map'):
            with open(f'/proc/{holder.pid}/{name}', 'w', encoding='ascii') as table:
                table.write('0 100000 65536')
        users = os.open(f'/proc/{holder.pid}/ns/user', os.O_RDONLY)
        tree = LIBC.syscall(SYS_OPEN_TREE, AT_FDCWD, os.fsencode(v.mnt), OPEN_TREE_CLONE)
        check(tree >= 0, f'open_tree: errno {ctypes.get_errno()}')
        attributes = struct.pack('=QQQQ', MOUNT_ATTR_IDMAP, 0, 0, users)
        refused = LIBC.syscall(
            SYS_MOUNT_SETATTR, tree, b'', AT_EMPTY_PATH, attributes, len(attributes)
        )
        if refused:
            equal(errno.errorcode[ctypes.get_errno()], 'EINVAL')
        else:
            equal(os.stat('f', dir_fd=tree).st_uid, os.stat('f').st_uid + 100_000)
        os.close(tree)
        os.close(users)
        holder.stdin.close()
    equal(get('f'), b'data')

"""The bits and capabilities that a change of a file must clear, and those it must keep."""
import os
import shutil
import socket
import stat

from support import (
    FALLOC_KEEP_SIZE,
    FALLOC_PUNCH_HOLE,
    NOBODY,
    Skip,
    as_user,
    check,
    create,
    equal,
    fallocate,
    mode_of,
    needs,
    put,
    sh,
    sh_ok,
    sync_folder,
)


def _set_id_file(name='s', mode=0o6777):
    shutil.copy('/bin/true', name)
    os.chmod(name, mode)


def write_clears_set_id_bits(v):
    """A write by a user without privilege clears set-user-ID and set-group-ID, at once and for
    good."""
    os.chmod('.', 0o777)
    _set_id_file()
    as_user(lambda: put('s', b'z', 'ab'))
    equal(oct(mode_of('s')), oct(0o777))
    v.cold()
    equal(oct(mode_of('s')), oct(0o777), 'after a remount')
    _set_id_file('m', 0o6777)

    def overwrite():
        fd = os.open('m', os.O_RDWR)
        os.pwrite(fd, b'\0', 0)

    as_user(overwrite)
    equal(mode_of('m'), 0o777, 'overwrite')


def set_id_bits_go_with_fallocate_and_copies(v):
    """fallocate and copy_file_range by a user take the set-ID bits away, by root they stay."""
    put('source', b'bytes')

    def change(name):
        fd = os.open(name, os.O_RDWR)
        os.posix_fallocate(fd, 0, 4096)
        os.close(fd)

    def copy(name):
        source, target = os.open('source', os.O_RDONLY), os.open(name, os.O_RDWR)
        os.copy_file_range(source, target, 5)
        os.close(source)
        os.close(target)

    for act in (change, copy):
        for user in (True, False):
            put('f', b'old')
            os.chmod('f', 0o6777)
            if user:
                as_user(lambda: act('f'))  # pylint: disable=cell-var-from-loop
            else:
                act('f')
            equal(oct(mode_of('f')), oct(0o777 if user else 0o6777), f'{act.__name__}, {user}')
            os.unlink('f')


def _write(name):
    fd = os.open(name, os.O_WRONLY)
    os.write(fd, b'x')
    os.close(fd)


def _reserve(name):
    fd = os.open(name, os.O_RDWR)
    fallocate(fd, 0, 0, 4096)
    os.close(fd)


def _punch(name):
    fd = os.open(name, os.O_RDWR)
    fallocate(fd, FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE, 0, 4096)
    os.close(fd)


def _copy_into(name):
    source, target = os.open('source', os.O_RDONLY), os.open(name, os.O_RDWR)
    os.copy_file_range(source, target, 5)
    os.close(source)
    os.close(target)


def _cut(name):
    os.truncate(name, 3)


_CHANGES = (_write, _reserve, _punch, _copy_into, _cut)


def set_group_id_is_for_members_of_the_group(v):
    """A change of the bytes by who is not in the file's group takes set-group-ID away also where
    the group may not execute; a member and root leave it."""
    put('source', b'bytes')
    group = 1000
    for change in _CHANGES:
        for who, want in (('stranger', 0o666), ('member', 0o2666), ('root', 0o2666)):
            put('f', b'x' * 5000)
            os.chown('f', 0, group)
            os.chmod('f', 0o2666)
            if who == 'root':
                change('f')
            else:
                groups = (group,) if who == 'member' else ()
                # pylint: disable-next=cell-var-from-loop
                as_user(lambda: change('f'), groups=groups)
            equal(oct(mode_of('f')), oct(want), f'{change.__name__} by a {who}')
            os.unlink('f')


def chown_by_the_owner_minds_the_old_group(v):
    """An owner who changes the group of a file keeps set-group-ID without group execution only as
    a member of the group that it had."""
    for groups, want in (((1000,), 0o2644), ((), 0o644)):
        put('f')
        os.chown('f', NOBODY, 1000)
        os.chmod('f', 0o2644)
        as_user(lambda: os.chown('f', -1, NOBODY), groups=groups)
        equal(oct(mode_of('f')), oct(want), f'groups {groups}')


def cleared_bits_are_seen_by_who_asks_for_the_mode_alone(v):
    """After a change by a user the mode that the kernel has in its cache is the new one, also for
    a program that asks for nothing else, as stat(1) -c %a does."""
    put('source', b'bytes')
    for change in _CHANGES:
        put('f', b'x' * 5000)
        os.chmod('f', 0o6777)
        equal(sh_ok('stat -c %a f').strip(), '6777')
        as_user(lambda: change('f'))  # pylint: disable=cell-var-from-loop
        equal(sh_ok('stat -c %a f').strip(), '777', change.__name__)
        os.unlink('f')


def set_id_bits_set_after_a_write_stay(v):
    """What a user writes first and makes set-user-ID then stays so, also when the bytes move to the
    disk; and so does a capability that root gives."""
    os.chmod('.', 0o777)
    capability = bytes.fromhex('0100000202000000000000000000000000000000')

    def install():
        for name in ('s', 'c'):
            fd = create(name, mode=0o755)
            os.write(fd, b'x' * 100)
            if name == 's':
                os.fchmod(fd, 0o6755)
            os.close(fd)

    as_user(install)
    os.setxattr('c', 'security.capability', capability)
    for moment in ('at once', 'synced', 'after a remount'):
        if moment == 'synced':
            for name in ('s', 'c'):
                sync_folder(name)
        elif moment == 'after a remount':
            v.cold()
        equal(oct(mode_of('s')), oct(0o6755), moment)
        equal(os.getxattr('c', 'security.capability'), capability, moment)


def truncate_clears_set_id_bits(v):
    """So does a truncate, by name and by O_TRUNC."""
    os.chmod('.', 0o777)
    _set_id_file('a')
    as_user(lambda: os.truncate('a', 10))
    equal(oct(mode_of('a')), oct(0o777))
    _set_id_file('b')
    as_user(lambda: os.close(os.open('b', os.O_WRONLY | os.O_TRUNC)))
    equal(oct(mode_of('b')), oct(0o777))


def chown_clears_set_id_bits(v):
    """chown of an executable clears set-user-ID and set-group-ID, and so it does of a FIFO, a
    device and a socket; of a directory neither."""
    _set_id_file()
    os.chown('s', 5, 5)
    equal(oct(mode_of('s')), oct(0o777))
    os.mkdir('d')
    os.chmod('d', 0o2755)
    os.chown('d', 5, 5)
    equal(mode_of('d'), 0o2755)
    os.mkfifo('fifo')
    os.mknod('device', 0o644 | stat.S_IFCHR, os.makedev(1, 3))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind('socket')
    for name in ('fifo', 'device', 'socket'):
        os.chown(name, NOBODY, 1000)
        os.chmod(name, 0o6555)
        # pylint: disable-next=cell-var-from-loop
        as_user(lambda: os.chown(name, -1, NOBODY), groups=(1000,))
        equal(oct(mode_of(name)), oct(0o555), name)


def write_by_root_keeps_mode(v):
    """A privileged writer and an ordinary mode lose nothing."""
    put('f')
    os.chmod('f', 0o755)
    put('f', b'+', 'ab')
    equal(mode_of('f'), 0o755)


def write_removes_file_capabilities(v):
    """security.capability goes away with a write."""
    needs('setcap', 'getcap')
    shutil.copy('/bin/true', 's')
    if sh('setcap cap_net_raw+ep s').returncode:
        raise Skip('capabilities are refused')
    check('cap_net_raw' in sh_ok('getcap s'))
    v.cold()
    check('cap_net_raw' in sh_ok('getcap s'), 'not kept by a remount')
    put('s', b'z', 'ab')
    equal(sh_ok('getcap s'), '')

"""The bits and capabilities that a change of a file must clear, and those it must keep."""
import os
import shutil

from support import (
    Skip,
    as_user,
    check,
    create,
    equal,
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
    """chown of an executable clears set-user-ID and set-group-ID; of a directory neither."""
    _set_id_file()
    os.chown('s', 5, 5)
    equal(oct(mode_of('s')), oct(0o777))
    os.mkdir('d')
    os.chmod('d', 0o2755)
    os.chown('d', 5, 5)
    equal(mode_of('d'), 0o2755)


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

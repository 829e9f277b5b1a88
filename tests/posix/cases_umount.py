"""umount.fuse.kvsyncfs: what it waits for, what it refuses, what it says."""
import contextlib
import os
import signal
import subprocess
import time

from support import (
    Skip,
    case,
    check,
    create,
    equal,
    get,
    own_mounts,
    put,
    sh_ok,
)
from volume import process_alive, wait_until


@contextlib.contextmanager
def namespace_with(volume):
    """A process in a mount namespace of its own that has the mount as well; given is a call that
    ends both."""
    ready, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            own_mounts(volume.mnt)
            os.write(told, b'!')
            signal.pause()
        finally:
            os._exit(1)
    os.close(told)
    equal(os.read(ready, 1), b'!', 'the namespace is made')
    os.close(ready)
    left = [pid]

    def end():
        while left:
            os.kill(left[0], signal.SIGKILL)
            os.waitpid(left.pop(), 0)

    try:
        yield end
    finally:
        end()


@case(mounted=True)
def umount_waits_for_the_data(v):
    """When the umount helper returns the daemon is gone and the store may be mounted elsewhere at
    once."""
    data = os.urandom(40 << 20)
    put('f', data)
    v.leave()
    v.unmount()
    v.mnt = v.root + '/elsewhere'
    os.mkdir(v.mnt)
    v.mount()
    equal(get(v.mnt + '/t/f'), data)
    v.unmount()


@case(mounted=True)
def umount_of_a_mount_in_another_namespace_tells(v):
    """Where another mount namespace keeps the mount, umount says so and returns 0: the data are on
    disk, and the daemon goes on until the namespace has gone."""
    data = os.urandom(20 << 20)
    put('f', data)
    v.leave()
    daemon = v.pid()
    with namespace_with(v) as end:
        done = v.unmount(check=False)
        equal(done.returncode, 0, done.stderr)
        check('still mounted elsewhere' in done.stderr and str(daemon) in done.stderr, done.stderr)
        check(not v.mounted() and process_alive(daemon))
        os.kill(daemon, signal.SIGKILL)  # what umount promised needs no daemon any more
        wait_until(lambda: not process_alive(daemon), 20, 'end of the killed daemon')
        end()
    v.mount()
    equal(get(v.mnt + '/t/f'), data)


@case(mounted=True)
def umount_waits_for_a_copy_that_goes(v):
    """A copy of the mount in a namespace that drops it at once does not outlive umount, and neither
    does the daemon."""
    daemon = v.pid()
    v.leave()
    with namespace_with(v) as end:
        words = [v.tools['umount.fuse.kvsyncfs'], v.mnt]
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as helper:
            wait_until(lambda: not v.mounted(), 60, 'unmounting')
            began = time.monotonic()
            end()
            took = time.monotonic() - began
            complaint = helper.communicate()[1]
    equal(helper.returncode, 0, complaint)
    if complaint and took > 2:
        raise Skip(f'the namespace took {took:.1f} s to end')
    equal(complaint, '')
    check(not process_alive(daemon), 'the daemon still runs')


@case(mounted=True, mount=False)
def umount_command_runs_the_helper(v):
    """umount(8) by an absolute path runs umount.fuse.kvsyncfs; libmount's table keeps no line."""
    v.format()
    # As if installed, for this case alone: umount(8) looks only where programs are installed.
    own_mounts()
    sh_ok(f'mkdir {v.root}/sbin && mount --bind {v.root}/sbin /sbin')
    helper, mark = v.root + '/sbin/umount.fuse.kvsyncfs', v.root + '/ran'
    script = f'#!/bin/sh\ntouch {mark}\nexec {v.tools["umount.fuse.kvsyncfs"]} "$@"\n'
    put(helper, script.encode())
    os.chmod(helper, 0o755)
    v.mount()
    sh_ok(f'umount {v.mnt}')
    check(os.path.exists(mark), 'umount(8) has not run the helper')
    check(v.pid() is None, 'the daemon still runs after umount(8)')
    check(f'TARGET={v.mnt} ' not in get('/run/mount/utab').decode(), 'a line is left in utab')


@case(mounted=True)
def umount_of_a_busy_mount_tells(v):
    """A busy mount is refused with a message and stays whole; a lazy one ends after its last
    user."""
    fd = create('f')
    os.write(fd, b'one')
    done = v.unmount(check=False)
    check(
        done.returncode != 0 and 'busy' in done.stderr.lower(),
        f'exit {done.returncode}: {done.stderr!r}',
    )
    check(v.mounted())
    os.write(fd, b'two')
    v.leave()
    sh_ok(f'umount -i -l {v.mnt}')
    os.close(fd)
    wait_until(lambda: not v.pids(), 10, 'end of the daemon')
    v.mount()
    equal(get(v.mnt + '/t/f'), b'onetwo')


@case(mounted=True, mount=False)
def umount_of_nothing_is_loud(v):
    """Unmounting what is not mounted fails and names it."""
    v.format()
    done = v.unmount(check=False)
    check(
        0 < done.returncode < 128 and v.mnt in done.stderr,
        f'exit {done.returncode}: {done.stderr!r}',
    )

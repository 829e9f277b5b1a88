"""The watchdog: a daemon that stopped answering is cut off."""
import os
import signal
import time

from support import case, check, create, equal, fails, get, in_child
from volume import freeze, process_alive, wait_until


def _watchdogs(v):
    """Watchdogs of this mount point."""
    found = []
    for entry in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{entry}/cmdline', 'rb') as words:
                argv = words.read().rstrip(b'\0').split(b'\0')
        except OSError:
            continue
        # The words are cut to the room that the daemon's own had.
        if argv[0] == b'kvsyncfs-watchdog' and v.mnt.encode().startswith(argv[-1]):
            found.append(int(entry))
    return found


@case(mounted=True, options='timeout=1', check=False)
def watchdog_ends_the_calls_of_a_stopped_daemon(v):
    """A daemon stopped for good: waiting and new calls fail, umount works, the synced data stay."""
    fd = create('f')
    os.write(fd, b'kept')
    os.fsync(fd)
    os.close(fd)
    daemon = v.pid()
    v.leave()
    freeze(daemon)
    try:
        begin = time.monotonic()
        in_child(lambda: fails('ENOTCONN ECONNABORTED', os.stat, v.mnt + '/t/none'))
        check(time.monotonic() - begin > 1, 'cut off before the time')
        in_child(lambda: fails('ENOTCONN ECONNABORTED', os.stat, v.mnt + '/t/other'))
        done = v.unmount(check=False)
        equal((done.returncode, v.mounted()), (0, False), done.stderr)
        equal(_watchdogs(v), [])
    finally:
        os.kill(daemon, signal.SIGKILL)
    wait_until(lambda: not process_alive(daemon), 10, 'end of the daemon')
    v.mount()
    equal(get(v.mnt + '/t/f'), b'kept')


@case(mounted=True)
def watchdog_ends_with_its_daemon(v):
    """There is one watchdog per mount; it ends at umount and when the daemon is killed."""
    equal(len(_watchdogs(v)), 1)
    cwd = v.leave()
    v.unmount()
    equal(_watchdogs(v), [])
    v.mount()
    v.kill9()
    wait_until(lambda: not _watchdogs(v), 10, 'end of the watchdog')
    v.mount()
    v.enter(cwd)

"""Record locks, open-file locks and flock between processes of one machine."""
import fcntl
import os
import signal
import struct
import subprocess
import sys
import time

from support import Alarm, check, create, equal, fails, in_child, put, python

F_OFD_SETLK, F_OFD_GETLK = 37, 36
PROBE = (
    'import fcntl,os,struct,sys\n'
    'fd=os.open("f",os.O_RDWR)\n'
    'start,length=map(int,sys.argv[1:])\n'
    'ask=struct.pack("hhqqi4x",fcntl.F_WRLCK,0,start,length,0)\n'
    'r=fcntl.fcntl(fd,fcntl.F_GETLK,ask)\n'
    'print(*struct.unpack("hhqqi4x",r))\n'
)


def _probe(start=0, length=0):
    """(type, start, length, pid) of what stands in the way of a write lock, seen by another
    process."""
    out = subprocess.check_output([sys.executable, '-c', PROBE, str(start), str(length)])
    kind, _, at, size, pid = map(int, out.split())
    return kind, at, size, pid


def lock_record_basics(v):
    """F_GETLK names type, range and holder; any close of the file by the holder drops its locks."""
    put('f', b'0' * 100)
    fd = os.open('f', os.O_RDWR)
    fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB, 10, 0)
    equal(_probe(0, 50), (fcntl.F_RDLCK, 0, 10, os.getpid()))
    equal(_probe(10, 50)[0], fcntl.F_UNLCK)
    os.close(os.open('f', os.O_RDONLY))
    equal(_probe(0, 50)[0], fcntl.F_UNLCK)


def lock_ranges_split_and_merge(v):
    """Unlocking the middle leaves both ends; relocking it makes one range again."""
    put('f', b'0' * 100)
    fd = os.open('f', os.O_RDWR)
    fcntl.lockf(fd, fcntl.LOCK_EX, 100, 0)
    fcntl.lockf(fd, fcntl.LOCK_UN, 20, 40)
    equal(_probe(0, 0)[:3], (fcntl.F_WRLCK, 0, 40))
    equal(_probe(45, 5)[0], fcntl.F_UNLCK)
    equal(_probe(60, 0)[:3], (fcntl.F_WRLCK, 60, 40))
    fcntl.lockf(fd, fcntl.LOCK_EX, 20, 40)
    equal(_probe(50, 1)[:3], (fcntl.F_WRLCK, 0, 100))


def lock_freed_when_holder_exits(v):
    """A lock of a process that exits, or is killed, is free at once."""
    put('f')
    held = (
        'import fcntl,os,sys\nfd=os.open("f",os.O_RDWR)\n'
        'fcntl.%s(fd,fcntl.LOCK_EX)\nprint(1,flush=True)\n%s\n'
    )
    for call in ('lockf', 'flock'):
        subprocess.run(
            [sys.executable, '-c', held % (call, 'os._exit(0)')],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        fd = os.open('f', os.O_RDWR)
        getattr(fcntl, call)(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(fd)
        holder = python(held % (call, 'import time; time.sleep(100)'), stdout=subprocess.PIPE)
        holder.stdout.readline()
        fd = os.open('f', os.O_RDWR)
        fails('EAGAIN EACCES', getattr(fcntl, call), fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        holder.kill()
        holder.wait()
        getattr(fcntl, call)(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(fd)


def lock_owner_is_the_process(v):
    """A child does not inherit record locks, but shares a flock through the inherited
    descriptor."""
    put('f')
    fd = os.open('f', os.O_RDWR)
    fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    in_child(lambda: fails('EAGAIN EACCES', fcntl.lockf, fd, fcntl.LOCK_EX | fcntl.LOCK_NB))
    os.close(fd)
    fd = os.open('f', os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    in_child(lambda: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB))
    other = os.open('f', os.O_RDWR)
    fails('EAGAIN', fcntl.flock, other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    twin = os.dup(fd)
    os.close(fd)
    fails('EAGAIN', fcntl.flock, other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(twin)
    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def lock_waits_and_is_granted(v):
    """A waiting lock is granted when the holder lets go, and the order of critical sections
    holds."""
    put('f', b'0')
    script = (
        'import fcntl,os\nfd=os.open("f",os.O_RDWR)\n'
        'for i in range(150):\n'
        ' fcntl.%s(fd,fcntl.LOCK_EX)\n'
        ' n=int(os.pread(fd,20,0)); os.pwrite(fd,str(n+1).encode(),0)\n'
        ' fcntl.%s(fd,fcntl.LOCK_UN)\n'
    )
    for call in ('lockf', 'flock'):
        put('f', b'0')
        workers = [python(script % (call, call)) for _ in range(4)]
        equal([w.wait() for w in workers], [0] * 4)
        with open('f', 'rb') as file:
            equal(int(file.read()), 600, call)


def lock_wait_is_interrupted_by_a_signal(v):
    """A blocked lock call ends with EINTR at once when a signal arrives."""
    put('f')
    held = (
        'import fcntl,os,time\nfd=os.open("f",os.O_RDWR)\n'
        'fcntl.%s(fd,fcntl.LOCK_EX)\nprint(1,flush=True)\ntime.sleep(100)\n'
    )
    for call in ('lockf', 'flock'):
        holder = python(held % call, stdout=subprocess.PIPE)
        holder.stdout.readline()
        fd = os.open('f', os.O_RDWR)
        start = time.monotonic()
        with Alarm(0.2):
            fails('EINTR', getattr(fcntl, call), fd, fcntl.LOCK_EX)
        check(time.monotonic() - start < 5, 'the signal was not served')
        waiter = python(held % call, stdout=subprocess.PIPE)
        time.sleep(0.3)
        waiter.send_signal(signal.SIGKILL)
        start = time.monotonic()
        waiter.wait(5)
        holder.kill()
        holder.wait()
        getattr(fcntl, call)(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(fd)


def lock_cycle_is_edeadlk(v):
    """Two processes that wait for each other's record locks: one of them gets EDEADLK."""
    put('f', b'00')
    script = (
        'import errno,fcntl,os,sys\nfd=os.open("f",os.O_RDWR)\nme=int(sys.argv[1])\n'
        'fcntl.lockf(fd,fcntl.LOCK_EX,1,me)\nprint(1,flush=True)\nsys.stdin.readline()\n'
        'try: fcntl.lockf(fd,fcntl.LOCK_EX,1,1-me)\n'
        'except OSError as e: sys.exit(35 if e.errno==errno.EDEADLK else 1)\n'
    )
    both = [python(script, k, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for k in (0, 1)]
    for process in both:
        process.stdout.readline()
    for process in both:
        process.stdin.write(b'\n')
        process.stdin.flush()
    equal(sorted(p.wait(20) for p in both), [0, 35])


def lock_of_open_file_descriptions(v):
    """OFD locks belong to the open file: two opens of one process conflict, a dup does not."""
    put('f')
    first, second = os.open('f', os.O_RDWR), os.open('f', os.O_RDWR)
    whole = struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0)
    fcntl.fcntl(first, F_OFD_SETLK, whole)
    fails('EAGAIN EACCES', fcntl.fcntl, second, F_OFD_SETLK, whole)
    fcntl.fcntl(os.dup(first), F_OFD_SETLK, whole)
    os.close(os.open('f', os.O_RDONLY))
    fails('EAGAIN EACCES', fcntl.fcntl, second, F_OFD_SETLK, whole)
    equal(struct.unpack('hhqqi4x', fcntl.fcntl(second, F_OFD_GETLK, whole))[0], fcntl.F_WRLCK)


def lock_needs_the_right_mode(v):
    """A write lock on a read-only descriptor is EBADF; a shared flock admits many."""
    fd = create('f')
    fails('EBADF', fcntl.lockf, os.open('f', os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
    fails('EBADF', fcntl.lockf, os.open('f', os.O_WRONLY), fcntl.LOCK_SH | fcntl.LOCK_NB)
    fcntl.flock(fd, fcntl.LOCK_SH)
    other = os.open('f', os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
    fails('EAGAIN', fcntl.flock, other, fcntl.LOCK_EX | fcntl.LOCK_NB)

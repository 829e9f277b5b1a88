"""Bytes that are not synced yet when the link is cut or the daemon is told to end."""
import os
import random
import signal
import subprocess
import time

from cases_failures import SMALL_CACHE, same_trees, serves_again
from jobs import Job, within
from support import case, check, code, equal, get, put
from volume import process_alive, wait_until

PIECE = 64 << 10


def _write_through_a_cut(path, data, gate, seconds):
    """Writes half of the data, lets the link be cut and joined while it writes the other half, and
    syncs. Returns what went wrong first, '' for nothing."""
    fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o644)
    for offset in range(0, len(data), PIECE):
        if offset == len(data) // 2:
            open(gate, 'wb').close()
            time.sleep(0.5)
        said = code(os.pwrite, fd, data[offset : offset + PIECE], offset)
        if said:
            break
    end = time.monotonic() + seconds
    while (synced := code(os.fsync, fd)) == 'ETIMEDOUT' and time.monotonic() < end:
        time.sleep(0.2)
    closed = code(os.close, fd)
    return said or synced or closed


@case(options=SMALL_CACHE, timeout=110)
def fsync_after_a_cut_means_all_bytes(c):
    """A node is cut off while a program writes more than its cache has room for: if no write and no
    fsync has failed, the others have each byte, whether its session outlived the cut or not."""
    one, two, three = c.nodes
    for number, seconds in enumerate((1.5, 9)):
        data = random.Random(number).randbytes(12 << 20)
        put(two.path('other'), b'%d' % number)
        gate = os.path.join(c.root, f'gate{number}')
        writer = Job(_write_through_a_cut, one.path('f'), data, gate, 40)
        wait_until(lambda p=gate: os.path.exists(p), 30, 'half of the bytes')
        one.host.cut()
        time.sleep(seconds)
        one.host.join()
        said = writer.result(80)
        print(f'  cut for {seconds} s: {said or "all bytes synced"}')
        serves_again(one, 'other', b'%d' % number)
        if not said:
            os.rename(one.path('f'), one.path(f'g{number}'))
            for node in (two, three):
                equal(within(30, get, node.path(f'g{number}')), data, f'on {node.name}')
        check(seconds > 4 or not said, f'a short cut ended with {said}')
        code(os.unlink, one.path('f'))
    same_trees(c.nodes)


def _fill(folder, count, size):
    for number in range(count):
        put(os.path.join(folder, f'f{number}'), random.Random(number).randbytes(size))


@case()
def what_was_closed_outlives_the_end_of_a_node(c):
    """Files that were closed and never synced are on the others when a daemon that got SIGTERM, or
    whose mount was detached with a file in use, has ended; so are its names."""
    one, two, _ = c.nodes
    for number, name in enumerate(('term', 'lazy')):
        os.mkdir(one.path(name))
        _fill(one.path(name), 24, 1 << 20)
        pid = one.pid()
        if name == 'term':
            os.kill(pid, signal.SIGTERM)
        else:
            fd = os.open(one.path(name, 'open'), os.O_CREAT | os.O_WRONLY)
            os.write(fd, b'open')
            subprocess.run(['umount', '-l', '-i', one.mnt], check=True)
            os.write(fd, b' on')
            os.close(fd)
        wait_until(lambda p=pid: not process_alive(p), 40, f'the end of the daemon, {name}')
        equal(one.daemon.wait(20), 0, 'its exit status')
        for piece in range(24):
            want = random.Random(piece).randbytes(1 << 20)
            equal(within(20, get, two.path(name, f'f{piece}')), want, f'{name}/f{piece}')
        if number:
            equal(within(20, get, two.path(name, 'open')), b'open on', 'the file in use')
        one.mount()
    same_trees(c.nodes)

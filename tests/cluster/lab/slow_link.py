"""A pair of taps that passes frames on after a while: the delay of a long way, where the kernel has
no netem. Run by namespaces.Host.delay(): slow_link.py NAME_OUTSIDE NAME_INSIDE MILLISECONDS makes
both, says so with a line, and passes on until it is ended."""
import collections
import fcntl
import os
import select
import struct
import sys
import time

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
FRAME = 1 << 16
HELD = 4096  # frames on their way in one direction; more are dropped, as on a link


def tap(name):
    fd = os.open('/dev/net/tun', os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack('16sH22x', name.encode(), IFF_TAP | IFF_NO_PI))
    return fd


def take(fd, held, delay_s):
    try:
        for _ in range(64):
            frame = os.read(fd, FRAME)
            if len(held) < HELD:
                held.append((time.monotonic() + delay_s, frame))
    except (BlockingIOError, OSError):
        pass  # none, or the link is not up


def give(fd, held):
    """Seconds until the next frame is due; nothing: there is none."""
    while held:
        left = held[0][0] - time.monotonic()
        if left > 0:
            return left
        try:
            os.write(fd, held.popleft()[1])
        except OSError:
            pass  # a frame that the link drops
    return None


def main():
    one, two = tap(sys.argv[1]), tap(sys.argv[2])
    delay_s = float(sys.argv[3]) / 1000
    print('ready', flush=True)
    there, back = collections.deque(), collections.deque()
    while True:
        waits = [wait for wait in (give(two, there), give(one, back)) if wait is not None]
        ready = select.select([one, two], [], [], min(waits) if waits else None)[0]
        if one in ready:
            take(one, there, delay_s)
        if two in ready:
            take(two, back, delay_s)


if __name__ == '__main__':
    main()

"""One random sequence of calls from several mounts, and what a plain folder says to the same calls.

Each step runs on one mount and on a plain folder (a tmpfs): the outcome, its errno included, must
be the same. Then another mount must show what the plain folder shows for every path that the step
named: a change is visible everywhere when its call has returned, and so are bytes when their file
is closed. One seed is one sequence.
"""
import ctypes
import hashlib
import os
import random
import stat

from support import LIBC, code, renameat2

NAMES = ('a', 'b', 'c', 'd', 'e')
XATTR = 'trusted.lab'
RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2


def write_file(path, flags, data, offset=0):
    fd = os.open(path, flags | os.O_WRONLY, 0o644)
    try:
        if offset:
            os.lseek(fd, offset, os.SEEK_SET)
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
    finally:
        os.close(fd)


def punch(path, offset, length):
    fd = os.open(path, os.O_WRONLY)
    try:
        if LIBC.fallocate(fd, 3, ctypes.c_int64(offset), ctypes.c_int64(length)) != 0:
            raise OSError(ctypes.get_errno(), 'fallocate')
    finally:
        os.close(fd)


# What a step does below `at`: (function, number of paths). Further arguments follow the paths.
CALLS = {
    'create': (lambda p, data: write_file(p, os.O_CREAT | os.O_EXCL, data), 1),
    'put': (lambda p, data: write_file(p, os.O_CREAT | os.O_TRUNC, data), 1),
    'overwrite': (lambda p, data, offset: write_file(p, 0, data, offset), 1),
    'append': (lambda p, data: write_file(p, os.O_APPEND, data), 1),
    'truncate': (os.truncate, 1),
    'punch': (punch, 1),
    'mkdir': (os.mkdir, 1),
    'rmdir': (os.rmdir, 1),
    'unlink': (os.unlink, 1),
    'symlink': (lambda p, target: os.symlink(target, p), 1),
    'chmod': (os.chmod, 1),
    'utime': (lambda p, ns: os.utime(p, ns=ns, follow_symlinks=False), 1),
    'setxattr': (lambda p, value: os.setxattr(p, XATTR, value, follow_symlinks=False), 1),
    'link': (lambda p, q: os.link(p, q, follow_symlinks=False), 2),
    'rename': (os.rename, 2),
    'rename_noreplace': (lambda p, q: renameat2(p, q, RENAME_NOREPLACE), 2),
    'exchange': (lambda p, q: renameat2(p, q, RENAME_EXCHANGE), 2),
}
NAME_STEPS = ('create', 'mkdir', 'rmdir', 'unlink', 'symlink', 'chmod', 'utime', 'setxattr', 'link')
NAME_STEPS += ('rename', 'rename', 'rename_noreplace', 'exchange')
BYTE_STEPS = ('create', 'put', 'put', 'overwrite', 'overwrite', 'append', 'append', 'truncate')
BYTE_STEPS += ('punch', 'rename', 'unlink')


def describe(root, path):
    """What one sees of a path: kind, rights, links, size, bytes, names, target."""
    full = os.path.join(root, path)
    try:
        info = os.lstat(full)
    except OSError as error:
        return error.strerror
    kind = stat.S_IFMT(info.st_mode)
    seen = [oct(info.st_mode), info.st_nlink, info.st_uid, info.st_gid]
    if XATTR in os.listxattr(full, follow_symlinks=False):
        seen.append(os.getxattr(full, XATTR, follow_symlinks=False))
    if kind == stat.S_IFDIR:
        return tuple(seen + [tuple(sorted(os.listdir(full)))])
    if kind == stat.S_IFLNK:
        return tuple(seen + [os.readlink(full)])
    with open(full, 'rb') as file:
        data = file.read()
    return tuple(seen + [info.st_size, len(data), hashlib.sha256(data).hexdigest()[:16]])


def paths_below(root):
    found = []
    for where, folders, files in os.walk(root):
        relative = os.path.relpath(where, root)
        found += [os.path.normpath(os.path.join(relative, name)) for name in folders + files]
    return sorted(found)


def tree(root):
    """Everything below `root`: {path: what one sees}."""
    return {path: describe(root, path) for path in [''] + paths_below(root)}


def identity(root, path):
    try:
        info = os.lstat(os.path.join(root, path))
        return info.st_ino, info.st_mtime_ns, info.st_ctime_ns
    except OSError as error:
        return error.strerror


class Walk:
    """The sequence: `mounts` are folders on the mounts, `plain` one on a tmpfs."""

    def __init__(self, mounts, plain, seed, steps):
        self.mounts, self.plain, self.steps = mounts, plain, steps
        self.seed, self.rng, self.number = seed, random.Random(seed), 0
        self.succeeded = 0

    def path(self):
        known = paths_below(self.plain)
        if known and self.rng.random() < 0.6:
            return self.rng.choice(known)
        folders = [''] + [p for p in known if os.path.isdir(os.path.join(self.plain, p))]
        return os.path.join(self.rng.choice(folders), self.rng.choice(NAMES))

    def data(self):
        """Bytes that say which step wrote them."""
        stamp = f'{self.seed}:{self.number}|'.encode()
        length = self.rng.choice((0, 1, 100, 4095, 4096, 4097, 20_000, 150_000))
        return (stamp * (length // len(stamp) + 1))[:length]

    def choose(self):
        name = self.rng.choice(self.steps)
        arguments = [self.path() for _ in range(CALLS[name][1])]
        more = {
            'create': lambda: [self.data()],
            'put': lambda: [self.data()],
            'append': lambda: [self.data()],
            'overwrite': lambda: [self.data(), self.rng.randrange(200_000)],
            'truncate': lambda: [self.rng.choice((0, 1, 4096, 5000, 100_000, 300_000))],
            'punch': lambda: [self.rng.randrange(100_000), self.rng.randrange(1, 50_000)],
            'symlink': lambda: [self.rng.choice(NAMES)],
            'chmod': lambda: [self.rng.choice((0o600, 0o644, 0o755))],
            'utime': lambda: [(self.rng.randrange(10**18), self.rng.randrange(10**18))],
            'setxattr': lambda: [str(self.number).encode()],
        }.get(name, list)()
        return name, arguments, more

    @staticmethod
    def call(root, name, paths, more):
        return code(CALLS[name][0], *(os.path.join(root, p) for p in paths), *more)

    def run(self, count):
        """Raises AssertionError with step, expected and got at the first difference; returns how
        many steps succeeded, as a proof that they were not all refused."""
        for self.number in range(count):
            self.step()
        want = tree(self.plain)
        for mount in self.mounts:
            self.same('the whole tree', mount, tree(mount), want)
        return self.succeeded

    def step(self):
        name, paths, more = self.choose()
        here, there = self.rng.choice(self.mounts), self.rng.choice(self.mounts)
        said = f'{name} {" ".join(paths)} {str(more)[:60]} on {here}'
        want = self.call(self.plain, name, paths, more)
        self.same(said, here, self.call(here, name, paths, more), want)
        self.succeeded += not want
        for path in {p for path in paths for p in (path, os.path.dirname(path))}:
            self.same(f'{said}; {path}', there, describe(there, path), describe(self.plain, path))
            self.same(
                f'{said}; inode and times of {path}',
                there,
                identity(there, path),
                identity(here, path),
            )

    def same(self, said, where, got, want):
        if got == want:
            return
        if isinstance(want, dict):
            got = {k: v for k, v in got.items() if want.get(k) != v}
            want = {k: v for k, v in want.items() if k in got or k not in got}
            want = {k: want.get(k) for k in got} or 'more paths'
        raise AssertionError(
            f'seed {self.seed}, step {self.number}: {said}: on {where} got {got}, want {want}'
        )

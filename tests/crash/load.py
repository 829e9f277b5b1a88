"""The load of the crash test: workers that change bytes and names, and note it all first."""
import ctypes
import errno
import mmap
import os

from model import File, Names

LIBC = ctypes.CDLL(None, use_errno=True)
GONE = {errno.ENOTCONN, errno.ECONNABORTED, errno.EIO, errno.ENODEV}
FALLOC_KEEP_SIZE, FALLOC_PUNCH_HOLE = 1, 2


class Worker:
    """One process's folder: its operations and its oracle. Every change is noted before it is
    asked for."""

    FILES_MAX, SIZE_MAX, CELL = 14, 120_000, 100

    def __init__(self, index):
        self.index, self.files, self.names, self.serial, self.errors = index, {}, Names(), 0, []
        self.folder_name, self.steps = f'w{index}', 0

    def again(self, number):
        """A worker that starts anew in a folder of its own, because its oracle was lost."""
        worker = Worker(self.index)
        worker.folder_name = f'w{self.index}.{number}'
        return worker

    # --- life of a round
    # ----------------------------------------------------------------------------

    def run(self, folder, rng):
        """Works until the daemon is gone. Runs in a process of its own."""
        self.rng, self.folder, self.handles = rng, folder, {}
        try:
            os.makedirs(folder, exist_ok=True)
            os.chdir(folder)
            while True:
                self.step()
                self.steps += 1
        except OSError as error:
            if error.errno not in GONE:
                self.errors.append(f'{error} in the middle of the load')
        self.handles = None

    def step(self):
        actions = [
            self.write,
            self.write,
            self.write,
            self.append,
            self.truncate,
            self.sync_file,
            self.sync_file,
            self.create,
            self.replace,
            self.unlink,
            self.make_folder,
            self.remove_folder,
            self.move,
            self.sync_folder,
            self.punch,
            self.copy,
            self.map_store,
            self.close,
        ]
        self.rng.choice(actions)()

    # --- choosing
    # -----------------------------------------------------------------------------------

    def of_kind(self, kind):
        return sorted(path for path, (k, _) in self.names.now().items() if k == kind)

    def some(self, kind='file'):
        paths = self.of_kind(kind)
        return self.rng.choice(paths) if paths else None

    def fresh(self):
        self.serial += 1
        folders = [''] + [path + '/' for path in self.of_kind('folder')]
        return self.rng.choice(folders) + f'n{self.serial}'

    def opened(self, path):
        inode = self.names.now()[path][1]
        if inode not in self.handles:
            if len(self.handles) > 6:
                os.close(self.handles.pop(next(iter(self.handles))))
            self.handles[inode] = os.open(path, os.O_RDWR)
        return self.handles[inode], self.files[inode]

    # --- bytes
    # --------------------------------------------------------------------------------------

    def write(self, append=False):
        path = self.some()
        if path is None:
            return self.create()
        fd, file = self.opened(path)
        offset = file.size if append else self.rng.randrange(min(file.size + 5000, self.SIZE_MAX))
        length = self.rng.choice((1, 100, 700, 4096, 5000, 20_000))
        data = self.rng.randbytes(length)
        if offset + length < self.SIZE_MAX:
            file.write(offset, data)
            os.pwrite(fd, data, offset)
        return None

    def append(self):
        self.write(append=True)

    def truncate(self):
        path = self.some()
        if path and self.rng.random() < 0.5:
            fd, file = self.opened(path)
            size = (
                self.rng.randrange(self.SIZE_MAX)
                if self.rng.random() < 0.3
                else self.rng.randrange(file.size + 1)
            )
            file.truncate(size)
            os.ftruncate(fd, size)

    def punch(self):
        path = self.some()
        if path:
            fd, file = self.opened(path)
            if file.size:
                offset, length = self.rng.randrange(file.size), self.rng.randrange(1, 9000)
                file.zero(offset, length)
                self.fallocate(fd, offset, length)

    @staticmethod
    def fallocate(fd, offset, length):
        mode = FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE
        if LIBC.fallocate(fd, mode, ctypes.c_int64(offset), ctypes.c_int64(length)) != 0:
            raise OSError(ctypes.get_errno(), 'fallocate')

    def copy(self):
        source_path, target_path = self.some(), self.some()
        if source_path and source_path != target_path:
            source_fd, source = self.opened(source_path)
            target_fd, target = self.opened(target_path)
            if source_fd != target_fd and source_fd in self.handles.values() and source.size:
                start = self.rng.randrange(source.size)
                length = min(source.size - start, self.rng.randrange(1, 30_000))
                at = self.rng.randrange(target.size + 1)
                if at + length < self.SIZE_MAX:
                    target.write(at, source.content(start, length))
                    copied = os.copy_file_range(source_fd, target_fd, length, start, at)
                    if copied != length:
                        self.errors.append(f'copy_file_range: {copied} of {length}')

    def map_store(self):
        path = self.some()
        if path and self.rng.random() < 0.3:
            fd, file = self.opened(path)
            if file.size:
                offset = self.rng.randrange(file.size)
                data = self.rng.randbytes(min(3000, file.size - offset))
                file.write(offset, data)
                shared = mmap.mmap(fd, file.size)
                os.pread(fd, len(data), offset)
                shared[offset : offset + len(data)] = data
                shared.close()

    # --- durability
    # ---------------------------------------------------------------------------------

    def sync_file(self):
        path = self.some()
        if path:
            fd, file = self.opened(path)
            (os.fsync if self.rng.random() < 0.7 else os.fdatasync)(fd)
            file.synced()
            self.names.synced()

    def sync_folder(self):
        fd = os.open(self.some('folder') or '.', os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
        self.names.synced()

    def close(self):
        if self.handles:
            os.close(self.handles.pop(self.rng.choice(sorted(self.handles))))

    # --- names
    # --------------------------------------------------------------------------------------

    def create(self, path=None):
        path = path or self.fresh()
        if len(self.of_kind('file')) >= self.FILES_MAX:
            return None
        self.names.states.append(dict(self.names.now()) | {path: ('file', None)})
        fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o644)
        inode = os.fstat(fd).st_ino
        self.names.states[-1][path] = ('file', inode)
        self.files[inode] = File(inode, self.CELL)
        self.handles[inode] = fd
        return path

    def replace(self):
        """The safe replace: a new file, written, perhaps fsynced, renamed over an old name."""
        victim = self.some()
        path = self.create() if victim else None
        if path:
            fd, file = self.opened(path)
            data = self.rng.randbytes(self.rng.randrange(1, 30_000))
            file.write(0, data)
            os.pwrite(fd, data, 0)
            if self.rng.random() < 0.3:
                os.fsync(fd)
                file.synced()
                self.names.synced()
            self.rename(path, victim)

    def move(self):
        path = self.some(self.rng.choice(('file', 'folder')))
        if path:
            target = self.fresh()
            if not target.startswith(path + '/'):
                self.rename(path, target)

    def rename(self, old, new):
        kind, inode = self.names.now()[old]
        if kind == 'file' and new in self.names.now():
            self.files[inode].promise(new)
        self.names.moved(old, new)
        os.rename(old, new)

    def unlink(self):
        path = self.some()
        if path:
            self.names.change(remove=[path])
            os.unlink(path)

    def make_folder(self):
        if len(self.of_kind('folder')) < 5:
            path = self.fresh()
            self.names.states.append(dict(self.names.now()) | {path: ('folder', None)})
            os.mkdir(path)
            self.names.states[-1][path] = ('folder', os.stat(path).st_ino)

    def remove_folder(self):
        path = self.some('folder')
        if path and not any(p.startswith(path + '/') for p in self.names.now()):
            self.names.change(remove=[path])
            os.rmdir(path)

    # --- the verdict
    # --------------------------------------------------------------------------------

    def judge(self, folder):
        """Compares what the mount shows with the oracle; what was found is the start of the next
        round."""
        found, complaints = {}, list(self.errors)
        for where, folders, files in os.walk(folder):
            for kind, names in (('folder', folders), ('file', files)):
                for name in names:
                    path = os.path.join(where, name)
                    found[os.path.relpath(path, folder)] = (kind, os.lstat(path).st_ino)
        for state in self.names.states:  # a create that was under way has no known inode yet
            for path, (kind, inode) in list(state.items()):
                if inode is None and path in found and found[path][0] == kind:
                    state[path] = found[path]
                    if kind == 'file':
                        self.files.setdefault(found[path][1], File(found[path][1], self.CELL))
        complaint = self.names.judge(found)
        if complaint:
            complaints.append(f'{folder}: {complaint}')
        for path, (kind, inode) in found.items():
            if kind == 'file':
                with open(os.path.join(folder, path), 'rb') as handle:
                    data = handle.read()
                complaint = (
                    self.files[inode].judge(path, data)
                    if inode in self.files
                    else 'an unknown inode'
                )
                if complaint:
                    complaints.append(f'{folder}/{path} (inode {inode}): {complaint}')
                self.files.setdefault(inode, File(inode, self.CELL)).settle(data)
        kept = {inode for _, inode in found.values()}
        self.files = {inode: file for inode, file in self.files.items() if inode in kept}
        self.names.states, self.errors = [found], []
        return complaints


class Overwriter(Worker):
    """One big file in a nearly full store, overwritten page by page."""

    CELL = 4096

    def __init__(self, index, pages):
        super().__init__(index)
        self.pages = pages

    def again(self, number):
        return Overwriter(self.index, self.pages)

    def step(self):
        if not self.names.now():
            path = self.create('big')
            fd, file = self.opened(path)
            for page in range(0, self.pages, 64):
                data = self.rng.randbytes(64 * 4096)
                file.write(page * 4096, data)
                os.pwrite(fd, data, page * 4096)
            self.sync_file()
        fd, file = self.opened('big')
        for _ in range(self.rng.choice((1, 10, 300))):
            page = self.rng.randrange(self.pages)
            data = self.rng.randbytes(64) * 64
            file.write(page * 4096, data)
            os.pwrite(fd, data, page * 4096)
        if self.rng.random() < 0.5 or len(file.dirty) > 3000:
            self.sync_file()

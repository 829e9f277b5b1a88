"""A writer that notes what it was promised, and the judge of what others see of it.

A scribe writes blocks of files, replaces a file whole by a rename, and makes and removes names, all
in one folder of one mount. Each change has a number. It notes the number before, and again when the
change was acknowledged: blocks by fsync, the others by the return of their last call. Who looks
later must see that change or one that was begun after it; of a name whose last change failed either
state.
"""
import os
import random
import time

BLOCK = 4096
FILES, BLOCKS, NAMES = 4, 8, 6
PAUSE_S = 0.05  # after a change that failed


def block_of(what, number):
    stamp = f'{what}:{number};'.encode()
    return (stamp * (BLOCK // len(stamp) + 1))[:BLOCK]


def number_in(what, block):
    """The change that the block shows; 0: none, -1: nobody's."""
    if not block.strip(b'\0'):
        return 0
    number = block.split(b';', 1)[0].rsplit(b':', 1)[-1]
    return int(number) if number.isdigit() and block == block_of(what, int(number)) else -1


class Notes:
    """What a scribe noted so far: {what: [last begun, last acknowledged, whether it is there]}."""

    def __init__(self, path):
        self.path, self.offset, self.known, self.acknowledged = path, 0, {}, 0

    def read(self):
        with open(self.path, 'rb') as file:
            file.seek(self.offset)
            text = file.read()
        text = text[: text.rfind(b'\n') + 1]
        self.offset += len(text)
        for line in text.decode().splitlines():
            word, what, number, there = line.split()
            entry = self.known.setdefault(what, [0, 0, False])
            entry[word == 'ack'] = int(number)
            if word == 'ack':
                entry[2] = there == '1'
                self.acknowledged += 1
        return self.known


class Scribe:
    def __init__(self, mnt, name, note, seed):
        self.mnt, self.name, self.rng = mnt, name, random.Random(seed)
        self.note = os.open(note, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
        self.below = os.stat(os.path.dirname(mnt)).st_dev  # of what lies below an absent mount
        self.number = 0

    def say(self, word, what, there=1):
        os.write(self.note, f'{word} {what} {self.number} {there:d}\n'.encode())

    def work(self, end_mark):
        """Until the file `end_mark` is there; errors are part of it."""
        while not os.path.exists(end_mark):
            self.number += 1
            try:
                root = os.open(self.mnt, os.O_RDONLY)
                try:
                    assert os.fstat(root).st_dev != self.below
                    self.step(root)
                finally:
                    os.close(root)
            except (OSError, AssertionError):
                time.sleep(PAUSE_S)
        return self.number

    def step(self, root):
        kind = self.rng.random()
        if kind < 0.5:
            self.write_block(root)
        elif kind < 0.7:
            self.replace(root)
        else:
            self.change_name(root)

    def write_block(self, root):
        file, block = self.rng.randrange(FILES), self.rng.randrange(BLOCKS)
        fd = os.open(f'{self.name}/f{file}', os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=root)
        try:
            self.say('begin', f'f{file}.{block}')
            os.pwrite(fd, block_of(f'{self.name}.f{file}.{block}', self.number), block * BLOCK)
            os.fsync(fd)
            self.say('ack', f'f{file}.{block}')
        finally:
            os.close(fd)

    def replace(self, root):
        fd = os.open(f'{self.name}/new', os.O_CREAT | os.O_TRUNC | os.O_WRONLY, dir_fd=root)
        try:
            os.write(fd, block_of(f'{self.name}.doc', self.number))
            os.fsync(fd)
        finally:
            os.close(fd)
        self.say('begin', 'doc')
        os.rename(f'{self.name}/new', f'{self.name}/doc', src_dir_fd=root, dst_dir_fd=root)
        self.say('ack', 'doc')

    def change_name(self, root):
        what = f'n{self.rng.randrange(NAMES)}'
        makes = self.rng.random() < 0.5
        self.say('begin', what)
        try:
            if makes:
                flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
                os.close(os.open(f'{self.name}/{what}', flags, dir_fd=root))
            else:
                os.unlink(f'{self.name}/{what}', dir_fd=root)
        except (FileExistsError, FileNotFoundError):
            pass  # as it is wanted
        self.say('ack', what, makes)


def _judge_one(root, name, what, entry, is_quiet):
    begun, acknowledged, there = entry
    if what.startswith('n'):
        try:
            os.stat(f'{name}/{what}', dir_fd=root)
            found = True
        except FileNotFoundError:
            found = False
        if is_quiet and begun == acknowledged and found != there:
            return f'{what} is {"" if found else "not "}there, after {begun}'
        return ''
    path, offset, full = f'{name}/{what}', 0, f'{name}.{what}'
    if what.startswith('f'):
        path, offset = f'{name}/{what.split(".")[0]}', int(what.split('.')[1]) * BLOCK
    try:
        fd = os.open(path, os.O_RDONLY, dir_fd=root)
    except FileNotFoundError:
        return f'{path} is not there' if acknowledged else ''
    try:
        block = os.pread(fd, BLOCK, offset)
    finally:
        os.close(fd)
    seen = number_in(full, block)
    return '' if seen >= acknowledged else f'{what} shows {seen}, {acknowledged} was acknowledged'


def judge(mnt, name, notes, is_quiet):
    """Complaints about what the mount shows of the scribe. While it works (not `is_quiet`) names
    are not judged, and a later change than the noted ones may be seen."""
    known = {what: list(entry) for what, entry in notes.read().items()}
    root = os.open(mnt, os.O_RDONLY)
    try:
        found = [_judge_one(root, name, what, entry, is_quiet) for what, entry in known.items()]
        return [complaint for complaint in found if complaint]
    finally:
        os.close(root)


def judge_on(mnt, name, note, end_mark):
    """Looks at another node's scribe for as long as it works; (looks, complaints)."""
    notes, looks, complaints = Notes(note), 0, []
    below = os.stat(os.path.dirname(mnt)).st_dev
    while not os.path.exists(end_mark):
        try:
            if os.stat(mnt).st_dev == below:
                raise OSError('not mounted')
            complaints += judge(mnt, name, notes, False)
            looks += 1
        except OSError:
            time.sleep(PAUSE_S)
        time.sleep(PAUSE_S)
    return looks, complaints[:5]

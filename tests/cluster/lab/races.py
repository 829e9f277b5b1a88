"""Several mounts at the same moment: exclusive names, appended records, readers, synced writers."""
import hashlib
import os
import random
import time

from jobs import barrier, together
from support import RENAME_NOREPLACE, check, code, equal, get, put, renameat2

# --- exclusive names


def _make_file(mnt, who, name):
    fd = os.open(os.path.join(mnt, name), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    os.write(fd, who.encode())
    os.close(fd)


EXCLUSIVE = {
    'create': _make_file,
    'mkdir': lambda mnt, who, name: os.mkdir(os.path.join(mnt, name)),
    'symlink': lambda mnt, who, name: os.symlink(who, os.path.join(mnt, name)),
    'link': lambda mnt, who, name: os.link(
        os.path.join(mnt, f'source.{who}'), os.path.join(mnt, name)
    ),
    'rename': lambda mnt, who, name: renameat2(
        os.path.join(mnt, f'moved.{who}'), os.path.join(mnt, name), RENAME_NOREPLACE
    ),
}


def _contend(mnt, who, kind, rounds, gate):
    outcomes = []
    put(os.path.join(mnt, f'source.{who}'), who.encode())
    for number in range(rounds):
        moved = os.path.join(mnt, f'moved.{who}')
        if kind == 'rename' and not os.path.exists(moved):
            put(moved, who.encode())
        gate.wait()
        outcomes.append(code(EXCLUSIVE[kind], mnt, who, f'{kind}{number}'))
    return outcomes


def exclusive(mounts, kind, rounds, seconds):
    """All mounts make the same name at the same moment, `rounds` times: one succeeds, the others
    get EEXIST, and all see what the winner made."""
    gate = barrier(len(mounts), seconds)
    outcomes = together(
        seconds,
        *((_contend, mnt, f'n{i}', kind, rounds, gate) for i, mnt in enumerate(mounts)),
    )
    for number, round_ in enumerate(zip(*outcomes)):
        want = [''] + ['EEXIST'] * (len(mounts) - 1)
        equal(sorted(round_), want, f'{kind} of one name on all nodes, round {number}')
        name, winner = f'{kind}{number}', f'n{round_.index("")}'
        inodes = {os.lstat(os.path.join(mnt, name)).st_ino for mnt in mounts}
        equal(len(inodes), 1, f'inodes that the nodes see behind {name}')
        for mnt in mounts:
            path = os.path.join(mnt, name)
            if kind == 'symlink':
                equal(os.readlink(path), winner, f'target of {path}')
            elif kind != 'mkdir':
                equal(get(path), winner.encode(), f'bytes of {path}')


# --- appended records


def record(who, number):
    """A line of 20 to 3000 bytes that says whose and which it is."""
    rng = random.Random(f'{who}/{number}')
    head = f'{who}:{number}:'
    return (head + rng.choice('xyz') * rng.randrange(20 - len(head), 3000) + '\n').encode()


def append_records(path, who, count):
    """Appends records with one write each; opens the file again now and then."""
    fd = -1
    for number in range(count):
        if number % 7 == 0:
            if fd >= 0:
                os.close(fd)
            fd = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)
        text = record(who, number)
        equal(os.write(fd, text), len(text), f'bytes appended by {who}')
    os.close(fd)


def judge_records(path, writers, count):
    """No record is lost, torn or doubled, and each writer's are in order."""
    found = {who: [] for who in writers}
    for line in get(path).splitlines(keepends=True):
        who, _, rest = line.decode(errors='replace').partition(':')
        number = rest.partition(':')[0]
        check(who in found and number.isdigit(), f'{path}: no record: {line[:60]!r}')
        equal(line, record(who, int(number)), f'{path}: record {who}:{number}')
        found[who].append(int(number))
    for who, numbers in found.items():
        lost = sorted(set(range(count)) - set(numbers))[:10]
        equal(numbers, list(range(count)), f'{path}: records of {who}, lost {lost}')


# --- synced writers


def synced_record(number, size=3000):
    return random.Random(number).randbytes(size)


def write_synced_records(folder, note):
    """Until it is ended or refused: writes a record at its place in `folder`/data, and every
    fifth time a file of its own; syncs; then notes the number in the plain file `note`."""
    notes = os.open(note, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
    data = os.open(os.path.join(folder, 'data'), os.O_CREAT | os.O_WRONLY, 0o644)
    number = 0
    while True:
        text = synced_record(number)
        os.pwrite(data, text, number * len(text))
        os.fsync(data)
        if number % 5 == 0:
            fd = os.open(os.path.join(folder, f'own{number}'), os.O_CREAT | os.O_WRONLY, 0o644)
            os.write(fd, text)
            os.fsync(fd)
            os.close(fd)
        os.write(notes, b'%d\n' % number)
        number += 1


def synced_count(note):
    """How many records were acknowledged."""
    return len(get(note).splitlines()) if os.path.exists(note) else 0


def judge_synced(folder, count):
    """Each acknowledged record is there, and behind them nothing but what was written."""
    data = get(os.path.join(folder, 'data'))
    size = len(synced_record(0))
    for number in range(count):
        text = synced_record(number)
        equal(data[number * size : (number + 1) * size], text, f'{folder}: synced record {number}')
        if number % 5 == 0:
            equal(get(os.path.join(folder, f'own{number}')), text, f'{folder}: own{number}')
    rest = data[count * size :]
    for number in range(len(rest) // size + 1):
        part = rest[number * size : (number + 1) * size]
        want = synced_record(count + number)[: len(part)]
        equal(part, want, f'{folder}: bytes behind the last synced record')


# --- readers


def digest(data):
    return hashlib.sha256(data).hexdigest()


def read_uncached(path):
    """Its bytes past the kernel's page cache."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        parts = []
        while part := os.read(fd, 1 << 20):
            parts.append(part)
        return b''.join(parts)
    finally:
        os.close(fd)


def read_on(paths, digests, seconds):
    """Reads the files again and again; returns (longest time from one read's end to the next's,
    reads). Every read must succeed with the right bytes."""
    order = list(zip(paths, digests))
    random.Random(len(paths)).shuffle(order)
    reads, longest, last = 0, 0.0, time.monotonic()
    end = last + seconds
    while time.monotonic() < end:
        path, want = order[reads % len(order)]
        equal(digest(read_uncached(path)), want, f'read {reads}: {path}')
        now = time.monotonic()
        longest, last = max(longest, now - last), now
        reads += 1
    return longest, reads

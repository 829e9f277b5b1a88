"""Copies: of bytes that are shared instead of moved, and of a file that somebody writes."""
import os

from support import case, check, create, equal, get, needs, python, put, sh_ok
from volume import counter

MIB = 1 << 20


@case(mounted=True)
def copy_range_moves_no_bytes(v):
    """copy_file_range of bytes that lie in segments writes none of them again: the daemon counts no
    byte written by callers and next to none appended."""
    data = os.urandom(16 * MIB)
    put('f', data)
    source, target = os.open('f', os.O_RDONLY), create('g')
    os.fsync(source)
    v.cold()  # nothing of it is dirty any more
    source, target = os.open('f', os.O_RDONLY), os.open('g', os.O_RDWR)
    before = v.stat()
    done = 0
    while done < len(data):
        count = os.copy_file_range(source, target, len(data) - done, done, done)
        check(count > 0)
        done += count
    os.fsync(target)
    after = v.stat()
    for name in ('written_bytes', 'segment_written_bytes'):
        grown = counter(after, name) - counter(before, name)
        check(grown < MIB, f'{name} grew by {grown} for a copy of {len(data)} bytes')
    equal(get('g'), data)


@case(mounted=True)
def copy_of_a_file_that_is_written(v):
    """cp of a file that another process appends to has a beginning of it, and no zeros for bytes
    that were just written."""
    needs('cp', 'cmp')
    writer = python(
        'import os\n'
        'with open("w", "ab", buffering=0) as f:\n'
        ' for i in range(160): f.write(bytes([i % 255 + 1]) * 65536)\n'
    )
    rounds = 0
    try:
        while writer.poll() is None or rounds == 0:
            if os.path.exists('w'):
                sh_ok('timeout 30 cp --sparse=auto w c && cmp -n $(stat -c %s c) w c')
                check(b'\0' not in get('c'), 'zeros in the copy')
                rounds += 1
    finally:
        writer.kill()
        equal(writer.wait(), 0)
    check(rounds > 0)
    sh_ok('cp --sparse=auto w c && cmp w c')
    equal(os.stat('c').st_size, 160 * 65536)

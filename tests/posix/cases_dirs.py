"""Directory streams: complete, without repetition, stable under change, linear in size."""
import os
import stat
import threading
import time

from support import Stream, case, check, equal, fails, get, put, python, sh_ok


def readdir_of_an_empty_directory(v):
    """An empty directory lists exactly . and .., with the right inode numbers and kinds."""
    os.mkdir('d')
    entries = {name: (ino, kind) for name, ino, kind in Stream('d').rest()}
    equal(sorted(entries), [b'.', b'..'])
    equal(entries[b'.'][0], os.stat('d').st_ino)
    equal(entries[b'..'][0], os.stat('.').st_ino)
    equal({kind for _, kind in entries.values()}, {4})


def readdir_tells_kind_and_inode(v):
    """d_type and d_ino of each entry are those that lstat tells, also cold."""
    put('f')
    os.mkdir('d')
    os.symlink('f', 's')
    os.mkfifo('p')
    os.mknod('c', stat.S_IFCHR | 0o600, os.makedev(1, 3))
    for _ in range(2):
        entries = {name: (ino, kind) for name, ino, kind in Stream().rest()}
        for name in (b'f', b'd', b's', b'p', b'c'):
            status = os.lstat(name)
            equal(entries[name], (status.st_ino, stat.S_IFMT(status.st_mode) >> 12), name)
        v.cold()


def readdir_rewound_is_the_same(v):
    """rewinddir gives the same set again, once, and shows what was added since."""
    for i in range(300):
        put(f'n{i}')
    stream = Stream()
    first = stream.names()
    stream.rewind()
    equal(sorted(stream.names()), sorted(first))
    equal(len(set(first)), 300)
    put('late')
    os.unlink('n7')
    stream.rewind()
    equal(set(stream.names()), set(first) - {b'n7'} | {b'late'})


def readdir_positions_hold(v):
    """telldir and seekdir return to the same entry, also after entries before it were removed."""
    for i in range(500):
        put(f'n{i}')
    stream = Stream()
    places = []
    while True:
        place = stream.tell()
        entry = stream.next()
        if entry is None:
            break
        places.append((place, entry[0]))
    for place, name in places[::-37]:
        stream.seek(place)
        equal(stream.next()[0], name)
    gone = [name for _, name in places[:200] if name not in (b'.', b'..')]
    for name in gone:
        os.unlink(name)
    place, name = places[300]
    stream.seek(place)
    rest = [name] + [n for _, n in places[301:]]
    equal(stream.names(), [n for n in rest if n not in (b'.', b'..')])


def readdir_while_deleting(v):
    """Names that stay are seen exactly once while all others are deleted between two reads."""
    os.mkdir('d')
    for i in range(3000):
        put(f'd/{i}', b'')
    keep = {f'k{i}' for i in range(200)}
    for name in keep:
        put('d/' + name, b'')
    seen = []
    with os.scandir('d') as entries:
        for entry in entries:
            seen.append(entry.name)
            if entry.name not in keep:
                os.unlink('d/' + entry.name)
    equal(sorted(n for n in seen if n in keep), sorted(keep))
    equal(len(seen), len(set(seen)), 'names seen')
    sh_ok('rm -rf d')
    check(not os.path.exists('d'))


def readdir_while_others_change(v):
    """Under creates, deletes and renames by another process the unchanged names appear exactly
    once."""
    os.mkdir('d')
    keep = sorted(f'keep{i:04}' for i in range(1500))
    for name in keep:
        put('d/' + name, b'')
    noise = python(
        'import os,itertools\n'
        'for i in itertools.count():\n'
        ' p="d/x%d"%i; open(p,"w").close(); os.rename(p, p+"r")\n'
        ' if i>50: os.unlink("d/x%dr"%(i-50))\n'
    )
    try:
        for _ in range(25):
            names = [e.name for e in os.scandir('d')]
            equal(sorted(n for n in names if n.startswith('keep')), keep)
            equal(len(names), len(set(names)), 'repeated names')
    finally:
        noise.kill()
        noise.wait()


def readdir_while_renaming_ends(v):
    """A listing of which each entry is renamed when it is seen shows every file once."""

    def there_and_back(name):
        os.rename(b'd/' + name, b'd/t')
        os.rename(b'd/t', b'd/' + name)

    def suffixed(name):
        os.rename(b'd/' + name, b'd/' + name + b'x')

    for count in (50, 1000):
        for rename in (there_and_back, suffixed):
            os.mkdir('d')
            for i in range(count):
                put(f'd/{i}', b'')
            stream, seen = Stream('d'), 0
            while entry := stream.next():
                if entry[0] in (b'.', b'..'):
                    continue
                seen += 1
                check(seen <= count, 'the listing goes on and on')
                rename(entry[0])
            stream.close()
            equal(seen, count)
            sh_ok('rm -r d')


def readdir_while_creating_ends(v):
    """A listing for each entry of which a file is made shows what was there and comes to an end;
    the next one, also after rewinddir, shows all."""
    for count in (100, 3000):
        os.mkdir('d')
        names = {b'%d' % i for i in range(count)}
        for name in names:
            put(b'd/' + name, b'')
        stream, seen = Stream('d'), set()
        while entry := stream.next():
            if entry[0] in (b'.', b'..'):
                continue
            check(entry[0] not in seen, f'{entry[0]} twice')
            seen.add(entry[0])
            check(len(seen) <= 2 * count, 'the listing goes on and on')
            put(b'd/' + entry[0] + b'.b', b'')
        check(names <= seen, f'{len(names - seen)} entries are missing')
        stream.rewind()
        again = set(stream.names())
        stream.close()
        equal(len(again), count + len(seen))
        equal(len(os.listdir('d')), count + len(seen))
        sh_ok('rm -r d')


def readdir_of_long_names(v):
    """Names of 255 bytes, which fill a reply to the last byte, all come."""
    for i in range(700):
        put('%0255d' % i, b'')
    equal(sorted(os.listdir('.')), ['%0255d' % i for i in range(700)])


def readdir_of_a_removed_directory(v):
    """An open directory that was removed lists as empty and takes no new entry."""
    os.mkdir('d')
    fd = os.open('d', os.O_RDONLY)
    os.rmdir('d')
    equal(os.listdir(fd), [])
    fails('ENOENT', os.open, 'x', os.O_CREAT, dir_fd=fd)
    fails('ENOENT', os.mkdir, 'x', dir_fd=fd)
    check(os.fstat(fd).st_nlink == 0, 'link count')


def readdir_entries_are_full_citizens(v):
    """A file known only from a cold listing can be changed in every way."""
    put('f', b'12345')
    v.cold()
    sh_ok('ls -l')
    os.chmod('f', 0o600)
    os.truncate('f', 3)
    put('f', b'+', 'ab')
    equal((get('f'), os.stat('f').st_mode & 0o777), (b'123+', 0o600))


def readdir_shows_own_creates_at_once(v):
    """A listing right after each create, unlink and rename is exact: no stale cached listing."""
    want = set()
    for i in range(100):
        put(f'n{i}', b'')
        want.add(f'n{i}')
        if i % 3 == 0:
            os.rename(f'n{i}', f'm{i}')
            want = want - {f'n{i}'} | {f'm{i}'}
        if i % 5 == 0:
            victim = min(want)
            os.unlink(victim)
            want.remove(victim)
        equal(set(os.listdir('.')), want, f'round {i}')


def readdir_by_parallel_removers(v):
    """Two processes that delete odd and even names of one directory leave it empty for
    everybody."""
    os.mkdir('d')
    for i in range(4000):
        put(f'd/{i}', b'')
    os.listdir('d')
    removers = [
        python('import os,sys\nfor i in range(int(sys.argv[1]),4000,2): os.unlink("d/%d"%i)', k)
        for k in (0, 1)
    ]
    for remover in removers:
        equal(remover.wait(), 0)
    equal(os.listdir('d'), [])
    os.rmdir('d')


@case(timeout=400, size='2G')
def readdir_of_100000_entries(v):
    """100 000 names list, stat and delete in linear time, the first one within a second."""
    os.mkdir('d')
    small_start = time.monotonic()
    for i in range(10_000):
        os.close(os.open(f'd/{i}', os.O_CREAT | os.O_WRONLY))
    small = time.monotonic() - small_start
    last_start = time.monotonic()
    for i in range(10_000, 100_000):
        os.close(os.open(f'd/{i}', os.O_CREAT | os.O_WRONLY))
    per_ten_thousand = (time.monotonic() - last_start) / 9
    check(
        per_ten_thousand < 4 * small + 1,
        f'creates slow down: {small:.2f} s, then {per_ten_thousand:.2f} s',
    )
    v.cold()
    start = time.monotonic()
    stream = Stream('d')
    stream.next()
    first = time.monotonic() - start
    check(first < 1, f'first entry after {first:.2f} s')
    names = stream.names()
    equal(len(set(names)), 100_000)
    check(len(names) == 100_000, 'repeated names')
    sh_ok('ls -l d | wc -l', timeout=60)
    check(time.monotonic() - start < 60, f'listing took {time.monotonic() - start:.0f} s')
    start = time.monotonic()
    sh_ok('rm -rf d', timeout=300)
    removed = time.monotonic() - start
    created = 10 * per_ten_thousand
    check(removed < 3 * created + 10, f'created in {created:.0f} s, removed in {removed:.0f} s')


def threads_list_and_create(v):
    """Several threads that list, create and delete in one directory end and agree at the end."""
    stop, errors = threading.Event(), []

    def lister():
        while not stop.is_set():
            names = os.listdir('.')
            if len(names) != len(set(names)):
                errors.append(names)

    def maker(k):
        for i in range(300):
            put(f'{k}-{i}', b'')
            if i % 2:
                os.unlink(f'{k}-{i}')

    listers = [threading.Thread(target=lister) for _ in range(2)]
    makers = [threading.Thread(target=maker, args=(k,)) for k in range(4)]
    for thread in listers + makers:
        thread.start()
    for thread in makers:
        thread.join()
    stop.set()
    for thread in listers:
        thread.join()
    equal(errors, [])
    equal(sorted(os.listdir('.')), sorted(f'{k}-{i}' for k in range(4) for i in range(0, 300, 2)))

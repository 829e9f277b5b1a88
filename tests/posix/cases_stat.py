"""kvsyncfs-stat and fsck.kvsyncfs: numbers that hold, verdicts that can be scripted."""
import json
import mmap
import os
import signal
import subprocess
import time

from support import case, check, equal, get, put, sh_ok
from volume import counter, drop_caches, freeze

NO_ANSWER = 3  # exit status: no daemon, or none that answers


def _pages(v):
    document = v.stat()
    return tuple(counter(document, name) for name in ('page_hits', 'page_misses'))


@case(mounted=True)
def stat_counts_each_page_once(v):
    """100 warm page reads are 100 hits and no miss; 100 cold ones are 100 lookups in total."""
    put('f', os.urandom(100 * 4096))
    v.cold()
    hits, misses = _pages(v)
    fd = os.open('f', os.O_RDONLY | os.O_DIRECT)
    page = mmap.mmap(-1, 4096)
    for i in range(100):
        os.preadv(fd, [page], i * 4096)
    cold_hits, cold_misses = _pages(v)
    equal(cold_hits - hits + cold_misses - misses, 100, 'lookups of 100 cold pages')
    check(cold_misses > misses, 'a cold read missed nothing')
    for i in range(100):
        os.preadv(fd, [page], i * 4096)
    equal(_pages(v), (cold_hits + 100, cold_misses), 'after 100 warm reads')


@case(mounted=True)
def stat_hit_rate_is_a_rate(v):
    """The hit rate stays between 0 and 1 through cold reads, warm reads and write-then-read."""
    put('f', os.urandom(1000 * 4096))
    get('f')
    v.cold()
    for _ in range(3):
        get('f')
        drop_caches(1)
        document = v.stat()
        rate = counter(document, 'hit_rate')
        check(rate is not None, 'no hit_rate')
        check(0 <= rate <= 1, f'hit rate {rate}')


@case(mounted=True)
def stat_counters_never_go_back(v):
    """Within the life of a daemon no counter falls, whatever happens."""
    names = (
        'page_hits',
        'page_misses',
        'read_bytes',
        'written_bytes',
        'flushes',
        'syncs',
        'segment_written_bytes',
    )
    before = v.stat()
    for i in range(5):
        put('f', os.urandom(3 << 20))
        os.sync()
        get('f')
        drop_caches()
        os.unlink('f')
        after = v.stat()
        for name in names:
            a, b = counter(before, name), counter(after, name)
            check(a is not None and b is not None, f'{name} is not shown')
            check(b >= a, f'{name}: {a}, then {b}')
        before = after
    check(counter(before, 'written_bytes') >= 15 << 20, 'written bytes are not counted')


@case(mounted=True)
def stat_text_and_refusals(v):
    """The plain form is for people; a folder that is no mount, and no argument, are refused
    loudly."""
    put('f')
    check(
        len(v.tool('kvsyncfs-stat', v.mnt, check=True).stdout.splitlines()) > 3,
        'nearly nothing shown',
    )
    for words in ([v.root], ['/nonexistent'], []):
        done = v.tool('kvsyncfs-stat', *words)
        check(0 < done.returncode < 128 and done.stderr.strip(), f'{words}: exit {done.returncode}')
    for word in ('--qp', '--model'):
        check(
            v.tool('kvsyncfs-stat', v.mnt, word, check=True).stdout.strip(), f'{word} says nothing'
        )
    equal(json.loads(v.tool('kvsyncfs-stat', v.store, '--json', check=True).stdout)['pid'], v.pid())
    cwd = v.leave()
    v.unmount()
    done = v.tool('kvsyncfs-stat', v.store)
    equal(done.returncode, NO_ANSWER, 'a store that is not mounted')
    check(v.store in done.stderr, done.stderr)
    v.mount()
    v.enter(cwd)


@case(mounted=True)
def stat_threshold_has_an_exit_code(v):
    """--hit-rate --threshold tells by its exit status whether the rate is reached."""
    put('f', os.urandom(400 * 4096))
    v.cold()
    fd = os.open('f', os.O_RDONLY | os.O_DIRECT)
    page = mmap.mmap(-1, 4096)
    for i in range(0, 400):
        os.preadv(fd, [page], (i * 37 % 400) * 4096)
    equal(v.tool('kvsyncfs-stat', v.mnt, '--hit-rate', '--threshold=0%').returncode, 0)
    check(
        v.tool('kvsyncfs-stat', v.mnt, '--hit-rate', '--threshold=100%').returncode != 0,
        '100 % after misses',
    )
    check(
        v.tool('kvsyncfs-stat', v.mnt, '--hit-rate', '--threshold=nonsense').returncode != 0,
        'nonsense taken',
    )


@case(mounted=True)
def stat_watch_repeats(v):
    """--watch shows a new sample each period until it is stopped."""
    out = sh_ok(f'timeout -s INT 3 {v.tools["kvsyncfs-stat"]} {v.mnt} --json --watch 1 || true')
    check(out.count('{') >= 2, f'one sample only: {out[:200]}')


@case(mounted=True)
def stat_watch_ends_with_the_daemon(v):
    """--watch ends with 0 by a signal and with 3 when the daemon goes away."""
    words = [v.tools['kvsyncfs-stat'], v.mnt, '--json', '--watch', '0.1']
    for number in (signal.SIGINT, signal.SIGTERM):
        with subprocess.Popen(words, stdout=subprocess.PIPE, cwd='/') as watching:
            check(watching.stdout.readline(), 'no first answer')
            watching.send_signal(number)
            equal(watching.wait(10), 0, number.name)
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd='/'
    ) as watching:
        check(watching.stdout.readline(), 'no first answer')
        cwd = v.leave()
        v.unmount()
        errors = watching.communicate(timeout=20)[1]
        equal(watching.returncode, NO_ANSWER)
        check(v.mnt.encode() in errors, errors)
    v.mount()
    v.enter(cwd)


@case(mounted=True)
def stat_of_a_stopped_daemon_does_not_hang(v):
    """A daemon that does not answer costs 5 s and an error, never a hang."""
    freeze(v.pid())
    try:
        for target in (v.mnt + '/t', v.store):
            begin = time.monotonic()
            done = v.tool('kvsyncfs-stat', target, cwd='/')
            took = time.monotonic() - begin
            equal(done.returncode, NO_ANSWER, target)
            check(4 < took < 9 and 'ETIMEDOUT' in done.stderr, f'{took} s: {done.stderr}')
    finally:
        os.kill(v.pid(), signal.SIGCONT)
    v.stat()


@case(mounted=True, mount=False)
def stat_of_a_dead_daemon_is_not_another_ones(v):
    """What a killed daemon left behind never leads to the counters of another store."""
    v.format()
    v.mount()
    v.kill9()
    for target in (v.mnt, v.store):
        done = v.tool('kvsyncfs-stat', target)
        equal(done.returncode, NO_ANSWER, target)
        check(target in done.stderr, done.stderr)
    v.detach()
    other = v.root + '/other'
    v.tool('mkfs.kvsyncfs', other, '--size', '256M', check=True)
    v.tool('kvsyncfs', other, v.mnt, check=True)  # gets the same device number
    equal(json.loads(v.tool('kvsyncfs-stat', other, '--json', check=True).stdout)['store'], other)
    equal(v.tool('kvsyncfs-stat', v.store).returncode, NO_ANSWER)
    v.unmount()


@case(mounted=True)
def stat_does_not_disturb(v):
    """Asking in a loop while files are written neither fails nor harms."""
    for i in range(30):
        put(f'f{i}', os.urandom(300_000))
        v.stat()
    equal(len(os.listdir('.')), 30)


@case(mounted=True)
def fsck_of_a_mounted_store_is_refused(v):
    """fsck of a store in use changes nothing and ends with an error that says so."""
    put('f', b'data')
    done = v.fsck(check=False)
    check(
        done.returncode & 0b11111000 and done.stderr.strip(),
        f'exit {done.returncode}: {done.stderr!r}',
    )
    equal(get('f'), b'data')


@case(mounted=True, mount=False, check=False)
def fsck_exit_codes(v):
    """0 for a clean store, 8 or 16 for what is no store or no usage, and 0 again right after kill
    -9."""
    v.format()
    equal(v.fsck(check=False).returncode, 0, 'new store')
    v.mount()
    sh_ok(f'cp -a /usr/include/linux {v.mnt}/; sync')
    v.kill9()
    done = v.fsck(check=False)
    equal(done.returncode, 0, f'after kill -9: {done.stdout[-300:]}{done.stderr[-300:]}')
    equal(v.fsck('--scrub', check=False).returncode, 0, 'scrub')
    equal(v.fsck('--repair', check=False).returncode, 0, 'repair of a clean store')
    empty = v.root + '/empty'
    os.mkdir(empty)
    done = v.tool('fsck.kvsyncfs', empty)
    check(
        done.returncode in (8, 16) and empty in done.stderr,
        f'no store: {done.returncode} {done.stderr!r}',
    )
    check(v.tool('fsck.kvsyncfs').returncode in (8, 16), 'no argument')
    check(v.tool('fsck.kvsyncfs', v.store, '--nonsense').returncode in (8, 16), 'unknown option')


@case(mounted=True, mount=False, check=False, timeout=120)
def fsck_sees_lost_segments(v):
    """A segment file that is gone is found, and the good files stay readable after --repair."""
    v.format()
    v.mount()
    put(v.mnt + '/f', os.urandom(100 << 20))
    v.unmount()
    segments = sorted(
        os.listdir(v.store + '/segments'),
        key=lambda n: os.stat(f'{v.store}/segments/{n}').st_blocks,
    )
    os.unlink(f'{v.store}/segments/{segments[-1]}')
    done = v.fsck(check=False)
    check(done.returncode & 4, f'exit {done.returncode}: {done.stdout[-300:]}')
    done = v.fsck('--repair', check=False)
    check(0 <= done.returncode < 16, f'repair: exit {done.returncode}: {done.stderr[-300:]}')
    v.mount()
    put(v.mnt + '/new', b'n')
    equal(get(v.mnt + '/new'), b'n')
    v.unmount()

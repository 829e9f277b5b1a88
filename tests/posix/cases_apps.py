"""Programs that people run: SQLite, editors, git, tar, rsync, compilers, make, PostgreSQL."""
import ctypes
import os
import struct

from support import (
    LIBC,
    NOBODY,
    as_user,
    case,
    check,
    equal,
    fails,
    get,
    mode_of,
    needs,
    put,
    sh,
    sh_ok,
)


def sqlite_parallel_writers(v):
    """Three writers, with a rollback journal and with WAL: integrity ok and no insert lost."""
    needs('sqlite3')
    for mode in ('delete', 'wal'):
        out = sh_ok(
            'sqlite3 %(m)s.db "pragma journal_mode=%(m)s; create table t(x)" >/dev/null\nfor k in 1'
            ' 2 3; do (for i in $(seq 60); do sqlite3 -cmd ".timeout 20000" %(m)s.db "insert into t'
            ' values(1)" || echo E; done)& done; wait\nsqlite3 %(m)s.db "pragma integrity_check;'
            ' select count(*) from t"' % {'m': mode},
            timeout=60,
        )
        equal(out.split(), ['ok', '180'], mode)


@case(mounted=True)
def sqlite_committed_rows_survive_kill(v):
    """Rows of a committed transaction are there, and the database whole, after kill -9 of the
    daemon."""
    needs('sqlite3')
    for mode in ('delete', 'wal'):
        sh_ok(
            f'sqlite3 {mode}.db "pragma journal_mode={mode}; pragma synchronous=full; create table'
            ' t(x);' + ''.join(f'insert into t values({i});' for i in range(30)) + '"'
        )
    v.crash()
    for mode in ('delete', 'wal'):
        equal(
            sh_ok(f'sqlite3 {mode}.db "pragma integrity_check; select count(*) from t"').split(),
            ['ok', '30'],
            mode,
        )


def vim_saves_in_place(v):
    """An editor's save keeps mode and owner, leaves no litter and holds the new text."""
    needs('vim')
    put('f', b'line\n')
    os.chmod('f', 0o640)
    out = sh_ok("vim -u NONE -es -c 'normal Ohello' -c wq f </dev/null; ls -A; stat -c %a f; cat f")
    equal(out.split(), ['f', '640', 'hello', 'line'])
    sh_ok("sed -i 's/hello/world/' f")
    equal((get('f'), mode_of('f'), os.listdir('.')), (b'world\nline\n', 0o640, ['f']))


def folder_fsync_succeeds(v):
    """fsync and fdatasync of a folder succeed (databases refuse to run otherwise), so do sync and
    syncfs."""
    fd = os.open('.', os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.fdatasync(fd)
    equal(LIBC.syncfs(fd), 0)
    put('f', b'x' * 10_000)
    fd = os.open('f', os.O_RDWR)
    check(LIBC.sync_file_range(fd, ctypes.c_int64(0), ctypes.c_int64(0), 7) in (0, -1))
    sh_ok('sync f . && sync -f f && dd if=f of=g conv=fsync oflag=dsync status=none && cmp f g')


def git_works(v):
    """init, commit, clone, status, gc, checkout and fsck of a repository with a few hundred
    files."""
    needs('git')
    sh_ok(
        '''export HOME=$PWD GIT_CONFIG_NOSYSTEM=1
        git config --global user.email a@b; git config --global user.name n
        git config --global init.defaultBranch main
        git init -q r; cd r; mkdir a b
        for i in $(seq 200); do echo "file $i" > a/$i; echo "other $i" > b/$i; done
        git add .; git commit -qm one; sed -i s/file/line/ a/*; git commit -qam two
        cd ..; git clone -q r c; cd c; test -z "$(git status --porcelain)"
        git checkout -q HEAD~1; grep -q file a/7; git checkout -q main; grep -q line a/7
        git gc -q --prune=now; git fsck --strict; test -z "$(git status --porcelain)"'''
    )
    v.cold()
    sh_ok('export HOME=$PWD; cd c; git fsck --strict; test -z "$(git status --porcelain)"')


def tree_is_copied_exactly(v):
    """A real tree copied by cp -a, tar and rsync is equal in names, bytes, modes, links and
    times."""
    source = '/usr/include/linux'
    sh_ok(f'cp -a {source} cp && diff -r --no-dereference {source} cp')
    sh_ok(
        f'mkdir tar && tar -C {source} -cf - . | tar -C tar -xpf - && diff -r --no-dereference'
        f' {source} tar'
    )
    if sh('command -v rsync').returncode == 0:
        sh_ok(
            f'rsync -a {source}/ rsync && diff -r {source} rsync && '
            f'test -z "$(rsync -ani --delete {source}/ rsync)"'
        )
    listing = "find . -printf '%P %y %m %U %G %T@ %l\\n' | sort"
    want = sh_ok(listing, cwd=source)
    v.cold()
    for name in ('cp', 'tar'):
        sh_ok(f'diff -r --no-dereference {source} {name}')
        if name == 'cp':
            equal(sh_ok(listing, cwd=name), want, name)
    sh_ok('rm -rf cp tar rsync')


def rsync_in_place(v):
    """rsync --inplace of a changed, shorter file gives the exact bytes in the same inode."""
    needs('rsync')
    data = bytearray(os.urandom(3 << 20))
    source = v.root + '/source'
    put(source, data)
    sh_ok(f'cp -p {source} f; ln f g; touch -d 2001-01-01 f')
    inode = os.stat('f').st_ino
    data[1_000_000:1_000_100] = bytes(100)
    del data[-12_345:]
    put(source, data)
    sh_ok(f'rsync --inplace --no-whole-file --checksum {source} f')
    equal((get('f'), get('g'), os.stat('f').st_ino), (bytes(data), bytes(data), inode))


def compile_and_make(v):
    """A compiler, a linker, ar and make work on the volume and make rebuilds nothing that is
    fresh."""
    needs('cc', 'make', 'ar')
    put('a.c', b'int answer(void) { return 42; }\n')
    put('m.c', b'int answer(void);\nint main(void) { return answer() - 42; }\n')
    put(
        'Makefile',
        b'm: m.o a.a\n\tcc -o m m.o a.a\na.a: a.o\n\tar rcs a.a a.o\n%.o: %.c\n\tcc -c -o $@ $<\n',
    )
    sh_ok('make -s && ./m && make -q')
    v.cold()
    sh_ok('./m && make -q && touch a.c && make -s && ./m')


def shell_idioms(v):
    """What scripts do: redirections, here documents, flock(1), mktemp, find -delete, install,
    split, sort."""
    sh_ok(
        '''set -e
        for i in $(seq 300); do echo $i >> log; done; test $(wc -l < log) = 300
        t=$(mktemp ./XXXXXX); seq 100000 | sort -R -T . | sort -n -T . > $t; seq 100000 | cmp - $t
        (flock -x 9; echo in) 9> lock; install -m 755 $t inst; test "$(stat -c %a inst)" = 755
        split -b 10000 $t part.; cat part.* | cmp - $t
        truncate -s 100M sparse; test $(du -k sparse | cut -f1) -lt 100
        mkdir -p x/y/z; touch x/y/z/f x/g; find x -type f -delete
        find x -type d -empty -delete; test ! -e x
        yes | head -c 3000000 > y; gzip -k y; gunzip -c y.gz | cmp - y
        md5sum y > sums; md5sum -c --quiet sums'''
    )


def inotify_tells_local_changes(v):
    """inotify reports what processes of this machine do."""
    fd = LIBC.inotify_init1(0o4000)
    check(fd >= 0 and LIBC.inotify_add_watch(fd, b'.', 0xFFF) >= 0)
    put('f', b'x')
    os.rename('f', 'g')
    os.unlink('g')
    events, data, at = set(), os.read(fd, 65536), 0
    while at < len(data):
        _, mask, _, length = struct.unpack_from('iIII', data, at)
        events.add((mask & 0xFFF, data[at + 16 : at + 16 + length].rstrip(b'\0')))
        at += 16 + length
    for want in ((0x100, b'f'), (0x40, b'f'), (0x80, b'g'), (0x200, b'g')):
        check(want in events, f'{want} is not among {events}')
    os.close(fd)


@case(mounted=True, timeout=180)
def postgresql_recovers(v):
    """PostgreSQL initialises, runs transactions, and recovers after the daemon was killed under
    it."""
    binaries = sh('ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1').stdout.strip()
    if not binaries:
        needs('initdb', 'pg_ctl')
    os.environ['PATH'] = binaries + ':' + os.environ['PATH']
    os.mkdir('pg')
    os.chmod('.', 0o755)
    os.chown('pg', NOBODY, NOBODY)
    control = f'pg_ctl -w -t 30 -D pg -l pg.log -o "-k {v.root}/sock -h \'\'"'
    os.mkdir(v.root + '/sock', 0o777)
    os.chmod(v.root + '/sock', 0o777)
    os.chmod(v.root, 0o755)
    put('pg.log', b'')
    os.chmod('pg.log', 0o666)
    sql = f'psql -h {v.root}/sock -U u -d postgres -Atc'
    as_user(lambda: sh_ok('initdb -A trust -U u -D pg', timeout=60))
    as_user(lambda: sh_ok(control + ' start >/dev/null 2>&1', timeout=60))
    as_user(
        lambda: sh_ok(f'{sql} "create table t as select generate_series(1,20000) i; checkpoint"')
    )
    as_user(lambda: sh_ok(f'for k in $(seq 40); do {sql} "insert into t values(-1)"; done'))
    sh('kill -9 $(head -1 pg/postmaster.pid)')
    v.crash()
    sh('rm -f pg/postmaster.pid')
    as_user(lambda: sh_ok(control + ' start >/dev/null 2>&1', timeout=60))
    rows = sh(
        f'setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups {sql} "select count(*) from t"'
    ).stdout.strip()
    as_user(lambda: sh_ok(control + ' -m fast stop >/dev/null 2>&1', timeout=60))
    equal(rows, '20040')


def unsupported_calls_are_refused(v):
    """O_TMPFILE, swapon and name_to_handle work or say that they are not supported."""
    got = ''
    try:
        os.close(os.open('.', os.O_TMPFILE | os.O_RDWR))
    except OSError as error:
        got = error.strerror
    check(got in ('', 'Operation not supported', 'Is a directory'), got)
    put('swap', bytes(1 << 20))
    fails('EINVAL EOPNOTSUPP EPERM', _swapon)


def _swapon():
    if LIBC.swapon(b'swap', 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    LIBC.swapoff(b'swap')

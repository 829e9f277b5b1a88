"""A private store and its mount, driven only through the command line tools.

Everything a Volume makes lies below its root folder, and destroy() takes it all away again, also
when the daemon hangs, was killed, or left a dead mount behind. Processes are found through /proc
and ended by pid.
"""
import glob
import json
import os
import shutil
import signal
import subprocess
import time

SANITIZERS = ('ASAN_OPTIONS', 'LSAN_OPTIONS', 'TSAN_OPTIONS', 'UBSAN_OPTIONS')
GIVEN = {name: os.environ.get(name) for name in SANITIZERS}
TOOLS = ('kvsyncfs', 'mkfs.kvsyncfs', 'fsck.kvsyncfs', 'kvsyncfs-stat', 'kvsyncfs-ctl')
TOOLS += ('umount.fuse.kvsyncfs',)
FOLDERS = ('', 'fs', 'mkfs', 'tools', 'bin', 'sbin')
OPTIONS = 'allow_other,default_permissions'


def end_in_order():
    """SIGTERM and SIGINT become SystemExit, so that what was mounted is taken away."""

    def leave(number, _):
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, leave)


def sanitizer_options(name, root):
    """The environment's, and those that a daemon needs: it has no stderr, so what a sanitizer
    reports goes to files in `root`."""
    own = [GIVEN[name], f'log_path={root}/sanitizer']
    here = os.path.dirname(os.path.abspath(__file__))
    if name == 'LSAN_OPTIONS':
        own += [f'suppressions={here}/lsan.supp', 'print_suppressions=0']
    if name == 'TSAN_OPTIONS':
        # libfuse cancels its threads while they read, and one that ends in a call that the
        # sanitizer ignores is taken for a fault. A flush of many files holds more locks than the
        # search for cycles of locks can follow. Who waits for its end waits for no race to show.
        own += ['ignore_noninstrumented_modules=0', f'suppressions={here}/tsan.supp']
        own += ['detect_deadlocks=0', 'atexit_sleep_ms=0']
    return ':'.join(filter(None, own))


class CommandFailed(AssertionError):
    pass


def find_tools(build):
    """Paths of the product's programs in a build folder or an install prefix."""
    tools = {}
    for name in TOOLS:
        for folder in FOLDERS:
            path = os.path.join(build, folder, name)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                tools[name] = path
                break
    return tools


def mount_line(path):
    """Fields of /proc/self/mountinfo for the topmost mount on `path`, or None. Never touches the
    mount."""
    found = None
    with open('/proc/self/mountinfo', encoding='utf-8', errors='surrogateescape') as lines:
        for line in lines:
            fields = line.split(' ')
            if fields[4].encode().decode('unicode_escape') == path:
                found = fields
    return found


def mounts_below(folder):
    """Mount points in `folder`, the newest first."""
    with open('/proc/self/mountinfo', encoding='utf-8', errors='surrogateescape') as lines:
        points = [line.split(' ')[4].encode().decode('unicode_escape') for line in lines]
    return [point for point in reversed(points) if point.startswith(folder + '/')]


def process_alive(pid):
    """Whether a thread of it is left: while one is, its descriptors and locks are held."""
    try:
        with open(f'/proc/{pid}/stat', 'rb') as stat:
            state = stat.read().rpartition(b')')[2].split()[0]
        return state not in (b'Z', b'X') or len(os.listdir(f'/proc/{pid}/task')) > 1
    except OSError:
        return False


def parent_of(pid):
    try:
        with open(f'/proc/{pid}/stat', 'rb') as stat:
            return int(stat.read().rpartition(b')')[2].split()[1])
    except OSError:
        return 0


def wait_until(condition, seconds, what):
    """Polls an outside event (a process, a mount) that offers nothing to wait on."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f'{what}: not within {seconds} s')
        time.sleep(0.005)


def _stands_still(pid):
    for thread in os.listdir(f'/proc/{pid}/task'):
        with open(f'/proc/{pid}/task/{thread}/stat', 'rb') as stat:
            if stat.read().rpartition(b')')[2].split()[0] != b'T':
                return False
    return True


def freeze(pid):
    """Returns when each of its threads stands still: one may run on for a moment after SIGSTOP."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: _stands_still(pid), 10, f'process {pid} stands still')


def drop_caches(which=3):
    os.sync()
    with open('/proc/sys/vm/drop_caches', 'w', encoding='ascii') as knob:
        knob.write(str(which))


class Volume:
    def __init__(self, build, root, size='1G', options=OPTIONS, plain=False):
        self.build, self.size, self.options, self.plain = build, size, options, plain
        self.root = os.path.realpath(root)
        self.store = os.path.join(self.root, 'store')
        self.mnt = os.path.join(self.root, 'mnt')
        os.makedirs(self.mnt)
        if not plain:
            os.makedirs(self.store)
        self.tools = {} if plain else find_tools(build)
        self.prefix = []  # words before each program, which may run it elsewhere
        for name in SANITIZERS:
            os.environ[name] = sanitizer_options(name, self.root)

    def sanitizer_reports(self):
        """What sanitizers reported of the product's programs."""
        reports = []
        for path in sorted(glob.glob(os.path.join(self.root, 'sanitizer.*'))):
            with open(path, encoding='utf-8', errors='replace') as report:
                reports.append(report.read())
        return reports

    # --- programs
    # -----------------------------------------------------------------------------------

    def tool(self, name, *args, timeout=60, check=False, **kwargs):
        """Runs one of the product's programs; stdout and stderr as text."""
        done = subprocess.run(
            [*self.prefix, self.tools.get(name, name), *args],
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            stdin=subprocess.DEVNULL,
            **kwargs,
        )
        if check and done.returncode != 0:
            raise CommandFailed(
                f'{name} {" ".join(args)}: exit {done.returncode}: '
                f'{done.stdout.strip()} {done.stderr.strip()}'
            )
        return done

    def format(self, *args, size=None):
        return self.tool(
            'mkfs.kvsyncfs', self.store, '--size', size or self.size, *args, check=True
        )

    def mount(self, options=None, *args, check=True, **kwargs):
        options = self.options if options is None else options
        words = [self.store, self.mnt] + (['-o', options] if options else []) + list(args)
        return self.tool('kvsyncfs', *words, check=check, **kwargs)

    def unmount(self, check=True):
        """The orderly way: barrier, unmount, wait for the daemon's end."""
        done = self.tool('umount.fuse.kvsyncfs', self.mnt, check=check)
        if check:
            assert not self.mounted(), 'still mounted after umount.fuse.kvsyncfs returned 0'
            if 'still mounted elsewhere' in done.stderr:
                # Another case's new mount namespace has not yet dropped its copy of this mount.
                wait_until(lambda: self.pid() is None, 60, 'end of a mount that was elsewhere')
            assert self.pid() is None, 'the daemon still runs after umount.fuse.kvsyncfs returned 0'
        return done

    def fsck(self, *args, check=True):
        return self.tool('fsck.kvsyncfs', self.store, *args, check=check, timeout=300)

    def stat(self, target=None):
        """kvsyncfs-stat --json as a document."""
        return json.loads(
            self.tool('kvsyncfs-stat', target or self.mnt, '--json', check=True).stdout
        )

    # --- state
    # --------------------------------------------------------------------------------------

    def mounted(self):
        return mount_line(self.mnt) is not None

    def pids(self):
        """Daemons that serve this volume (their command line names its store)."""
        found = []
        daemon = os.path.basename(self.tools.get('kvsyncfs', 'kvsyncfs'))
        for entry in os.listdir('/proc'):
            if entry.isdigit() and process_alive(int(entry)):
                try:
                    with open(f'/proc/{entry}/cmdline', 'rb') as words:
                        argv = words.read().decode(errors='surrogateescape').split('\0')
                except OSError:
                    continue
                if os.path.basename(argv[0]) == daemon and self.store in argv:
                    found.append(int(entry))
        return found

    def pid(self):
        """The daemon itself, not a process that it keeps beside it."""
        pids = self.pids()
        own = [pid for pid in pids if parent_of(pid) not in pids]
        return own[-1] if own else None

    def connection(self):
        """The kernel's control folder of this FUSE connection."""
        line = mount_line(self.mnt)
        if line is None or ' - fuse' not in ' '.join(line):
            return None
        if not os.listdir('/sys/fs/fuse/connections'):
            subprocess.run(
                ['mount', '-t', 'fusectl', 'none', '/sys/fs/fuse/connections'], check=False
            )
        return '/sys/fs/fuse/connections/' + line[2].split(':')[1]

    # --- events
    # -------------------------------------------------------------------------------------

    def kill9(self):
        """The daemon dies at once; its dead mount is detached."""
        pid = self.pid()
        assert pid is not None, 'no daemon to kill'
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not process_alive(pid), 20, 'end of a killed daemon')
        self.detach()

    def detach(self):
        while self.mounted():
            subprocess.run(['umount', '-l', '-i', self.mnt], check=False, stderr=subprocess.DEVNULL)

    def close_handles(self):
        """Closes what this process still has open on the mount; it would be busy otherwise."""
        for name in os.listdir('/proc/self/fd'):
            try:
                if os.readlink(f'/proc/self/fd/{name}').startswith(self.mnt):
                    os.close(int(name))
            except OSError:
                pass

    def crash(self, options=None):
        cwd = self.leave()
        self.kill9()
        self.mount(options)
        self.enter(cwd)

    def cold(self, options=None):
        """Orderly unmount and a new daemon: no byte of the volume is left in any memory."""
        if self.plain:
            drop_caches()
            return
        cwd = self.leave()
        self.close_handles()
        self.unmount()  # with the mount all of its pages are gone, and the daemon reads past any
        self.mount(options)
        self.enter(cwd)

    def leave(self):
        try:
            cwd = os.getcwd()
        except OSError:
            cwd = self.mnt
        os.chdir('/')
        return cwd

    @staticmethod
    def enter(cwd):
        os.chdir(cwd)

    # --- the end
    # ------------------------------------------------------------------------------------

    def destroy(self, keep=False):
        os.chdir('/')
        if not self.plain:
            self.abort()
        if not keep:
            shutil.rmtree(self.root, ignore_errors=True)

    def abort(self):
        """Ends whatever is left, in whatever state it is."""
        for pid in self.pids():
            try:
                os.kill(pid, signal.SIGKILL)
                os.kill(pid, signal.SIGCONT)
            except OSError:
                pass
        connection = self.connection()
        if connection and os.path.exists(connection + '/abort'):
            with open(connection + '/abort', 'w', encoding='ascii') as knob:
                knob.write('1')
        self.detach()
        for point in mounts_below(self.root):
            subprocess.run(['umount', '-l', '-i', point], check=False, stderr=subprocess.DEVNULL)
        for pid in self.pids():
            wait_until(lambda p=pid: not process_alive(p), 20, 'end of a killed daemon')


def counter(document, name):
    """The number called `name`, at any depth of a kvsyncfs-stat document."""
    if isinstance(document, dict):
        if isinstance(document.get(name), (int, float)):
            return document[name]
        document = list(document.values())
    if isinstance(document, list):
        for part in document:
            value = counter(part, name) if isinstance(part, (dict, list)) else None
            if value is not None:
                return value
    return None

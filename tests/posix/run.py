#!/usr/bin/env python3
"""Runs the conformance cases on a real mount, each on a store and a mount of its own.

usage: run.py --build DIR [--work DIR] [--list] [--keep] [CASE ...]
       run.py --plain DIR [CASE ...]      the same rules on a plain folder (proves the cases)

A case is a function `name(v)` of a cases_*.py file; its docstring is the rule it holds the
product to.
Exit status: 0 all passed, 1 a case failed, 77 every case was skipped.
"""
import argparse
import ctypes
import glob
import importlib
import inspect
import os
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), 'lib')]
sys.dont_write_bytecode = True

from support import Skip  # noqa: E402
from volume import (
    OPTIONS,
    Volume,
    end_in_order,
    find_tools,
    process_alive,
    wait_until,
)  # noqa: E402

SKIPPED = 77
PR_SET_CHILD_SUBREAPER = 36


def discover():
    cases = {}
    for path in sorted(glob.glob(os.path.join(HERE, 'cases_*.py'))):
        module = importlib.import_module(os.path.basename(path)[:-3])
        for name, function in vars(module).items():
            if not inspect.isfunction(function) or function.__module__ != module.__name__:
                continue
            if list(inspect.signature(function).parameters) == ['v'] and not name.startswith('_'):
                assert function.__doc__, f'{name} does not name its rule'
                assert name not in cases, f'{name} exists twice'
                cases[name] = function
    return cases


def setting(function, name, default):
    return getattr(function, 'settings', {}).get(name, default)


def run_inside(function, volume):
    """The child: the case itself, in its private folder. Never returns."""
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    code = 1
    try:
        os.umask(0o022)
        if setting(function, 'mount', True):
            os.mkdir(os.path.join(volume.mnt, 't'))
            os.chdir(os.path.join(volume.mnt, 't'))
        else:
            os.chdir(volume.root)
        function(volume)
        code = 0
    except Skip as reason:
        print(f'  skipped: {reason}')
        code = SKIPPED
    except BaseException as error:  # pylint: disable=broad-except
        frames = traceback.extract_tb(error.__traceback__)
        where = [f for f in frames if 'cases_' in f.filename] or frames
        print(f'  {os.path.basename(where[-1].filename)}:{where[-1].lineno}: {where[-1].line}')
        print(f'  {type(error).__name__}: {str(error)[:2000]}')
    sys.stdout.flush()
    os._exit(code)


def children():
    with open(f'/proc/self/task/{os.getpid()}/children', encoding='ascii') as pids:
        return [int(pid) for pid in pids.read().split()]


def reap(root):
    """Collects ended processes; the exit status of a daemon is left where a case can read it."""
    ended = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended[pid] = status
        unfinished = os.path.join(root, 'note')
        with open(unfinished, 'w', encoding='ascii') as note:
            note.write(str(os.waitstatus_to_exitcode(status)))
        os.rename(unfinished, os.path.join(root, f'exit.{pid}'))  # a case waits for this name


def wait_case(child, root, seconds, pipe):
    """Exit code of the child, None after a time-out. SIGCHLD wakes through `pipe`."""
    end = time.monotonic() + seconds
    while True:
        ended = reap(root)
        if child in ended:
            return os.waitstatus_to_exitcode(ended[child])
        left = end - time.monotonic()
        if left <= 0:
            return None
        if select.select([pipe], [], [], left)[0]:
            os.read(pipe, 4096)


def ended_daemons(volume):
    """What became of the daemons that ended; a case whose daemon died by a signal says so."""
    notes = []
    for path in glob.glob(os.path.join(volume.root, 'exit.*')):
        with open(path, encoding='ascii') as note:
            status = int(note.read())
        if status in (-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS):
            notes.append(f'process {path.rpartition(".")[2]} died by signal {-status}')
    return notes


def kill_leftovers(volume):
    """Ends every process that a case left behind; daemons of the volume are not among them."""
    daemons = set(volume.pids())
    for pid in children():
        if pid not in daemons:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass


def finish(function, volume):
    """After a passed case: the mount ends in order and the store is clean. Returns the
    complaint."""
    if volume.plain or not setting(function, 'check', True):
        return None
    try:
        if volume.mounted():
            daemon = volume.pid()
            volume.unmount()
            if daemon in children() or os.path.exists(os.path.join(volume.root, f'exit.{daemon}')):
                wait_until(lambda: not process_alive(daemon), 10, 'end of the daemon')
                reap(volume.root)
                with open(os.path.join(volume.root, f'exit.{daemon}'), encoding='ascii') as note:
                    status = note.read()
                if status != '0':
                    return f'the daemon ended with status {status}'
        if 'fsck.kvsyncfs' in volume.tools:
            done = volume.fsck(check=False)
            if done.returncode != 0:
                return (
                    f'fsck.kvsyncfs: exit {done.returncode}:'
                    f' {done.stdout[-800:]} {done.stderr[-400:]}'
                )
    except Exception as error:  # pylint: disable=broad-except
        return f'unmount at the end: {error}'
    return None


def run_case(name, function, args, pipe):
    root = tempfile.mkdtemp(prefix=name + '.', dir=args.work)
    os.chmod(root, 0o755)
    volume = Volume(
        args.build,
        os.path.join(root, 'v'),
        size=setting(function, 'size', '1G'),
        options=','.join(filter(None, [OPTIONS, setting(function, 'options', '')])),
        plain=bool(args.plain),
    )
    started = time.monotonic()
    code, complaint = 1, None
    try:
        if volume.plain and setting(function, 'mounted', False):
            print('  skipped: only on a mount')
            code = SKIPPED
        else:
            if not volume.plain and setting(function, 'mount', True):
                volume.format()
                volume.mount()
            sys.stdout.flush()
            child = os.fork()
            if child == 0:
                run_inside(function, volume)
            code = wait_case(child, volume.root, setting(function, 'timeout', 60), pipe)
            if code is None:
                complaint, code = 'time-out', 1
            elif code < 0:
                complaint = f'died by signal {-code}'
            for note in ended_daemons(volume):
                print('  ' + note)
            kill_leftovers(volume)
            if code == 0:
                complaint = finish(function, volume)
    except Exception as error:  # pylint: disable=broad-except
        complaint = f'{type(error).__name__}: {error}'
    finally:
        kill_leftovers(volume)
        for report in volume.sanitizer_reports():
            print(report)
            complaint = complaint or 'a sanitizer reported'
        volume.destroy(keep=args.keep)
        reap(volume.root if args.keep else args.work)
        for note in glob.glob(os.path.join(args.work, 'exit.*')):
            os.unlink(note)
        if not args.keep:
            shutil.rmtree(root, ignore_errors=True)
    if complaint:
        print('  ' + complaint)
        code = 1
    word = {0: 'PASS', SKIPPED: 'SKIP'}.get(code, 'FAIL')
    print(f'{word} {name} {time.monotonic() - started:.2f} s', flush=True)
    return word


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('--build', default='')
    parser.add_argument('--plain', default='')
    parser.add_argument('--work', default='')
    parser.add_argument('--list', action='store_true')
    parser.add_argument('--keep', action='store_true')
    parser.add_argument('cases', nargs='*')
    args = parser.parse_args()
    cases = discover()
    if args.list:
        for name, function in cases.items():
            print(f'{name:44} {function.__doc__.strip().splitlines()[0]}')
        return 0
    unknown = [name for name in args.cases if name not in cases]
    if unknown:
        parser.error('no such case: ' + ' '.join(unknown))
    if not args.plain and 'kvsyncfs' not in find_tools(args.build):
        parser.error(f'{args.build or "(no --build)"}: kvsyncfs is not built there')
    if os.geteuid() != 0 or not (args.plain or os.path.exists('/dev/fuse')):
        print('skipped: needs root and /dev/fuse')
        return SKIPPED
    args.work = args.plain or args.work or os.path.join(args.build, 'posix-work')
    args.work = os.path.abspath(args.work)
    args.build = os.path.abspath(args.build) if args.build else ''
    os.makedirs(args.work, exist_ok=True)
    os.environ['TZ'] = 'UTC'
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    pipe, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    end_in_order()
    signal.set_wakeup_fd(wake)
    words = [run_case(name, cases[name], args, pipe) for name in (args.cases or cases)]
    print(
        f'{words.count("PASS")} passed, {words.count("FAIL")} failed, {words.count("SKIP")} skipped'
    )
    if 'FAIL' in words:
        return 1
    return SKIPPED if set(words) == {'SKIP'} else 0


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/env python3
"""Runs cases over several nodes: real daemons, real etcd, a network that can be cut.

usage: run.py --build DIR [--work DIR] [--list] [--keep] [--seed N] [--more N] [CASE ...]
       run.py --plain [CASE ...]          the same rules on one plain folder (proves the cases)

A case is a function `name(c)` of a cases_*.py file; its docstring is the rule it holds the
product to. It runs in namespaces of its own, which take along whatever it started.
Not tried: a wall clock that is another one's (a namespace has none of its own;
the simulation has), RDMA.
Exit status: 0 all passed, 1 a case failed, 77 every case was skipped.
"""
import argparse
import glob
import importlib
import inspect
import os
import shutil
import sys
import tempfile
import time
import traceback
from types import SimpleNamespace

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, *(os.path.join(TESTS, folder) for folder in ('posix', 'lib', 'crash'))]
sys.dont_write_bytecode = True

from cluster import Cluster, PlainCluster  # noqa: E402
from namespaces import run_apart  # noqa: E402
from support import Skip  # noqa: E402
from volume import end_in_order, find_tools  # noqa: E402

SKIPPED = 77
LOG_LINES = 25


def discover():
    cases = {}
    for path in sorted(glob.glob(os.path.join(HERE, 'cases_*.py'))):
        module = importlib.import_module(os.path.basename(path)[:-3])
        for name, function in vars(module).items():
            if (
                not name.startswith('_')
                and inspect.isfunction(function)
                and function.__module__ == module.__name__
                and list(inspect.signature(function).parameters) == ['c']
            ):
                assert function.__doc__, f'{name} does not name its rule'
                assert name not in cases, f'{name} exists twice'
                cases[name] = function
    return cases


def make_world(function, args):
    """What a case gets: by its settings a cluster, one plain folder, or only a place to work in."""
    settings = dict(getattr(function, 'settings', {}))
    for key in ('timeout', 'plain'):
        settings.pop(key, None)
    if not settings.pop('cluster', True):
        world = SimpleNamespace(root=args.inside, build=args.build, nodes=[], finish=lambda: None)
    elif args.plain:
        world = PlainCluster(args.inside, settings.get('nodes', 3))
    else:
        world = Cluster(args.build, args.inside, **settings)
    world.seed, world.more = args.seed, args.more
    return world


def run_inside(function, args):
    """In the case's own namespaces: the case itself."""
    os.umask(0o022)
    os.chdir(args.inside)
    try:
        world = make_world(function, args)
        function(world)
        world.finish()
        return 0
    except Skip as reason:
        print(f'  skipped: {reason}')
        return SKIPPED
    except BaseException as error:  # pylint: disable=broad-except
        frames = traceback.extract_tb(error.__traceback__)
        for frame in frames[-4:]:
            print(f'  {os.path.basename(frame.filename)}:{frame.lineno}: {frame.line}')
        print(f'  {type(error).__name__}: {str(error)[:3000]}')
        return 1


def print_logs(root):
    for path in sorted(glob.glob(os.path.join(root, 'node*.log'))):
        with open(path, encoding='utf-8', errors='replace') as log:
            lines = log.read().splitlines()[-LOG_LINES:]
        print(f'  -- {os.path.basename(path)}\n' + '\n'.join('  | ' + line for line in lines))


def run_case(name, function, args):
    root = tempfile.mkdtemp(prefix=name + '.', dir=args.work)
    os.chmod(root, 0o755)
    words = [sys.executable, os.path.abspath(__file__), '--inside', root, '--seed', str(args.seed)]
    words += ['--more', str(args.more), '--build', args.build] + ['--plain'] * args.plain + [name]
    started = time.monotonic()
    code = 1
    try:
        seconds = getattr(function, 'settings', {}).get('timeout', 60) * args.more
        if args.plain and not getattr(function, 'settings', {}).get('plain', False):
            print('  skipped: only on mounts')
            code = SKIPPED
        else:
            sys.stdout.flush()
            code = run_apart(words, seconds)
            if code is None:
                print(f'  time-out after {seconds} s')
            if code not in (0, SKIPPED):
                print(f'  seed {args.seed}')
                print_logs(root)
    finally:
        if not args.keep:
            shutil.rmtree(root, ignore_errors=True)
    word = {0: 'PASS', SKIPPED: 'SKIP'}.get(code, 'FAIL')
    print(f'{word} {name} {time.monotonic() - started:.2f} s', flush=True)
    return word


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('--build', default='')
    parser.add_argument('--work', default='')
    parser.add_argument('--plain', action='store_true')
    parser.add_argument('--list', action='store_true')
    parser.add_argument('--keep', action='store_true')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--more', type=int, default=1, help='times as many steps as by default')
    parser.add_argument('--inside', help=argparse.SUPPRESS)
    parser.add_argument('cases', nargs='*')
    args = parser.parse_args()
    args.build = os.path.abspath(args.build) if args.build else ''
    return parser, args


def main():
    parser, args = arguments()
    cases = discover()
    if args.list:
        for name, function in cases.items():
            print(f'{name:44} {function.__doc__.strip().splitlines()[0]}')
        return 0
    unknown = [name for name in args.cases if name not in cases]
    if unknown:
        parser.error('no such case: ' + ' '.join(unknown))
    if args.inside:
        return run_inside(cases[args.cases[0]], args)
    if not args.plain and 'kvsyncfs' not in find_tools(args.build):
        parser.error(f'{args.build or "(no --build)"}: kvsyncfs is not built there')
    if os.geteuid() != 0 or not (args.plain or os.path.exists('/dev/fuse')):
        print('skipped: needs root and /dev/fuse')
        return SKIPPED
    args.work = os.path.abspath(args.work or os.path.join(args.build, 'lab-work'))
    os.makedirs(args.work, exist_ok=True)
    os.environ['TZ'] = 'UTC'
    end_in_order()
    words = [run_case(name, cases[name], args) for name in (args.cases or cases)]
    print(
        f'{words.count("PASS")} passed, {words.count("FAIL")} failed, {words.count("SKIP")} skipped'
    )
    if 'FAIL' in words:
        return 1
    return SKIPPED if set(words) == {'SKIP'} else 0


if __name__ == '__main__':
    sys.exit(main())

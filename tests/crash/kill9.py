#!/usr/bin/env python3
"""Kills the daemon with -9 at random moments under load; an oracle judges what is found.

usage: kill9.py --build DIR [--rounds N] [--seed S] [--workers N] [--cleaner] [--work DIR] [--keep]

Per round: workers change files and names on the mount until the daemon dies, the mount is
detached, the store mounts again without a repair, and every byte, size and name is compared with
what the oracle allows; fsck.kvsyncfs must be clean. --cleaner works on a small store that is
nearly full, so that most kills hit the cleaner. Exit status 0, or 1 with the seed and round of
the first failure.
"""
import argparse
import os
import pickle
import random
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), 'lib')]
sys.dont_write_bytecode = True

from load import Overwriter, Worker  # noqa: E402
from volume import Volume, end_in_order, find_tools, process_alive, wait_until  # noqa: E402


def fork_worker(worker, folder, seed, note):
    pid = os.fork()
    if pid == 0:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        try:
            worker.run(folder, random.Random(seed))
            worker.rng = None
            with open(note, 'wb') as out:
                pickle.dump(worker, out)
            os._exit(0)
        except BaseException as error:  # pylint: disable=broad-except
            print(f'worker {worker.index}: {type(error).__name__}: {error}', flush=True)
            os._exit(1)
    return pid


def one_round(volume, workers, args, number):
    """Runs one round; returns the complaints."""
    rng = random.Random(args.seed * 1_000_003 + number)
    folders = [os.path.join(volume.mnt, w.folder_name) for w in workers]
    notes = [os.path.join(volume.root, f'note{w.index}') for w in workers]
    pids = [
        fork_worker(w, folder, rng.random(), note)
        for w, folder, note in zip(workers, folders, notes)
    ]
    try:
        time.sleep(args.shortest + rng.random() ** 2 * args.longest)
        daemon = volume.pid()
        if daemon is None:
            return ['the daemon ended by itself']
        os.kill(daemon, signal.SIGKILL)
        wait_until(lambda: not process_alive(daemon), 20, 'end of the killed daemon')
        for pid in pids:
            wait_until(
                lambda p=pid: not process_alive(p), 30, 'end of a worker after the daemon died'
            )
    finally:
        for pid in pids:
            if process_alive(pid):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    volume.detach()
    done = volume.mount(check=False, timeout=60)
    if done.returncode != 0:
        return [
            f'the store does not mount: exit {done.returncode}: {done.stderr.strip()}',
            *volume.sanitizer_reports(),
        ]
    complaints = volume.sanitizer_reports()
    for i, (folder, note) in enumerate(zip(folders, notes)):
        if not os.path.exists(note):  # SIGBUS: a mapped page could not be read any more
            workers[i] = workers[i].again(number)
            continue
        with open(note, 'rb') as file:
            workers[i] = pickle.load(file)
        os.unlink(note)
        if os.path.isdir(folder):
            complaints += workers[i].judge(folder)
        elif workers[i].names.states[0]:
            complaints.append(f'{folder} is gone')
        else:
            workers[i] = workers[i].again(number)
    if number % args.fsck_every == 0:
        volume.unmount()
        done = volume.fsck(check=False)
        if done.returncode != 0:
            complaints.append(
                f'fsck: exit {done.returncode}: {done.stdout[-500:]}{done.stderr[-300:]}'
            )
        volume.mount()
    return complaints


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('--build', required=True)
    parser.add_argument('--work', default='')
    parser.add_argument('--rounds', type=int, default=60)
    parser.add_argument('--first', type=int, default=1, help='number of the first round')
    parser.add_argument('--seed', type=int, default=None)
    parser.add_argument('--workers', type=int, default=3)
    parser.add_argument(
        '--shortest', type=float, default=0.03, help='seconds before a kill, at least'
    )
    parser.add_argument(
        '--longest', type=float, default=1.5, help='seconds before a kill, added at most'
    )
    parser.add_argument('--fsck-every', type=int, default=4)
    parser.add_argument('--seconds', type=float, default=1e9, help='stop after this time')
    parser.add_argument('--cleaner', action='store_true')
    parser.add_argument('--keep', action='store_true')
    args = parser.parse_args()
    args.build = os.path.abspath(args.build)
    args.seed = random.SystemRandom().randrange(10**6) if args.seed is None else args.seed
    return args


def main():
    args = arguments()
    if os.geteuid() != 0 or not os.path.exists('/dev/fuse'):
        print('skipped: needs root and /dev/fuse')
        return 77
    if 'kvsyncfs' not in find_tools(args.build):
        print(f'{args.build}: kvsyncfs is not built there')
        return 1
    end_in_order()
    print(f'seed {args.seed}', flush=True)
    root = os.path.join(args.work or args.build, f'crash-work.{os.getpid()}')
    volume = Volume(args.build, root, size='192M' if args.cleaner else '1G')
    status, number, started = 1, 0, time.monotonic()
    try:
        volume.format()
        volume.mount()
        space = os.statvfs(volume.mnt)
        pages = int(space.f_bavail * space.f_frsize * 0.85) // 4096 // 64 * 64
        workers = (
            [Overwriter(0, pages)] if args.cleaner else [Worker(i) for i in range(args.workers)]
        )
        for number in range(args.first, args.first + args.rounds):
            complaints = one_round(volume, workers, args, number)
            if complaints:
                print(f'FAILED in round {number} of seed {args.seed}:')
                print('\n'.join('  ' + c for c in complaints[:20]), flush=True)
                return 1
            if time.monotonic() - started > args.seconds:
                break
        volume.unmount()
        if volume.sanitizer_reports():
            print('\n'.join(volume.sanitizer_reports()), flush=True)
            return 1
        steps = sum(worker.steps for worker in workers)
        rounds, seconds = number - args.first + 1, time.monotonic() - started
        print(f'{rounds} rounds passed in {seconds:.0f} s, {steps} operations')
        status = 0
        return 0
    finally:
        volume.destroy(keep=args.keep and status)


if __name__ == '__main__':
    sys.exit(main())

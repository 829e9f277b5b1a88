"""What the benchmarks share: timed loops, samples and their medians, and a tree to unpack."""
import os
import statistics
import subprocess
import time

TREE = '/usr/include'


class Samples:
    """Values by measure and system."""

    def __init__(self, probe):
        self.probe = probe
        self.values = {}  # measure -> system -> list

    def loop(self, *words, prefix=()):
        """Seconds of one of io_probe's loops."""
        done = subprocess.run(
            [*prefix, self.probe, *map(str, words)], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        return float(done.stdout)

    def note(self, system, name, value):
        self.values.setdefault(name, {}).setdefault(system.name, []).append(value)

    def medians(self, name):
        return {s: statistics.median(v) for s, v in self.values[name].items()}


def timed(command, **kwargs):
    start = time.monotonic()
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, **kwargs)
    return time.monotonic() - start


def make_tarball(path, files):
    """Of so many files of a real tree of sources."""
    found = subprocess.run(
        ['find', TREE, '-type', 'f', '-size', '-200k'], capture_output=True, text=True, check=True
    )
    names = sorted(filter(None, found.stdout.split('\n')))[:files]
    text = '\n'.join(name[1:] for name in names)
    subprocess.run(['tar', '-C', '/', '-cf', path, '-T', '-'], input=text.encode(), check=True)

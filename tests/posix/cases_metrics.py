"""Counters for Prometheus, as a plain HTTP client sees them."""
import os
import socket
import urllib.request

from support import case, check, equal, loud, put
from volume import OPTIONS, wait_until

# What kvsyncfs-stat adds to the daemon's own document, and what it remembers.
OF_STAT = ('hit_rate', 'hit_rate_total', 'hit_rate_window', 'write_amplification', 'history')

QUANTILES = (('p50', '0.5'), ('p99', '0.99'), ('p999', '0.999'), ('max', '1'))


def _free_port():
    with socket.create_server(('127.0.0.1', 0)) as probe:
        return probe.getsockname()[1]


def _numbers(prefix, document):
    """Every number of the document by the name and labels that its metric has."""
    found = {}
    for key, value in document.items():
        name = f'{prefix}_{key}'
        if key == 'operations':
            for operation, counts in value.items():
                label = f'operation="{operation}"'
                for part in ('count', 'errors'):
                    found[f'{name}_{part}{{{label}}}'] = counts[part]
                for part, quantile in QUANTILES:
                    latency = counts['latency_ns'][part]
                    found[f'{name}_latency_ns{{{label},quantile="{quantile}"}}'] = latency
        elif isinstance(value, dict):
            found.update(_numbers(name, value))
        elif isinstance(value, list):
            found[name] = len(value)
        elif isinstance(value, (int, float)):
            found[name] = value
    return found


def _scrape(port):
    with urllib.request.urlopen(f'http://127.0.0.1:{port}/metrics', timeout=20) as answer:
        lines = answer.read().decode().splitlines()
    samples = dict(line.rsplit(' ', 1) for line in lines if line and line[0] != '#')
    types = dict(line.split()[2:] for line in lines if line.startswith('# TYPE '))
    return {name: float(value) for name, value in samples.items()}, types


@case(mount=False)
def metrics_are_the_numbers_of_stat(v):
    """What Prometheus scrapes has every number of kvsyncfs-stat --json under its own name, and the
    same value; what only grows is a counter."""
    port = _free_port()
    v.format()
    v.mount(f'{OPTIONS},metrics=127.0.0.1:{port}')
    put(os.path.join(v.mnt, 'f'), os.urandom(300_000))

    def differences():
        document = {key: value for key, value in v.stat().items() if key not in OF_STAT}
        want, got = _numbers('kvsyncfs', document), _scrape(port)[0]
        del want['kvsyncfs_uptime_ns']
        return {key: (got.get(key), value) for key, value in want.items() if got.get(key) != value}

    wait_until(lambda: not differences(), 20, f'the same numbers: {differences()}')
    got, types = _scrape(port)
    check(got['kvsyncfs_engine_written_bytes'] >= 300_000, 'bytes were written')
    equal(types['kvsyncfs_engine_written_bytes'], 'counter')
    equal(types['kvsyncfs_engine_dirty_bytes'], 'gauge')
    info = [name for name in got if name.startswith('kvsyncfs_info{')]
    check(len(info) == 1 and f'store="{v.store}"' in info[0], f'who answers: {info}')
    v.unmount()


@case(mount=False)
def metrics_need_their_port(v):
    """A port that somebody has is one clear error, and nothing is mounted."""
    v.format()
    with socket.create_server(('127.0.0.1', 0)) as taken:
        address = f'127.0.0.1:{taken.getsockname()[1]}'
        loud(v.mount(f'{OPTIONS},metrics={address}', check=False), address, 'in use')
    check(not v.mounted(), 'mounted all the same')
    v.mount(f'{OPTIONS},metrics={address}')
    v.unmount()

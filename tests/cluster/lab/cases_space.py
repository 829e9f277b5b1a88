"""What df shows."""
import os
import random
import subprocess

from jobs import timed, within
from support import case, check, code, get, write_synced
from volume import counter, wait_until

PIECE = 32 << 20


def _look(node):
    """Bytes that df shows as used."""
    space = os.statvfs(node.mnt)
    check(space.f_blocks >= space.f_bfree >= space.f_bavail > 0, f'statvfs {space}')
    return (space.f_blocks - space.f_bfree) * space.f_frsize


@case()
def space_is_shown_while_a_node_is_dead(c):
    """df answers on every node with sane numbers, also while another one is dead; what is written
    is used once, however many copies there are, and on all nodes."""
    one, two, three = c.nodes
    before = [_look(node) for node in c.nodes]
    write_synced(one.path('big'), random.Random(1).randbytes(PIECE))
    for node, used in zip(c.nodes, before):
        wait_until(lambda n=node, u=used: _look(n) - u > PIECE * 0.9, 10, f'space on {node.name}')
        check(_look(node) - used < PIECE * 1.5, f'{node.name}: {_look(node) - used} bytes are used')
    three.kill9()
    for node in (one, two):
        within(10, _look, node)
    os.unlink(two.path('big'))
    within(10, _look, one)


def _names_on_all(nodes, pieces):
    for node in nodes:
        for name, data in pieces.items():
            check(within(30, get, node.path(name)) == data, f'{name} on {node.name}')


@case(nodes=2, timeout=110)
def full_disk_of_one_holder_hinders_nobody(c):
    """The disk below one holder is full and the others' are not: writes go on with all copies that
    were asked for, and no synced byte is missing anywhere. It is used again when it has room."""
    one, two = c.nodes
    small = c.make()
    subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=400M', 'none', small.store], check=True)
    small.size = '256M'
    small.format_next(c.etcd.cluster_url(), c.secret())
    small.mount()
    c.nodes.append(small)
    c.settle()
    filler = os.path.join(small.store, 'filler')
    room = os.statvfs(small.store)
    with open(filler, 'wb') as file:
        os.posix_fallocate(file.fileno(), 0, room.f_bavail * room.f_frsize - (6 << 20))
    pieces = {f'f{i}': random.Random(i).randbytes(4 << 20) for i in range(24)}
    longest = 0
    for number, (name, data) in enumerate(pieces.items()):
        took, _ = timed(within, 40, write_synced, c.nodes[number % 2].path(name), data)
        longest = max(longest, took)
    refused = within(30, code, write_synced, small.path('own'), bytes(16 << 20))
    check(refused in ('', 'ENOSPC'), f'a write on the full node: {refused}')
    _names_on_all(c.nodes, pieces)
    small.kill9()
    _names_on_all((one, two), pieces)
    os.unlink(filler)
    small.mount()
    before = counter(small.stat(), 'copied_bytes')
    within(60, write_synced, small.path('again'), pieces['f0'])

    def is_used():
        within(30, write_synced, one.path('again'), random.randbytes(4 << 20))
        return counter(small.stat(), 'copied_bytes') > before

    wait_until(is_used, 40, 'a copy on the node that has room again')
    print(f'  longest write {longest:.2f} s; a write on the full node: {refused or "succeeded"}')
    _names_on_all(c.nodes, pieces)

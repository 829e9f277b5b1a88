"""What df shows."""
import os
import random

from jobs import within
from support import case, check, write_synced

PIECE = 32 << 20


def _look(node):
    space = os.statvfs(node.mnt)
    check(space.f_blocks >= space.f_bfree >= space.f_bavail > 0, f'statvfs {space}')


@case()
def space_is_shown_while_a_node_is_dead(c):
    """df answers on every node with sane numbers, also while another one is dead."""
    one, two, three = c.nodes
    write_synced(one.path('big'), random.Random(1).randbytes(PIECE))
    for node in c.nodes:
        _look(node)
    three.kill9()
    for node in (one, two):
        within(10, _look, node)
    os.unlink(two.path('big'))
    within(10, _look, one)

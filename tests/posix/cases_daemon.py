"""The daemon frozen, killed, cut off, or mounted in odd places."""
import os
import signal
import subprocess
import time

from support import case, check, create, equal, fails, get, in_child, needs, put, python, sh, sh_ok
from volume import freeze, wait_until


@case(mounted=True)
def daemon_never_needs_its_own_mount(v):
    """With its home, temporary and working folder on the mount the daemon serves on."""
    cwd = v.leave()
    v.unmount()
    v.mount(env=dict(os.environ, HOME=v.mnt, TMPDIR=v.mnt + '/t'), cwd='/')
    v.enter(cwd)
    for _ in range(3):
        put('f', os.urandom(4 << 20))
        os.sync()
    equal(os.listdir('.'), ['f'])
    for link in os.listdir(f'/proc/{v.pid()}/fd'):
        try:
            target = os.readlink(f'/proc/{v.pid()}/fd/{link}')
        except OSError:
            continue
        check(not target.startswith(v.mnt), f'the daemon holds {target}')


@case(mounted=True)
def daemon_is_frozen_and_goes_on(v):
    """After SIGSTOP and SIGCONT the same handles work on."""
    fd = create('f')
    os.write(fd, b'before')
    # Started before: a child of this process would wait for the close of its copy of `fd`.
    script = 'import os,sys\nsys.stdin.readline()\nos.stat("new")'
    waiting = python(script, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    freeze(v.pid())
    waiting.stdin.write(b'go\n')
    waiting.stdin.flush()
    time.sleep(1)
    equal(waiting.poll(), None, 'a frozen daemon answered')
    os.kill(v.pid(), signal.SIGCONT)
    equal(waiting.wait(20), 1)
    os.write(fd, b'after')
    equal(get('f'), b'beforeafter')


@case(mounted=True)
def daemon_killed_says_enotconn(v):
    """After kill -9 old handles and new calls fail at once; the mount can be lifted and made
    again."""
    put('f', b'kept')
    fd = os.open('f', os.O_RDWR)
    os.fsync(fd)
    os.kill(v.pid(), signal.SIGKILL)
    wait_until(lambda: v.pid() is None, 10, 'end of the daemon')
    in_child(lambda: fails('ENOTCONN ECONNABORTED EIO', os.write, fd, b'x'))
    in_child(lambda: fails('ENOTCONN', os.stat, v.mnt + '/unknown'))
    in_child(lambda: fails('ENOTCONN', os.open, v.mnt + '/new', os.O_CREAT))
    cwd = v.leave()
    v.detach()
    v.mount()
    v.enter(cwd)
    equal(get('f'), b'kept')


@case(mounted=True)
def connection_aborted_by_the_kernel(v):
    """An aborted connection ends all calls; the daemon leaves, and the store mounts again whole."""
    put('f', b'kept')
    fd = os.open('f', os.O_RDWR)
    os.fsync(fd)
    with open(v.connection() + '/abort', 'w', encoding='ascii') as knob:
        knob.write('1')
    in_child(lambda: fails('ENOTCONN ECONNABORTED', os.stat, v.mnt + '/unknown'))
    wait_until(lambda: v.pid() is None, 15, 'end of the daemon')
    cwd = v.leave()
    v.detach()
    v.mount()
    v.enter(cwd)
    equal(get('f'), b'kept')


@case(mounted=True)
def stacked_mounts_work(v):
    """A bind mount, a chroot and an overlay with its upper folder here work or are refused
    clearly."""
    put('f', b'data')
    os.mkdir('bind')
    sh_ok('mkdir src && echo x > src/y && mount --bind src bind && cat bind/y && umount bind')
    sh_ok('mkdir -p low up work over && echo l > low/f')
    if sh('mount -t overlay none -o lowerdir=low,upperdir=up,workdir=work over').returncode == 0:
        sh_ok('echo new > over/g; cat over/f over/g; umount over')
    needs('busybox')
    sh_ok(
        'mkdir -p root/bin && cp $(command -v busybox) root/bin/sh;'
        'cp --parents $(ldd root/bin/sh | grep -o "/[^ ]*") root; chroot root /bin/sh -c "echo in"'
    )


@case(mounted=True)
def busy_mount_keeps_its_users(v):
    """umount with an open handle is EBUSY; umount -l lets handles work on and the daemon ends
    after them."""
    fd = create('f')
    os.write(fd, b'one')
    os.chdir('/')
    check(
        subprocess.run(['umount', v.mnt], stderr=subprocess.DEVNULL, check=False).returncode != 0,
        'not busy',
    )
    check(v.mounted())
    daemon = v.pid()
    sh_ok(f'umount -l -i {v.mnt}')
    os.write(fd, b'two')
    equal(os.pread(fd, 9, 0), b'onetwo')
    os.close(fd)
    wait_until(lambda: v.pid() is None, 15, f'end of daemon {daemon}')
    v.mount()
    equal(get(v.mnt + '/t/f'), b'onetwo')

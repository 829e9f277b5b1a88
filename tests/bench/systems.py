"""The file systems that the benchmark compares, and the programs it builds for that."""
import gzip
import os
import subprocess

from volume import Volume, drop_caches, wait_until

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = '/usr/share/doc/libfuse3-dev/examples'


class Local:
    """A folder of the disk that the stores lie on."""

    name = 'local'

    def __init__(self, root):
        self.mnt = os.path.join(root, 'local')
        os.makedirs(self.mnt)

    def start(self):
        pass

    def stop(self):
        pass

    def destroy(self):
        pass

    def cold(self):
        self.stop()
        drop_caches()
        self.start()


class Passthrough(Local):
    """As its own defaults are: for the user who mounts it alone, without permission checks."""

    name = 'passthrough_ll'
    folder = 'pt'
    options = ''

    def __init__(self, root, binary):
        super().__init__(os.path.join(root, self.folder))
        self.binary, self.source = binary, os.path.join(root, self.folder + '-source')
        self.process = None
        os.makedirs(self.source)

    def start(self):
        self.process = subprocess.Popen(
            [self.binary, '-f', '-o', f'source={self.source}{self.options}', self.mnt],
            stdin=subprocess.DEVNULL,
        )
        wait_until(lambda: os.path.ismount(self.mnt), 10, 'mount of passthrough_ll')

    def stop(self):
        if self.process:
            subprocess.run(['umount', self.mnt], check=True)
            self.process.wait()
            self.process = None

    def destroy(self):
        if self.process:
            subprocess.run(['umount', '-l', self.mnt], check=False)
            self.process.kill()
            self.process.wait()


class CheckedPassthrough(Passthrough):
    """For all users, as kvsyncfs is mounted: the kernel checks permissions, and so asks for the
    attributes of a directory after each change of it."""

    name = 'passthrough, checked'
    folder = 'ptc'
    options = ',allow_other,default_permissions,xattr'


class Kvsyncfs(Local):
    name = 'kvsyncfs'

    # pylint: disable-next=super-init-not-called
    def __init__(self, root, build, size='8G', options=None):
        self.volume = Volume(build, os.path.join(root, 'kv'), size=size)
        if options:
            self.volume.options += ',' + options
        self.mnt = self.volume.mnt
        self.volume.format()

    def start(self):
        self.volume.mount()

    def stop(self):
        self.volume.unmount()

    def destroy(self):
        self.volume.destroy()


def build_helpers(root):
    """passthrough_ll from libfuse's own examples and the I/O loops; returns their paths."""
    source = os.path.join(root, 'src')
    os.makedirs(source)
    for name in ('passthrough_ll.c', 'passthrough_helpers.h'):
        plain = os.path.join(EXAMPLES, name)
        opener = open if os.path.exists(plain) else gzip.open
        with opener(plain if opener is open else plain + '.gz', 'rb') as file:
            data = file.read()
        with open(os.path.join(source, name), 'wb') as file:
            file.write(data)
    flags = subprocess.run(
        ['pkg-config', 'fuse3', '--cflags', '--libs'], capture_output=True, text=True, check=True
    ).stdout.split()
    passthrough = os.path.join(root, 'passthrough_ll')
    code = os.path.join(source, 'passthrough_ll.c')
    subprocess.run(['cc', '-O2', '-w', '-o', passthrough, code, *flags], check=True)
    return passthrough, build_probe(root)


def build_probe(root):
    probe, code = os.path.join(root, 'io_probe'), os.path.join(HERE, 'io_probe.c')
    subprocess.run(['cc', '-O2', '-Wall', '-o', probe, code, '-lpthread'], check=True)
    return probe

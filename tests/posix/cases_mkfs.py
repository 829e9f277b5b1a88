"""mkfs.kvsyncfs and the superblock: what is refused, what is kept."""
import os
import signal

from support import loud, case, check, code, equal, get, put


@case(mounted=True, mount=False)
def mkfs_refuses_what_is_there(v):
    """A formatted or non-empty folder is refused untouched without --force and made new with it."""
    v.format()
    v.mount()
    put(v.mnt + '/f', b'data')
    v.unmount()
    loud(v.tool('mkfs.kvsyncfs', v.store, '--size', '256M'), v.store)
    v.mount()
    equal(get(v.mnt + '/f'), b'data')
    v.unmount()
    other = v.root + '/other'
    os.mkdir(other)
    put(other + '/precious', b'mine')
    loud(v.tool('mkfs.kvsyncfs', other, '--size', '256M'), other)
    equal((os.listdir(other), get(other + '/precious')), (['precious'], b'mine'))
    v.format('--force')
    v.mount()
    equal(os.listdir(v.mnt), [])


@case(mounted=True)
def mkfs_refuses_a_mounted_store(v):
    """Also with --force a store in use is refused, and its mount goes on."""
    put('f', b'data')
    loud(v.tool('mkfs.kvsyncfs', v.store, '--size', '256M', '--force'), v.store)
    put('g', b'more')
    v.cold()
    equal((get('f'), get('g')), (b'data', b'more'))


@case(mounted=True, mount=False, check=False)
def mkfs_refuses_nonsense(v):
    """Sizes that are no sizes or do not fit, bad labels, uuids, options and places: loud, nothing
    made."""
    for size in (
        '0',
        '-1',
        'abc',
        '10',
        '1e3x',
        '99999999T',
        '',
        '12Q',
        '1G1',
        '18446744073709551616',
    ):
        done = v.tool('mkfs.kvsyncfs', v.store, '--size', size)
        check(
            0 < done.returncode < 128 and done.stderr.strip(),
            f'--size {size!r}: exit {done.returncode}',
        )
        equal(os.listdir(v.store), [], f'--size {size!r}')
    for words in (['--uuid', 'nonsense'], ['--label', 'l' * 65], ['--nonsense'], ['extra']):
        done = v.tool('mkfs.kvsyncfs', v.store, '--size', '256M', *words)
        check(0 < done.returncode < 128 and done.stderr.strip(), f'{words}: exit {done.returncode}')
        equal(os.listdir(v.store), [], str(words))
    put(v.root + '/file')
    loud(v.tool('mkfs.kvsyncfs', v.root + '/file', '--size', '256M'), '/file')
    done = v.tool('mkfs.kvsyncfs')
    check(0 < done.returncode < 128 and done.stderr.strip(), 'no argument')


@case(mounted=True, mount=False)
def mkfs_keeps_label_and_uuid(v):
    """Label and uuid given to mkfs are those of the mounted volume; without them uuids differ."""
    uuid = '12345678-9abc-4def-8123-456789abcdef'
    v.format('--label', 'my store', '--uuid', uuid)
    v.mount()
    document = v.stat()
    equal((document['uuid'], document['label']), (uuid, 'my store'))
    uuids = {uuid}
    for _ in range(2):
        v.unmount()
        v.format('--force')
        v.mount()
        uuids.add(v.stat()['uuid'])
    equal(len(uuids), 3, 'different uuids')


@case(mounted=True, mount=False, check=False)
def tools_tell_help_and_version(v):
    """--help and --version answer on stdout with 0 for every program; an unknown option is
    refused."""
    for name in v.tools:
        if name != 'umount.fuse.kvsyncfs':
            for word in ('--help', '--version'):
                done = v.tool(name, word)
                check(
                    done.returncode == 0 and done.stdout.strip(),
                    f'{name} {word}: {done.returncode} {done.stderr}',
                )
            done = v.tool(name, '--nonsense-option')
            check(
                0 < done.returncode < 128 and done.stderr.strip(),
                f'{name} --nonsense-option: {done.returncode}',
            )


@case(mounted=True, mount=False, timeout=180)
def superblock_is_checked_before_use(v):
    """Each flipped byte of the superblock, a short and an empty one: refused loudly or harmless,
    no signal."""
    v.format()
    path = next(
        p
        for p in (f'{v.store}/{n}' for n in sorted(os.listdir(v.store)))
        if os.path.isfile(p) and 'super' in os.path.basename(p)
    )
    good = get(path)

    def attempt(data, what):
        put(path, data)
        done = v.mount(check=False, timeout=20)
        check(0 <= done.returncode < 128, f'{what}: exit {done.returncode}')
        if done.returncode == 0:
            v.unmount()
        else:
            check(done.stderr.strip() and not v.mounted(), f'{what}: no message')
        return done.returncode

    copies = len(good) // 4096
    for i in range(0, 512, 3):
        damaged = bytearray(good)
        damaged[i] ^= 0x20
        attempt(bytes(damaged), f'byte {i} of the first copy')
        for copy in range(1, copies):
            damaged[copy * 4096 + i] ^= 0x20
        check(attempt(bytes(damaged), f'byte {i}') or i > 128, f'byte {i} is not checked')
    for data in (b'', good[:100], good[:4095], bytes(len(good)), os.urandom(4096)):
        check(
            attempt(data, f'{len(data)} bytes') != 0, f'a superblock of {len(data)} bytes was taken'
        )
    equal(attempt(good, 'the good one'), 0)

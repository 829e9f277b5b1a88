"""What a crash may leave: versions of every byte since the last fsync, states of the names.

A file is a row of cells; a cell keeps the contents it has had since they were last made durable,
the newest last. After a crash each byte must be that byte of one of them, so an older byte, a zero
where data was, or another file's byte is seen. Sizes are ranges in the same way. Names change in
one order, and fsync makes all earlier changes durable, so after a crash the names are one of the
states since then.
"""


class File:
    def __init__(self, inode, cell_size):
        self.inode, self.cell_size = inode, cell_size
        self.cells = []  # per cell: its versions
        self.dirty = set()  # cells with more than one version
        self.size = 0
        self.sizes = [(0, 0)]  # closed ranges
        self.floors = []  # (path, size range index, {cell: version index}): what a rename promised

    def cell(self, index):
        while len(self.cells) <= index:
            self.cells.append([bytes(self.cell_size)])
        return self.cells[index]

    def _change(self, offset, data):
        """The bytes [offset, offset + len(data)) become `data`; cells are touched in whole or in
        part."""
        at = offset
        while at < offset + len(data):
            index, start = divmod(at, self.cell_size)
            length = min(self.cell_size - start, offset + len(data) - at)
            versions = self.cell(index)
            last = versions[-1]
            versions.append(
                last[:start] + data[at - offset : at - offset + length] + last[start + length :]
            )
            self.dirty.add(index)
            at += length

    def write(self, offset, data):
        self._change(offset, data)
        if offset + len(data) > self.size:
            self.sizes.append((self.size, offset + len(data)))
            self.size = offset + len(data)

    def zero(self, offset, length):
        length = min(length, self.size - offset)
        if length > 0:
            self._change(offset, bytes(length))

    def truncate(self, size):
        if size < self.size:
            self._change(size, bytes(self.size - size))
        self.sizes.append((size, size))
        self.size = size

    def content(self, offset, length):
        out = bytearray()
        at = offset
        while at < offset + length:
            index, start = divmod(at, self.cell_size)
            part = self.cell(index)[-1][start : start + offset + length - at]
            out += part
            at += len(part)
        return bytes(out)

    def synced(self):
        for index in self.dirty:
            self.cells[index] = [self.cells[index][-1]]
        self.dirty.clear()
        self.sizes = [(self.size, self.size)]
        self.floors.clear()

    def promise(self, path):
        """A rename onto an existing `path`: who sees it there sees the present bytes or later
        ones."""
        self.floors.append(
            (path, len(self.sizes) - 1, {i: len(self.cells[i]) - 1 for i in self.dirty})
        )

    def settle(self, data):
        """After a crash: what was found is now the durable truth."""
        self.cells = [
            [data[i : i + self.cell_size].ljust(self.cell_size, b'\0')]
            for i in range(0, len(data), self.cell_size)
        ]
        self.dirty.clear()
        self.size = len(data)
        self.sizes = [(self.size, self.size)]
        self.floors.clear()

    def judge(self, path, data):
        """The complaint about `data` found at `path` after a crash, or None."""
        first_size, floors = 0, {}
        for promised, size_index, cells in self.floors:
            if promised == path:
                first_size, floors = size_index, cells
        if not any(low <= len(data) <= high for low, high in self.sizes[first_size:]):
            return f'size {len(data)}, allowed {self.sizes[first_size:][:20]}'
        for index in range((len(data) + self.cell_size - 1) // self.cell_size):
            found = data[index * self.cell_size : (index + 1) * self.cell_size]
            versions = self.cell(index)[floors.get(index, 0) :]
            if any(found == version[: len(found)] for version in versions):
                continue
            for k, byte in enumerate(found):
                if all(version[k] != byte for version in versions):
                    return self._explain(index, k, found, versions)
        return None

    def _explain(self, index, k, found, versions):
        older = self.cell(index)[: len(self.cell(index)) - len(versions)]
        kind = 'foreign byte'
        if any(version[k] == found[k] for version in older):
            kind = 'older byte'
        elif not any(found[k : k + 16]):
            kind = 'zero where data was'
        return (
            f'{kind} at {index * self.cell_size + k}: {found[k:k + 8].hex()}, '
            f'{len(versions)} allowed versions, newest {versions[-1][k:k + 8].hex()}'
        )


class Names:
    """States of one folder tree: {path: (kind, inode)}; the last one is the present."""

    def __init__(self):
        self.states = [{}]

    def now(self):
        return self.states[-1]

    def change(self, remove=(), add=None):
        state = {p: v for p, v in self.now().items() if p not in remove}
        state.update(add or {})
        self.states.append(state)

    def moved(self, old, new):
        """State after rename(old, new), with everything below it."""
        state = {}
        for path, value in self.now().items():
            if path == old or path.startswith(old + '/'):
                state[new + path[len(old) :]] = value
            elif path != new and path not in state:
                state[path] = value
        self.states.append(state)

    def synced(self):
        self.states = [self.now()]

    def judge(self, found):
        if found in self.states:
            return None
        best = min(self.states, key=lambda s: len(set(s.items()) ^ set(found.items())))
        return (
            f'names are none of {len(self.states)} allowed states; nearest differs by: missing '
            f'{sorted(set(best.items()) - set(found.items()))[:5]}, unexpected '
            f'{sorted(set(found.items()) - set(best.items()))[:5]}'
        )

"""Where HDF5's metadata have checksums, so that a changed file can be given ones that fit.

Structures are those of the HDF5 File Format Specification 3.0. They are found by their signatures, and
their lengths by what the file says before it is changed: a change to a length is then told to the reader
with a checksum that fits.
"""

import struct
from collections.abc import Iterator

# A structure and its checksum: where it begins and ends, and where its sum stands, behind it or in it.
Span = tuple[int, int, int]

MASK = 0xFFFFFFFF


def lookup3(data: bytes) -> int:
    """Return Bob Jenkins' lookup3 of some bytes, as HDF5 uses it."""
    a = b = c = (0xDEADBEEF + len(data)) & MASK
    if not data:
        return c
    padded = data + bytes(-len(data) % 12)
    words = struct.unpack(f"<{len(padded) // 4}I", padded)
    for at in range(0, len(words) - 3, 3):
        a, b, c = (a + words[at]) & MASK, (b + words[at + 1]) & MASK, (c + words[at + 2]) & MASK
        a = ((a - c) & MASK) ^ ((c << 4 | c >> 28) & MASK)
        c = (c + b) & MASK
        b = ((b - a) & MASK) ^ ((a << 6 | a >> 26) & MASK)
        a = (a + c) & MASK
        c = ((c - b) & MASK) ^ ((b << 8 | b >> 24) & MASK)
        b = (b + a) & MASK
        a = ((a - c) & MASK) ^ ((c << 16 | c >> 16) & MASK)
        c = (c + b) & MASK
        b = ((b - a) & MASK) ^ ((a << 19 | a >> 13) & MASK)
        a = (a + c) & MASK
        c = ((c - b) & MASK) ^ ((b << 4 | b >> 28) & MASK)
        b = (b + a) & MASK
    a, b, c = (a + words[-3]) & MASK, (b + words[-2]) & MASK, (c + words[-1]) & MASK
    for x, y, turn in (
        ("c", "b", 14),
        ("a", "c", 11),
        ("b", "a", 25),
        ("c", "b", 16),
        ("a", "c", 4),
        ("b", "a", 14),
    ):
        held = {"a": a, "b": b, "c": c}
        other = held[y]
        held[x] = ((held[x] ^ other) - ((other << turn | other >> (32 - turn)) & MASK)) & MASK
        a, b, c = held["a"], held["b"], held["c"]
    other = b
    return ((c ^ other) - ((other << 24 | other >> 8) & MASK)) & MASK


def repair(data: bytearray, spans: list[Span]) -> None:
    """Write checksums that fit into the structures at these places."""
    for start, end, place in spans:
        if max(place + 4, end) <= len(data):
            data[place : place + 4] = bytes(4)
            data[place : place + 4] = struct.pack("<I", lookup3(bytes(data[start:end])))


class Structures:
    """The structures of one file that have checksums."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.spans: list[Span] = []
        start = next((at for at in (0, 512, 1024, 2048) if data[at : at + 4] == b"\x89HDF"), None)
        if start is None:
            return
        self.base = start
        self.is_new = data[start + 8] >= 2
        widths = start + (9 if self.is_new else 13)
        self.address, self.length = data[widths], data[widths + 1]
        if self.is_new:
            self._keep(start, start + 12 + 4 * self.address)
        for signature, read in (
            (b"OHDR", self._header),
            (b"BTHD", self._tree),
            (b"FRHP", self._heap),
            (b"FAHD", self._fixed_array),
            (b"EAHD", self._extensible_array),
            (b"GCOL", self._collection),
        ):
            for at in occurrences(data, signature):
                try:
                    read(at)
                except (IndexError, struct.error):
                    continue

    def _keep(self, start: int, end: int, place: int | None = None) -> None:
        """Note a structure if its checksum is there, behind it where nothing else is said, and fits."""
        place = end if place is None else place
        if not (start < end and max(place + 4, end) <= len(self.data) and end - start <= 1 << 20):
            return
        (there,) = struct.unpack_from("<I", self.data, place)
        content = bytearray(self.data[start:end])
        if place < end:
            content[place - start : place - start + 4] = bytes(4)
        if there == lookup3(bytes(content)):
            self.spans.append((start, end, place))

    def _number(self, at: int, width: int) -> int:
        if at + width > len(self.data):
            raise IndexError
        return int.from_bytes(self.data[at : at + width], "little")

    def _place(self, at: int) -> int | None:
        place = self._number(at, self.address)
        return None if place == (1 << 8 * self.address) - 1 else place + self.base

    def _header(self, at: int) -> None:
        flags = self.data[at + 5]
        body = at + 6 + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
        width = 1 << (flags & 3)
        size = self._number(body, width)
        self._keep(at, body + width + size)
        self._continuations(body + width, body + width + size, flags, 8)

    def _continuations(self, start: int, end: int, flags: int, depth: int) -> None:
        head = 6 if flags & 4 else 4
        while start + head <= end and depth:
            kind, size = self.data[start], self._number(start + 1, 2)
            if kind == 0x10:
                block, length = (
                    self._place(start + head),
                    self._number(start + head + self.address, self.length),
                )
                if block is not None:
                    self._keep(block, block + length - 4)
                    self._continuations(block + 4, block + length - 4, flags, depth - 1)
            start += head + size

    def _tree(self, at: int) -> None:
        node, record, depth = struct.unpack_from("<IHH", self.data, at + 6)
        root = at + 16
        self._keep(at, root + self.address + 2 + self.length)
        records = self._number(root + self.address, 2)
        place = self._place(root)
        if place is not None:
            self._tree_node(place, records, depth, node, record)

    def _tree_node(self, at: int, records: int, depth: int, node: int, record: int) -> None:
        end = at + 6 + records * record
        if depth == 0:
            self._keep(at, end)
            return
        # How many records a child has takes as many bytes as the most that fit; so do those below it.
        most = (node - 10) // max(record, 1)
        count = (most.bit_length() + 7) // 8
        for level in range(1, depth):
            most = self._most_below(most, level, node, record)
        total = (most.bit_length() + 7) // 8 if depth > 1 else 0
        step = self.address + count + total
        for child in range(records + 1):
            place = self._place(end + child * step)
            below = self._number(end + child * step + self.address, count)
            if place is not None:
                self._tree_node(place, below, depth - 1, node, record)
        self._keep(at, end + (records + 1) * step)

    def _most_below(self, most: int, level: int, node: int, record: int) -> int:
        """Return the most records of a tree that is one level higher."""
        leaf = (node - 10) // max(record, 1)
        pointer = (
            self.address + (leaf.bit_length() + 7) // 8 + ((most.bit_length() + 7) // 8 if level > 1 else 0)
        )
        own = (node - 10 - pointer) // (record + pointer)
        return (own + 1) * most + own

    def _heap(self, at: int) -> None:
        address, length = self.address, self.length
        filtered = self._number(at + 7, 2)
        has_sums = self.data[at + 9] & 2
        table = at + 14 + length + address + length + address + 8 * length
        width, first = self._number(table, 2), self._number(table + 2, length)
        most, bits = self._number(table + 2 + length, length), self._number(table + 2 + 2 * length, 2)
        root = self._place(table + 6 + 2 * length)
        rows = self._number(table + 6 + 2 * length + address, 2)
        end = table + 8 + 2 * length + address
        if filtered:
            end += length + 4 + filtered
        self._keep(at, end)
        if root is None or filtered:
            return
        prefix = 5 + address + (bits + 7) // 8
        if rows == 0:
            self._heap_block(root, prefix, first, has_sums)
        else:
            self._heap_table(root, prefix, rows, (width, first, most), has_sums)

    def _heap_block(self, at: int, prefix: int, size: int, has_sums: int) -> None:
        if has_sums:
            self._keep(at, at + size, at + prefix)

    def _heap_table(
        self, at: int, prefix: int, rows: int, doubling: tuple[int, int, int], has_sums: int
    ) -> None:
        width, first, most = doubling
        entries = width * rows
        for entry in range(entries):
            row = entry // width
            size = first << max(row - 1, 0)
            place = self._place(at + prefix + entry * self.address)
            if place is not None and size <= most:
                self._heap_block(place, prefix, size, has_sums)
            elif place is not None:
                below = (size // (first * width)).bit_length()
                self._heap_table(place, prefix, below, doubling, has_sums)
        self._keep(at, at + prefix + entries * self.address)

    def _collection(self, at: int) -> None:
        """Find the mappings of virtual data among the objects of a global heap."""
        head = 8 + self.length + -self.length % 8
        end = at + self._number(at + 8, self.length)
        place = at + head
        while place + head <= end and self._number(place, 2):
            size = self._number(place + 8, self.length)
            if size > 4:
                self._keep(place + head, place + head + size - 4)
            place += head + size + -size % 8

    def _fixed_array(self, at: int) -> None:
        element, bits = self.data[at + 6], self.data[at + 7]
        count = self._number(at + 8, self.length)
        block = self._place(at + 8 + self.length)
        end = at + 8 + self.length + self.address
        self._keep(at, end)
        if block is None:
            return
        start = block + 6 + self.address
        page = 1 << bits
        if count <= page:
            self._keep(block, start + count * element)
            return
        pages = -(-count // page)
        start += (pages + 7) // 8
        self._keep(block, start)
        for number in range(pages):
            items = min(page, count - number * page)
            begin = start + 4 + number * (page * element + 4)
            self._keep(begin, begin + items * element)

    def _extensible_array(self, at: int) -> None:
        element, bits, inside, least, blocks, page_bits = self.data[at + 6 : at + 12]
        index = at + 12 + 6 * self.length
        end = index + self.address
        self._keep(at, end)
        block = self._place(index)
        if block is None:
            return
        log = blocks.bit_length() - 1
        supers = bits - (least.bit_length() - 1) + 1
        data_blocks = 2 * (blocks - 1)
        place = block + 6 + self.address + inside * element
        more = max(supers - 2 * log, 0)
        self._keep(block, place + (data_blocks + more) * self.address)
        prefix = 6 + self.address + (bits + 7) // 8
        seen = 0
        for number in range(supers):
            here, items = 1 << (number // 2), least << ((number + 1) // 2)
            if seen < data_blocks:
                for child in range(here):
                    self._array_block(
                        self._place(place + (seen + child) * self.address), prefix, items, element
                    )
                seen += here
                continue
            outer = self._place(place + (data_blocks + number - 2 * log) * self.address)
            if outer is None:
                continue
            pages = here * ((items >> page_bits) + 7 >> 3) if items > 1 << page_bits else 0
            first = outer + prefix + pages
            for child in range(here):
                self._array_block(self._place(first + child * self.address), prefix, items, element)
            self._keep(outer, first + here * self.address)

    def _array_block(self, at: int | None, prefix: int, items: int, element: int) -> None:
        if at is not None:
            self._keep(at, at + prefix + items * element)
            # Of a block in pages the head has a sum of its own.
            self._keep(at, at + prefix)


def occurrences(data: bytes, signature: bytes) -> Iterator[int]:
    """Yield the places where a signature stands."""
    at = data.find(signature)
    while at >= 0:
        yield at
        at = data.find(signature, at + 1)

"""What XLA's partitioner exchanges where a value comes to be split in another way.

A Tiling is an array of the numbers of devices: an axis for each dimension of the value, as long as that has
parts, and a last one for those that hold the same part.
"""
import math

import numpy as np


def tiling(split, mesh):
    """The Tiling of a value.

    Args:
        split: for each dimension the mesh axes that split it, names or shardy.SubAxis.
        mesh: what has `axis_names` and `axis_sizes`.
    """
    parts = [axis for axes in split for axis in axes if not isinstance(axis, str)]
    pieces = []     # (mesh axis, what is before it, what is before it and of it)
    for name, size in zip(mesh.axis_names, mesh.axis_sizes):
        cuts = sorted({1, size, *(cut for part in parts if part.name == name
                                  for cut in (part.before, part.before * part.size))})
        pieces += [(name, *step) for step in zip(cuts, cuts[1:])]

    def within(piece, axis):
        name, low, high = piece
        return name == axis or not isinstance(axis, str) and (
            name == axis.name and axis.before <= low and high <= axis.before * axis.size)

    sizes = [high // low for _, low, high in pieces]
    dims = [[i for axis in axes for i, piece in enumerate(pieces) if within(piece, axis)] for axes in split]
    dims.append([i for i in range(len(pieces)) if not any(i in dim for dim in dims)])
    numbers = np.arange(math.prod(sizes)).reshape(sizes).transpose([i for dim in dims for i in dim])
    return numbers.reshape([math.prod(sizes[i] for i in dim) for dim in dims])


def reshard(sizes, bits, source, target):
    """The exchanges that bring a value from one Tiling to another: [(kind, groups of devices, bytes)], of a
    permute its pairs; None if each device gets the whole in between.

    Args:
        sizes: those of the value's dimensions.
        bits: of an element.
    """
    return _Reshard(sizes, bits, source, target).steps()


class _Reshard:
    def __init__(self, sizes, bits, source, target):
        self.sizes, self.bits, self.now, self.target = sizes, bits, source, target
        self.found = []

    def steps(self):
        now, target = self.now.shape, self.target.shape
        tiles, wanted = now[:-1], target[:-1]
        if max(tiles, default=1) == 1:
            return []
        if now[-1] < target[-1]:
            if all(a % b == 0 for a, b in zip(tiles, wanted)):
                return self.found if self.joined() else None
            whole = [dim for dim, (a, b) in enumerate(zip(tiles, wanted)) if a == target[-1] and b != a]
            if now[-1] > 1 or not whole:
                return None
            self.gather(whole[-1])
        elif now[-1] > target[-1]:
            shifted = tiles[0] == target[-1] == 1 and tiles[1:] == wanted[:-1] and wanted[-1] == now[-1]
            if shifted and any(a > b for a, b in zip(tiles, wanted)):
                self.exchange()
                return self.found if self.cut() else None
            if not self.cut() or target[-1] > 1 and self.now.shape != target:
                return None
        self.exchange()
        return self.found if self.permute(self.target) else None

    def permute(self, target):
        """Devices send their parts to those that have them in `target`.  Are they its parts?"""
        if self.now.shape != target.shape:
            return False
        if not np.array_equal(self.now, target):
            pairs = [*zip(self.now.ravel().tolist(), target.ravel().tolist())]
            self.found.append(("collective-permute", pairs, self.bytes(self.now.shape)))
        return True

    def bytes(self, counts, padded=()):
        """On one device, of parts; those of dimensions in `padded` are so long."""
        rows = [padded[dim] if dim in padded else -(-size // count)
                for dim, (size, count) in enumerate(zip(self.sizes, counts))]
        return -(-math.prod(rows) * self.bits // 8)

    def cut(self):
        """Cut the parts that several devices hold into those of the target, each device keeping its own.

        Could they?
        """
        made, _ = _cut(self.now, self.target)
        if made is not None:
            self.now = made
        return made is not None

    def joined(self):
        """Bring devices parts that make one of the target's.  Could they?"""
        made, factors = _cut(self.target, self.now)
        if made is None or not self.permute(made):
            return False
        self.now = made
        for dim, factor in reversed([*enumerate(factors)]):
            if factor > 1:
                self.gather(dim, factor)
        return True

    def gather(self, dim, count=None):
        count = count or self.now.shape[dim]
        groups = np.moveaxis(_split(self.now, dim, count), dim + 1, -1)
        self.now = groups.reshape(*groups.shape[:-2], -1)
        self.found.append(("all-gather", groups.reshape(-1, count).tolist(), self.bytes(self.now.shape)))

    def exchange(self):
        """All-to-alls, by which dimensions are split more that the target splits more, others less."""
        while (pair := self.pair()) is not None:
            give, take, count = pair
            before = self.now.shape[give]
            groups = np.moveaxis(_split(self.now, give, count), give + 1, -1)
            moved = np.moveaxis(groups, -1, take + 1)
            self.now = moved.reshape(*moved.shape[:take], -1, *moved.shape[take + 2:])
            padded = -(-self.sizes[give] // before) * count
            self.found.append(("all-to-all", groups.reshape(-1, count).tolist(),
                               self.bytes(self.now.shape, {give: padded})))

    def pair(self):
        """(dimension that is split less after it, one that is split more, how many devices), or None."""
        now, target = self.now.shape[:-1], self.target.shape[:-1]
        for take in sorted(range(len(now)), key=lambda dim: (now[dim], -dim)):
            count = target[take] // now[take]
            if count > 1 and target[take] % now[take] == 0:
                left = {give: now[give] // count for give in reversed(range(len(now)))
                        if give != take and now[give] % count == 0}
                best = [give for give in left if left[give] == target[give]]
                best += [give for give in left if left[give] == now[take]]
                if best:
                    return best[0], take, count
        return None


def _cut(whole, parts):
    """(the Tiling in which devices that hold the same part of `whole` cut it, so that there are as many as in
    `parts`; into how many along each dimension), or (None, None)."""
    free, count, factors = whole.shape[-1] // parts.shape[-1], whole.ndim - 1, [1] * (whole.ndim - 1)
    growth = [max(want // have, 1) for have, want in zip(whole.shape[:-1], parts.shape[:-1])]
    for dim in sorted(range(count), key=lambda dim: growth[dim] % whole.shape[-1] != 0):
        factors[dim] = math.gcd(free, growth[dim])
        free //= factors[dim]
    if free > 1:
        return None, None
    grid = whole.reshape(*whole.shape[:-1], *factors, -1)
    made = grid.transpose(*[i for dim in range(count) for i in (dim, count + dim)], 2 * count)
    return made.reshape(*map(math.prod, zip(whole.shape, factors)), -1), factors


def _split(grid, dim, count):
    """A Tiling in which a dimension is two, the second of `count`."""
    return grid.reshape(*grid.shape[:dim], -1, count, *grid.shape[dim + 1:])

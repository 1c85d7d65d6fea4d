"""What an index of a kernel's Ref selects, as values of the kernel: for each axis the places."""
import numpy as np

from ....core.refs import TRACED
from .kernel_text import ADD, AT_LEAST, INT, LESS, MAXIMUM, MINIMUM, MULTIPLY, Value


class Index:
    """What an index selects: for each axis of the Ref a place, a range or an array of places."""

    def __init__(self, writer, shape, operands, masked, storing):
        self.writer, self.operands, self.masked, self.storing = writer, iter(operands), masked, storing
        self.inside = []                # conditions on arrays of places, each with its axes of the result
        # for each axis of the Ref (start, step, axis of the result); of the result, the sizes
        self.terms = [(None, 1, axis) for axis in range(len(shape))]
        self.result = list(shape)       # sizes by axes; None for one that is no more
        self.order = list(range(len(shape)))
        self.arrays = {}                # axis of the Ref -> (places, their axes of the result)

    def shape(self):
        """The shape of what is selected."""
        return tuple(self.result[i] for i in self.order)

    def transpose(self, order):
        """Put the axes of what is selected in another order."""
        self.order = [self.order[i] for i in order]

    def at(self, what):
        """Select a part of what is selected, by the static part of an index."""
        entries = list(what)
        taken = sum(e is not None and e is not Ellipsis for e in entries)
        gap = [("slice", None, None, None)] * (len(self.order) - taken)
        here = entries.index(Ellipsis) if Ellipsis in entries else len(entries)
        entries[here:here + (Ellipsis in entries)] = gap
        order, axes, arrays = [], iter(self.order), []
        together = self._advanced_together(entries)
        for entry in entries:
            if entry is None:
                self.result.append(1)
                order.append(len(self.result) - 1)
                continue
            axis = next(axes)
            size = self.result[axis]
            if type(entry) is tuple:
                self._range(axis, entry, size)
                order.append(axis)
                continue
            place = next(self.operands) if entry is TRACED else entry
            if isinstance(entry, bool):
                raise NotImplementedError("a bool in the index of a Ref")
            if entry is TRACED and place.shape:
                arrays.append((axis, place))
                order.append(None)
                continue
            if not isinstance(place, Value):
                place += size * (place < 0)
            self._move(axis, self._inside(place, size, 1), 0)
            self.result[axis] = None
        if arrays:
            self._places(arrays, order, together)
        self.order = [axis for axis in order if axis is not None]

    @staticmethod
    def _advanced_together(entries):
        """Are all indices that are not slices beside each other?  Else what arrays select comes first."""
        places = [i for i, entry in enumerate(entries) if entry is not None and type(entry) is not tuple]
        return not places or places[-1] - places[0] == len(places) - 1

    def _range(self, axis, entry, size):
        kind, start, *rest = entry
        if kind == "slice":
            found = range(*slice(start, *rest).indices(size))
            self._move(axis, found.start if found.start else None, found.step)
            self.result[axis] = len(found)
            return
        length, step = rest
        place = next(self.operands) if start is TRACED else start
        if length is TRACED:        # of a part that is copied
            length = next(self.operands)
        else:
            place = self._inside(place, size, (length - 1) * step + 1)
        self._move(axis, place, step)
        self.result[axis] = length

    def _inside(self, place, size, length):
        """Where a window of a length begins, moved to be inside; under a mask it stays where it is."""
        if not isinstance(place, Value):
            return place if self.masked else min(max(place + size * (place < 0), 0), size - length)
        w = self.writer
        place = w.convert(place, INT)
        if self.masked:
            return place
        negative = w.compare(LESS, place, w.constant(0))
        place = w.select(negative, w.binary(ADD, place, w.constant(size)), place)
        return w.binary(MINIMUM, w.binary(MAXIMUM, place, w.constant(0)), w.constant(size - length))

    def _move(self, axis, start, step):
        for dim, (begin, stride, of) in enumerate(self.terms):
            if of == axis:
                self.terms[dim] = self._plus(begin, start, stride), stride * step, axis if step else None

    def _plus(self, begin, start, stride):
        w = self.writer
        if start is None:
            return begin
        if not isinstance(start, Value):
            start = w.constant(start)
        if stride != 1:
            start = w.binary(MULTIPLY, start, w.constant(stride))
        return start if begin is None else w.binary(ADD, begin, start)

    def _places(self, arrays, order, together):
        w = self.writer
        shape = np.broadcast_shapes(*[place.shape for _, place in arrays])
        first = len(self.result)
        self.result += shape
        new = list(range(first, first + len(shape)))
        at = order.index(None) if together else 0
        order[at:at] = new
        for axis, place in arrays:
            size, place = self.result[axis], w.full(w.convert(place, INT), shape)
            if not self.masked:
                negative = w.compare(LESS, place, w.constant(0))
                place = w.select(negative, w.binary(ADD, place, w.constant(size)), place)
                if self.storing:
                    self.inside += [(w.compare(AT_LEAST, place, w.constant(0)), new),
                                    (w.compare(LESS, place, w.constant(size)), new)]
                else:
                    place = w.binary(MINIMUM, w.binary(MAXIMUM, place, w.constant(0)), w.constant(size - 1))
            for dim, (begin, stride, of) in enumerate(self.terms):
                if of == axis:
                    if stride != 1:
                        place = w.binary(MULTIPLY, place, w.constant(stride))
                    self.arrays[dim] = place, new
                    self.terms[dim] = begin, 0, None
            self.result[axis] = None

    def _placed(self, x, new):
        """A value with the axes `new` of the result, with as many axes as the result."""
        sizes = [self.result[a] if a in new else 1 for a in self.order]
        return self.writer.broadcast(x, sizes, [self.order.index(a) for a in new])

    def conditions(self):
        """Where arrays of places are inside, as values with as many axes as the result."""
        return [self._placed(*each) for each in self.inside]

    def along(self, dim, shape):
        """The places along an axis of the Ref, with as many axes as the result; None for the first."""
        w = self.writer
        start, step, axis = self.terms[dim]
        found = None
        if dim in self.arrays:
            found = self._placed(*self.arrays[dim])
        elif axis is not None and axis in self.order and self.result[axis] > 1:
            at = self.order.index(axis)
            found = w.range(self.result[axis], at, [n if i == at else 1 for i, n in enumerate(shape)])
            if step != 1:
                found = w.binary(MULTIPLY, found, w.constant(step))
        if start is None:
            return found
        return start if found is None else w.binary(ADD, start, found)

"""Places in memory as Mosaic has them: what an index selects, reading and writing, copies and semaphores."""
import math

import numpy as np

from ....core.avals import ShapedArray
from ....numpy.indexing.refs import shape_of_rows
from . import kernel_text as t
from .kernel_index import Index
from .kernel_rules import results_of
from .kernel_text import INT, generic
from .mosaic_text import Place, memory_type
from .tpu_parts import SEMAPHORES

_KINDS = {None: "vmem", "default": "vmem", **{kind: kind for kind in (
    "any", "cmem", "hbm", "smem", "vmem", "vmem_shared")}}


def kind_of_memory(memory):
    """(the type of elements, the kind of memory) of a KernelMemory."""
    if memory.space in SEMAPHORES:
        return "!tpu.dma_semaphore" if memory.space == "dma" else "!tpu.semaphore", "semaphore_mem"
    if memory.space not in _KINDS:
        raise NotImplementedError(f"memory of the kind {memory.space!r}")
    return memory_type(memory.aval.dtype), _KINDS[memory.space]


class _Part:
    """What the static part `layout` of an index, with its operands, selects of the memory of a Ref."""

    def __init__(self, w, ref, layout, operands):
        memory, operands = ref._value, iter(operands)
        self.place, squeezed = w.places[memory.number], memory.blocks.squeezed if memory.blocks else ()
        # libtpu checks what is outside
        dtype, index = ref.dtype, Index(w, ref.shape, operands, True, False)
        for how, what in layout:
            if how == "at":
                index.at(what)
            elif how == "transpose":
                index.transpose(what)
            else:       # of the part that is selected until here
                self._select(index, squeezed)
                shape = self.shape
                if how == "bitcast":
                    shape, dtype = shape_of_rows(ShapedArray(shape, dtype), what), what
                elif how == "reshape":
                    shape = [math.prod(shape) // -math.prod(what) if n < 0 else n for n in what]
                self.place, squeezed = w.formed(self.part(w), how, shape, dtype), ()
                index = Index(w, shape, operands, True, False)
        self._select(index, squeezed)

    def _select(self, index, squeezed):
        if index.arrays:
            raise NotImplementedError("an array in the index of a Ref: TPUs read blocks")
        rest = iter(index.terms)
        terms = [(None, 1, None) if d in squeezed else next(rest) for d in range(len(self.place.shape))]
        self.starts = [start for start, _, _ in terms]
        self.steps = [1 if axis is None else step for _, step, axis in terms]
        self.sizes = [1 if axis is None else index.result[axis] for _, _, axis in terms]
        self.shape = index.shape()
        axes = [axis for _, _, axis in terms if axis is not None]
        self.kept = [index.result[axis] for axis in axes]       # sizes that are left, as they are in memory
        self.order = [axes.index(axis) for axis in index.order if axis in axes]
        if any(step < 1 for step in self.steps):
            raise NotImplementedError("an index that goes backwards")

    def part(self, w):
        """It as a Place of its own."""
        if self.strided or self.order != sorted(self.order):
            raise NotImplementedError("a copy of a part of a Ref with steps, or transposed, or its bits")
        return w.view(self.place, self.starts, self.sizes, self.shape)

    strided = property(lambda self: any(step != 1 for step in self.steps))

    def value(self, w, found):
        """The value that is selected, of what is read."""
        return w.reshape(w.transpose(w.reshape(found, self.kept), self.order), self.shape)

    def stored(self, w, value):
        """The reverse of `value`."""
        value = w.reshape(value, [self.kept[i] for i in self.order])
        return w.reshape(w.transpose(value, np.argsort(self.order)), self.sizes)

    def text(self, w):
        """(the place and where in it, the strides) as operations have them."""
        return (f"{self.place.name}[{', '.join(map(w.at, self.starts))}]",
                f"{{strides = array<i32: {', '.join(map(str, self.steps))}>}}")


def _stored(dtype):
    return INT if t.kind_of(dtype) == "b" else dtype


def load(w, eqn, *operands):
    masked, out = eqn.params["masked"], eqn.params["out"]
    *operands, mask, other = operands if masked else (*operands, None, None)
    part = _Part(w, eqn.params["ref"], eqn.params["layout"], operands)
    dtype = _stored(out.dtype)
    where, strides = part.text(w)
    if part.place.space == "smem":
        if out.shape:
            raise NotImplementedError("an array of a Ref in SMEM, of which single elements are read")
        found = w.emit(f"memref.load {where}", (), dtype, part.place.type)
    else:
        made = w.value("", part.sizes, dtype)
        name = w.operation(f"tpu.strided_load {where} {strides} : {part.place.type}, {made.type}"
                           if part.strided else f"vector.load {where} : {part.place.type}, {made.type}")
        found = part.value(w, made._replace(name=name))
    found = w.convert(found, out.dtype)
    return w.select(mask, found, w.full(other, out.shape)) if masked else found


def store(w, eqn, *operands):
    masked, how, out = (eqn.params[name] for name in ("masked", "how", "out"))
    if how is not None:
        raise NotImplementedError("an atomic operation")
    *operands, value, mask = operands if masked else (*operands, None)
    part = _Part(w, eqn.params["ref"], eqn.params["layout"], operands)
    value, (where, strides) = w.convert(value, _stored(out.dtype)), part.text(w)
    if part.place.space == "smem":
        if out.shape or masked:
            raise NotImplementedError("an array written to a Ref in SMEM, where single elements are")
        w.lines.append(f"memref.store {value.name}, {where} : {part.place.type}")
        return []
    value = part.stored(w, value)
    if part.strided:
        if masked:
            raise NotImplementedError("a mask where elements are written with steps")
        w.lines.append(f"tpu.strided_store {where}, {value.name} {strides} : {part.place.type}, {value.type}")
        return []
    mask = part.stored(w, mask) if masked else None
    w.lines.append(f"tpu.vector_store {where}, {value.name}{f' masked {mask.name}' if mask else ''} "
                   f"{{strides = array<i32>}} : {part.place.type}, {value.type}, "
                   f"{mask.type if mask else ''}")
    return []


def on_memory(w, eqn, *operands):
    views, rest = [], list(operands)
    for view in eqn.params["views"]:
        if view is None:
            views.append(None)
            continue
        ref, layout, count = view
        views.append(_Part(w, ref, layout, rest[:count]).part(w))
        del rest[:count]
    how, priority = eqn.params["how"], eqn.params["priority"]
    return _copy(w, views, priority, *rest) if how == "copy" else _ON_MEMORY[how](w, views, *rest)


def _named(word, place):
    return f" {word}({place.name} : {place.type})" if place is not None else ""


def _copy(w, views, priority, *device):
    source, target, target_semaphore, source_semaphore = views
    to = ""
    if device:
        w.communicates, to = True, f" device_id({device[0].name})"
    w.lines.append(f"tpu.enqueue_dma{_named('source', source)}{_named('target', target)}"
                   f"{_named('source_semaphore', source_semaphore)}"
                   f"{_named('target_semaphore', target_semaphore)}{to}"
                   f"{f' {{priority = {priority} : i32}}' if priority else ''}")
    return []


def _wait_copy(w, views):
    semaphore, source, target = views
    w.lines.append(f"tpu.wait_dma2{_named('semaphore', semaphore)}{_named('src', source)}"
                   f"{_named('dst', target)}")
    return []


def _signal(w, views, count, *device):
    to = ""
    if device:
        w.communicates, to = True, f" device_id {device[0].name}"
    w.lines.append(f"tpu.sem_signal {views[0].name}, {count.name}{to} : {views[0].type}")
    return []


def _wait(w, views, count):
    w.lines.append(f"tpu.sem_wait {views[0].name}, {count.name} : {views[0].type}")
    return []


def _read(w, views):
    return [w.emit(f"tpu.sem_read {views[0].name}", (), INT, f"{views[0].type} -> i32")]


_ON_MEMORY = {"wait_copy": _wait_copy, "signal": _signal, "wait": _wait, "read": _read}


def scope_begin(w, eqn):
    w.scopes.append(len(w.lines))
    w.lines.append("")      # written at the end, when the results are known
    for ref in eqn.params["refs"]:
        memory = ref._value
        place = Place(w.new_name(), ref.shape, *kind_of_memory(memory))
        name = "memref.alloca()" if place.space != "semaphore_mem" else "tpu.sem_alloc"
        w.lines.append(f"{place.name} = {name} : {place.type}")
        w.places[memory.number] = place
    return []


def scope_end(w, *operands):
    head, results = results_of(w, operands)
    w.lines[w.scopes.pop()] = f'{head}"tpu.region"() ({{'
    types = ", ".join(x.type for x in operands)
    w.lines += [generic("tpu.yield", operands, ""), f"}}) : () -> ({types})"]
    return results

"""How the operations of a kernel are written for Mosaic, where it differs from others, and the whole text."""
import functools
import math

import numpy as np

from ....core.avals import ShapedArray
from ....numpy.indexing.refs import shape_of_rows
from ....primitives.arrays import elementwise as e, slicing, special, transcendental as f
from ....primitives.arrays.bit_formats import bitcast_convert_type_p
from ....primitives.arrays.contract import dot_general_p
from ....primitives.arrays.precision import Precision
from ....primitives.parallel.collectives import axis_index_p
from . import kernel_text as t
from .kernel_index import Index
from .kernel_memory import load_p, store_p
from .kernel_rules import product_of_elements, results_of, run
from .kernel_text import INT, generic
from .mosaic_text import MosaicWriter, Place, memory_type
from .tpu_parts import memory_p, operation_p, scope_begin_p, scope_end_p

_MATH = {f.exp_p: "exp", f.exp2_p: "exp2", f.log_p: "log", f.log1p_p: "log1p", f.sin_p: "sin", f.cos_p: "cos",
         f.tan_p: "tan", f.tanh_p: "tanh", special.erf_p: "erf", f.sqrt_p: "sqrt",
         f.rsqrt_p: "rsqrt", e.floor_p: "floor", e.ceil_p: "ceil"}
_LATER = -2 ** 63     # a size that is known when the kernel runs
_SEMANTICS = {"arbitrary", "parallel", "core_parallel", "subcore_parallel"}
_SEMAPHORE = "!tpu.semaphore", "semaphore_mem"
_SEMAPHORES = {"dma": "!tpu.dma_semaphore", "regular": "!tpu.semaphore", "barrier": "!tpu.semaphore"}


def _math(name):
    return lambda w, eqn, x: w.wide(functools.partial(w.math, name), x)


def _expm1(w, x):
    return w.wide(lambda x: w.binary(t.SUBTRACT, w.math("exp", x), w.constant(1, x.dtype, x.shape)), x)


def _of_two(name, w, x, y):
    shape = x.shape or y.shape
    return w.wide(lambda x, y: w.emit(f"math.{name} {x.name}, {y.name}", shape, x.dtype),
                  w.full(x, shape), w.full(w.convert(y, x.dtype), shape))


def _bits(name):
    return lambda w, eqn, x: w.math(name, x)


def _round(w, eqn, x):
    name = "round" if eqn.params["rounding_method"] == 0 else "roundeven"
    return w.wide(functools.partial(w.math, name), x)


def _bitcast(w, eqn, x):
    dtype = np.dtype(eqn.params["new_dtype"])
    if dtype.itemsize != x.dtype.itemsize:
        raise NotImplementedError(f"the bits of {x.dtype.name} as {dtype.name}, of another width: "
                                  "tpu.bitcast has those of rows")
    if not x.shape:
        return w.changed(f"arith.bitcast {x.name}", x, (), dtype, "to")
    return w.generic("tpu.bitcast", [x], x.shape, dtype)


def _concatenate(w, eqn, *operands):
    if len(operands) == 1:
        return operands[0]
    return w.generic("tpu.concatenate", operands, eqn.outvars[0].aval.shape, operands[0].dtype,
                     f"dimension = {eqn.params['dimension']} : i32")


def _pad(w, eqn, x, value):
    for axis, (low, high, interior) in enumerate(eqn.params["padding_config"]):
        if interior or low < 0 or high < 0:
            raise NotImplementedError("padding between elements, or of less than none")
        if not low and not high:
            continue
        sizes, parts = [*x.shape], [x]
        for width, at in ((low, 0), (high, 2)):
            if width:
                sizes[axis] = width
                parts.insert(at, w.full(value, sizes))
        sizes[axis] = x.shape[axis] + low + high
        x = w.generic("tpu.concatenate", parts, sizes, x.dtype, f"dimension = {axis} : i32")
    return x


def _slice(w, eqn, x):
    p = eqn.params
    strides = p["strides"] or [1] * len(x.shape)
    if any(step != 1 for step in strides):
        raise NotImplementedError("a slice of a value with steps: read the Ref with them")
    sizes = eqn.outvars[0].aval.shape
    return w.generic("vector.extract_strided_slice", [x], sizes, x.dtype,
                     f"offsets = {[*p['start_indices']]}, sizes = {[*sizes]}, strides = {[*strides]}")


def _dot_general(w, eqn, x, y):
    (over_x, over_y), (batch_x, batch_y) = eqn.params["dimension_numbers"]
    out = eqn.outvars[0].aval
    free = [[i for i in range(len(v.shape)) if i not in (*over, *batch)]
            for v, over, batch in ((x, over_x, batch_x), (y, over_y, batch_y))]
    if len(over_x) != 1 or len(free[0]) != 1 or len(free[1]) != 1:
        return product_of_elements(w, eqn, x, y)
    if x.dtype != y.dtype and t.kind_of(x.dtype) == t.kind_of(y.dtype) == "f":
        x, y = w.convert(x, np.float32), w.convert(y, np.float32)
    sums = np.dtype("float32") if t.kind_of(x.dtype) == "f" else INT
    order = [n for b in range(len(batch_x)) for n in (0, batch_x[b])] + [0, *free[0], 1, *free[1]]
    numbers = ", ".join(map(str, map(list, (over_x, over_y, *free, order, batch_x, batch_y))))
    highest = _first(eqn.params["precision"]) is Precision.HIGHEST and x.dtype == np.float32
    zero = w.constant(0, sums, out.shape)
    found = w.generic("tpu.matmul", [x, y, zero], out.shape, sums,
                      f"dimension_numbers = #tpu.dot_dimension_numbers<{numbers}>, transpose_lhs = false, "
                      "transpose_rhs = false, transpose_lhs_hint = false" +
                      highest * ", precision = #tpu.contract_precision<fp32>")
    return w.convert(found, out.dtype)


def _first(precision):
    return precision[0] if isinstance(precision, (tuple, list)) else precision


# --- memory -----------------------------------------------------------------------------------------

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


def _load(w, eqn, *operands):
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


def _store(w, eqn, *operands):
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


# --- what TPUs do besides ---------------------------------------------------------------------------

def _operation(w, eqn, *operands):
    name, attributes, out = (eqn.params[n] for n in ("name", "attributes", "out"))
    if out is not None:
        return [w.generic(f"tpu.{name}", operands, out.shape, out.dtype, attributes)]
    w.lines.append(generic(f"tpu.{name}", operands, attributes))
    return []


def _on_memory(w, eqn, *operands):
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


def _scope_begin(w, eqn):
    w.scopes.append(len(w.lines))
    w.lines.append("")      # written at the end, when the results are known
    for ref in eqn.params["refs"]:
        memory = ref._value
        place = Place(w.new_name(), ref.shape, *_kind(memory))
        name = "memref.alloca()" if place.space != "semaphore_mem" else "tpu.sem_alloc"
        w.lines.append(f"{place.name} = {name} : {place.type}")
        w.places[memory.number] = place
    return []


def _scope_end(w, *operands):
    head, results = results_of(w, operands)
    w.lines[w.scopes.pop()] = f'{head}"tpu.region"() ({{'
    types = ", ".join(x.type for x in operands)
    w.lines += [generic("tpu.yield", operands, ""), f"}}) : () -> ({types})"]
    return results


def _axis_index(w, eqn):
    if w.mesh is None:
        raise NotImplementedError("the place of a device along an axis outside of jax.shard_map")
    w.communicates = True
    (axis,) = eqn.params["axes"]
    i = w.mesh.axis_names.index(axis)
    number = w.emit("tpu.device_id", (), INT)
    number = w.binary(t.DIVIDE, number, w.constant(math.prod(w.mesh.axis_sizes[i + 1:])))
    return w.binary(t.REMAINDER, number, w.constant(w.mesh.axis_sizes[i]))


_RULES = {
    **{p: _math(name) for p, name in _MATH.items()},
    e.population_count_p: _bits("ctpop"), e.clz_p: _bits("ctlz"), e.round_p: _round,
    f.expm1_p: lambda w, eqn, x: _expm1(w, x),
    f.pow_p: lambda w, eqn, x, y: _of_two("powf", w, x, y),
    e.atan2_p: lambda w, eqn, x, y: _of_two("atan2", w, x, y),
    bitcast_convert_type_p: _bitcast, slicing.concatenate_p: _concatenate, slicing.slice_p: _slice,
    slicing.pad_p: _pad, dot_general_p: _dot_general, load_p: _load, store_p: _store,
    operation_p: _operation, memory_p: _on_memory, axis_index_p: _axis_index, scope_begin_p: _scope_begin,
    scope_end_p: lambda w, eqn, *operands: _scope_end(w, *operands)}


# --- the whole --------------------------------------------------------------------------------------

def _kind(memory):
    """(the type of elements, the kind of memory) of a KernelMemory."""
    if memory.space in _SEMAPHORES:
        return _SEMAPHORES[memory.space], "semaphore_mem"
    return memory_type(memory.aval.dtype), memory.space or "vmem"


def text(kernel, mesh=None):
    """(A `Kernel` in Mosaic's dialects, does it meet other devices?); `mesh` is that of `shard_map`."""
    w = MosaicWriter(_RULES, len(kernel.grid), mesh)
    ids = [f"{x.name}: i32" for x in w.ids]
    arguments, windows, functions = [], [], []
    scalars = len(kernel.scalars)
    for i, ref in enumerate(kernel.refs):
        memory = ref._value
        whole = memory.blocks is None
        arguments.append(w.argument(i, memory.array.shape if whole else memory.blocks.sizes, *_kind(memory)))
        if not whole:
            _check_tiles(kernel, kernel.blocks[i - scalars].name, memory)
        if kernel.grid and scalars <= i < scalars + len(kernel.blocks):
            windows.append(_window(memory, i))
            if memory.space in (None, "vmem", "smem"):
                functions += _place_of_block(kernel, memory, i, ids, arguments[:scalars])
    if kernel.core._value.barrier:
        place = w.places["barrier"] = Place("%barrier", (), *_SEMAPHORE)
        w.lines.append(f"{place.name} = tpu.sem_barrier : {place.type}")
        w.communicates = True
    run(w, kernel.program, [])
    how = _semantics(kernel)
    attributes = [
        "tpu.core_type = #tpu.core_type<tc>", f"scalar_prefetch = {scalars} : i64",
        f"scratch_operands = {len(kernel.refs) - scalars - len(kernel.blocks)} : i64",
        f"dimension_semantics = [{', '.join(f'#tpu.dimension_semantics<{x}>' for x in how)}]"]
    if kernel.grid:
        sizes = [str(_LATER if n is None else n) for n in kernel.grid]
        attributes += [f"iteration_bounds = array<i64: {', '.join(sizes)}>",
                       f"window_params = [{', '.join(windows)}]"]
    head = f"func.func @{kernel.name}({', '.join([*ids, *arguments])})"
    lines = ["module {", f"{head} attributes {{{', '.join(attributes)}}} {{", *w.lines, "return", "}",
             *functions, "}"]
    return "\n".join(lines), w.communicates


def _semantics(kernel):
    """In what order places along the axes of the grid may be computed."""
    given = getattr(kernel.options[0], "dimension_semantics", None) or ["arbitrary"] * len(kernel.own_grid)
    given = [getattr(x, "value", x) for x in given]
    if len(given) != len(kernel.own_grid) or not set(given) <= _SEMANTICS:
        raise ValueError(f"pallas_call of {kernel.name}: dimension_semantics={given} must have one of "
                         f"{', '.join(sorted(_SEMANTICS))} for each axis of the grid {kernel.own_grid}")
    return ["parallel"] * len(kernel.axes) + given


def _check_tiles(kernel, name, memory):
    """ValueError for blocks in VMEM that do not go with tiles of 8 rows and 128 columns."""
    sizes, shape = memory.blocks.sizes, memory.array.shape
    for axis, unit in ((-1, 128), (-2, 8)):
        if len(sizes) >= -axis and len(sizes) > 1 and sizes[axis] % unit and sizes[axis] != shape[axis]:
            raise ValueError(f"pallas_call of {kernel.name}: the blocks of {name}, {tuple(sizes)} of an "
                             f"array of shape {shape}: on a TPU the last two sizes are multiples of 8 and "
                             "128, or those of the array")


def _window(memory, number):
    """How the compiler brings blocks of an array."""
    if memory.space not in (None, "vmem", "smem"):
        return "{}"
    blocks = memory.blocks
    sizes = memory.array.shape if blocks is None else blocks.sizes
    parts = [f"transform_indices = @block{number}",
             f"window_bounds = array<i64: {', '.join(map(str, sizes))}>"]
    if blocks is None and memory.space != "smem":
        parts.append("pipeline_mode = #tpu.pipeline_mode<synchronous>")
    elif blocks is not None and blocks.windows:
        zeros = ", ".join("0" * len(sizes))
        parts.append(f"window_kind = #tpu.element_window<[{zeros}], [{zeros}]>")
    return f"{{{', '.join(parts)}}}"


def _place_of_block(kernel, memory, number, ids, scalars):
    """The function from the place in the grid to that of a block of an array."""
    w, blocks = MosaicWriter(_RULES, len(kernel.grid)), memory.blocks
    for i, ref in enumerate(kernel.refs[:len(scalars)]):
        w.argument(i, ref.shape, *_kind(ref._value))
    if blocks is None:
        found = [w.constant(0) for _ in memory.array.shape]
    else:
        found = [w.convert(at, INT) for at in run(w, blocks.index, w.ids)]
        if blocks.windows:
            found = [at if d in blocks.windows else w.binary(t.MULTIPLY, at, w.constant(blocks.sizes[d]))
                     for d, at in enumerate(found)]
    types = ", ".join("i32" for _ in found)
    return [f"func.func @block{number}({', '.join([*ids, *scalars])}) -> ({types}) {{", *w.lines,
            f"return {', '.join(x.name for x in found)} : {types}" if found else "return", "}"]

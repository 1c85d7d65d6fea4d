"""The custom call of a kernel that Mosaic compiles: its text, and how it is compiled."""
import base64
import json

from . import kernel_text as t
from .kernel_rules import run
from .kernel_text import INT
from .mosaic_memory import kind_of_memory
from .mosaic_rules import RULES
from .mosaic_text import MosaicWriter, Place

_FLAGS = ("disable_bounds_checks", "disable_semaphore_checks", "skip_device_barrier",
          "internal_scratch_in_bytes")
_VMEM = 1       # the number of that kind of memory
_LATER = -2 ** 63     # a size that is known when the kernel runs
_SEMANTICS = {"arbitrary", "parallel", "core_parallel", "subcore_parallel"}


def config(kernel, mesh=None):
    """(The configuration, more attributes as text, has it side effects?) of the call of a `Kernel`, on
    devices of the mesh of a `shard_map`.

    Raises:
        NotImplementedError: for what Mosaic cannot do.
        ValueError: where devices meet, and there is no `collective_id`; for other options that do not go.
    """
    from ....runtime.mlir import mosaic
    params, cost = kernel.options
    for name, usual in (("serialization_format", 1), ("needs_layout_passes", True),
                        ("use_tc_tiling_on_sc", None)):
        if getattr(params, name, usual) != usual:
            raise NotImplementedError(f"pallas_call of {kernel.name}: compiler_params with {name}="
                                      f"{getattr(params, name)!r}, where it is {usual!r}")
    module, communicates = text(kernel, mesh)
    call = {"body": base64.b64encode(mosaic.serialized(module)).decode(), "serialization_format": 1,
            "needs_layout_passes": True}
    if cost is not None:
        call["cost_estimate"] = {"flops": int(cost.flops), "transcendentals": int(cost.transcendentals),
                                 "bytes_accessed": int(cost.bytes_accessed)}
    collective = getattr(params, "collective_id", None)
    if kernel.core._value.barrier and collective is None:
        raise ValueError(f"pallas_call of {kernel.name}: a kernel with get_barrier_semaphore() needs "
                         "compiler_params=tpu.CompilerParams(collective_id=...), a number that no other "
                         "kernel that may run at the same time has")
    if collective is not None:
        if not kernel.core._value.barrier and not params.allow_collective_id_without_custom_barrier:
            raise ValueError(f"pallas_call of {kernel.name}: collective_id={collective} is for kernels with "
                             "get_barrier_semaphore(), and this one has none")
        call["collective_id"] = collective
    if communicates:
        call["has_communication"] = True
    for name in _FLAGS:
        if value := getattr(params, name, None):
            call[name] = value
    if fusion := getattr(params, "allow_input_fusion", None):
        first = kernel.grid.count(None) + len(kernel.scalars)
        call["allow_input_fusion"] = [False] * first + [*map(bool, fusion)]
    if not getattr(params, "shape_invariant_numerics", True):
        call["shape_invariant_numerics"] = False
    whole = {"custom_call_config": call}
    if flags := getattr(params, "flags", None):
        whole["flag_configs"] = [{"flag_type": name, "value": {_flag_kind(kernel, name, value): value}}
                                 for name, value in flags.items()]
    if (limit := getattr(params, "vmem_limit_bytes", None)) is not None:
        whole["scoped_memory_configs"] = [{"memory_space": _VMEM, "offset": 0, "size": limit}]
    effects = getattr(params, "has_side_effects", False)
    return json.dumps(whole), f', kernel_name = "{kernel.name}"', effects not in (False, None)


def _flag_kind(kernel, name, value):
    for kind, called in ((bool, "boolean_value"), (int, "integer_value"), (float, "double_value")):
        if isinstance(value, kind):
            return called
    raise ValueError(f"pallas_call of {kernel.name}: the flag {name} is a bool, an int or a float, not "
                     f"{value!r}")


def text(kernel, mesh=None):
    """(A `Kernel` in Mosaic's dialects, does it meet other devices?); `mesh` is that of `shard_map`."""
    fuses = bool(getattr(kernel.options[0], "fuse_transposed_lhs_in_matmul", False))
    w = MosaicWriter(RULES, len(kernel.grid), mesh, fuses)
    ids = [f"{x.name}: i32" for x in w.ids]
    arguments, windows, functions = [], [], []
    scalars = len(kernel.scalars)
    for i, ref in enumerate(kernel.refs):
        memory = ref._value
        sizes = memory.array.shape if memory.blocks is None else memory.blocks.sizes
        arguments.append(w.argument(i, sizes, *kind_of_memory(memory)))
        if memory.blocks is not None:
            _check_tiles(kernel, kernel.blocks[i - scalars].name, memory)
        if kernel.grid and scalars <= i < scalars + len(kernel.blocks):
            windows.append(_window(memory, w.places[i]))
            if w.places[i].space in ("vmem", "smem"):
                functions += _place_of_block(kernel, memory, ids, arguments[:scalars])
    if kernel.core._value.barrier:
        place = w.places["barrier"] = Place("%barrier", (), "!tpu.semaphore", "semaphore_mem")
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


def _window(memory, place):
    """How the compiler brings blocks of an array."""
    if place.space not in ("vmem", "smem"):
        return "{}"
    blocks = memory.blocks
    parts = [f"transform_indices = @block{memory.number}",
             f"window_bounds = array<i64: {', '.join(map(str, place.shape))}>"]
    if blocks is None and place.space != "smem":
        parts.append("pipeline_mode = #tpu.pipeline_mode<synchronous>")
    elif blocks is not None and blocks.windows:
        zeros = ", ".join("0" * len(place.shape))
        parts.append(f"window_kind = #tpu.element_window<[{zeros}], [{zeros}]>")
    return f"{{{', '.join(parts)}}}"


def _place_of_block(kernel, memory, ids, scalars):
    """The function from the place in the grid to that of a block of an array."""
    w, blocks = MosaicWriter(RULES, len(kernel.grid)), memory.blocks
    for i, ref in enumerate(kernel.refs[:len(scalars)]):
        w.argument(i, ref.shape, *kind_of_memory(ref._value))
    if blocks is None:
        found = [w.constant(0) for _ in memory.array.shape]
    else:
        found = [w.convert(at, INT) for at in run(w, blocks.index, w.ids)]
        if blocks.windows:
            found = [at if d in blocks.windows else w.binary(t.MULTIPLY, at, w.constant(blocks.sizes[d]))
                     for d, at in enumerate(found)]
    types = ", ".join("i32" for _ in found)
    return [f"func.func @block{memory.number}({', '.join([*ids, *scalars])}) -> ({types}) {{", *w.lines,
            f"return {', '.join(x.name for x in found)} : {types}" if found else "return", "}"]

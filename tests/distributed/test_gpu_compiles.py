"""XLA compiles for a GPU that is not here what the op table, the golden programs and the examples write.

Minutes of compiling: `make gpu` runs these (HLOTRACE_TEST_GPU=1), other runs of the tests do not.
"""
import ast
import os
import re

import numpy as np
import pytest
import triton_kernels
from golden_programs import FAMILIES
from gpu_topologies import lacks
from op_table import ROWS, sharding
from places import ROOT

import hlotrace
import hlotrace.numpy as jnp
from hlotrace import topologies
from hlotrace.experimental import pallas
from hlotrace.inspection.communication import collectives
from hlotrace.sharding import Mesh, NamedSharding, P, SingleDeviceSharding

if os.environ.get("HLOTRACE_TEST_GPU") != "1" or lacks():
    # hundreds of tests are not made
    pytest.skip(lacks() or "`make gpu` runs these", allow_module_level=True)


def gpus(count):
    return topologies.get_topology_desc(f"h100:{count}").devices


def struct(x):
    x = np.asarray(x)
    return hlotrace.ShapeDtypeStruct(x.shape, x.dtype)


# What is for the CPU alone: the row, and what is said.
REFUSED = {
    "call_exported": (ValueError, "exported for platforms ('cpu',) but it is used on 'cuda'"),
    "ffi_call": (hlotrace.errors.JaxRuntimeError, "No FFI handler registered for lapack_spotrf_ffi"),
    "schur": (NotImplementedError, "the real Schur form is only implemented on the CPU"),
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_of_the_op_table_is_compiled(row, monkeypatch):
    monkeypatch.setattr(sharding, "mesh", lambda: Mesh(np.array(gpus(2)), "x"))
    monkeypatch.setattr(hlotrace, "devices", lambda backend=None: gpus(2))
    compiled = lambda: compile_for(row.fun, row.sample(row.base))
    if row.name in REFUSED:
        error, words = REFUSED[row.name]
        with pytest.raises(error, match=re.escape(words)):
            compiled()
    else:
        assert "is_scheduled=true" in compiled().as_text()


def compile_for(function, args):
    """A function compiled for one GPU, or for as many as the meshes that it names have."""
    def compiled(where):
        jitted = hlotrace.jit(lambda *args: function(*args), in_shardings=where)
        return jitted.lower(*map(struct, args)).compile()
    try:
        return compiled(SingleDeviceSharding(gpus(1)[0]))
    except ValueError as error:
        found = re.search(r"has (\d+) devices, and the program runs on 1", str(error))
        if not found and "incompatible devices" not in str(error):
            raise
        count = int(found[1]) if found else 2
    return compiled(NamedSharding(Mesh(np.array(gpus(count)), "all"), P()))


# They have the real Schur form, a kernel that no platform has, a partition that is NotImplemented, a program
# of others.
NO_KERNEL = hlotrace.errors.JaxRuntimeError, "No FFI handler registered for kernel on a platform CUDA"
NOT_FOR_GPUS = {
    ("linear_algebra", "condensed forms"): REFUSED["schur"],
    ("effects", "kernels"): NO_KERNEL, ("effects", "kernels in a loop"): NO_KERNEL,
    ("devices", "parts that the user makes, values that lie alike"): (
        TypeError, "'NotImplementedType' object is not callable"),
    ("elsewhere", "an exported function, twice"):
        (ValueError, "exported for platforms ('cpu', 'tpu') but it is used on 'cuda'"),
}


@pytest.mark.parametrize("family, title",
                         [(family, title) for family in FAMILIES for title in FAMILIES[family]])
def test_a_golden_program_is_compiled(family, title):
    function, *args = FAMILIES[family][title]
    if (family, title) in NOT_FOR_GPUS:
        error, words = NOT_FOR_GPUS[family, title]
        with pytest.raises(error, match=re.escape(words)):
            compile_for(function, args)
    else:
        assert "is_scheduled=true" in compile_for(function, args).as_text()


# --- examples over 8 GPUs -----------------------------------------------------------------------------------

def defined(file, mesh):
    """What an example defines before it computes: imports, constants and functions, over another mesh."""
    wanted = [node for node in ast.parse((ROOT / "examples" / file).read_text("utf-8")).body
              if isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.Assign))]
    names = {"MESH": mesh, "__name__": "example"}
    for node in wanted:
        if not isinstance(node, ast.Assign) or all(
                isinstance(n, ast.Name) and n.id.isupper() and n.id != "MESH"
                for target in node.targets for n in getattr(target, "elts", [target])):
            exec(compile(ast.Module([node], []), file, "exec"), names)
    return names


def auto(name, sizes, axes):
    return topologies.get_topology_desc(name).make_mesh(sizes, axes)


def placed(types, mesh, spec_of):
    return hlotrace.tree_util.tree_map_with_path(lambda path, x: hlotrace.ShapeDtypeStruct(
        x.shape, x.dtype, sharding=NamedSharding(mesh, spec_of(path))), types)


@pytest.mark.parametrize("name", ["h100:8", "h100:2x4", "l4:8", "b200:8"])
def test_the_sharded_network_is_compiled(name):
    mesh = auto(name, (4, 2), ("data", "model"))
    example = defined("sharded_mlp.py", mesh)
    rule = lambda path: next(spec for pattern, spec in example["RULES"]
                             if re.search(pattern, hlotrace.tree_util.keystr(path)))
    params = placed(hlotrace.eval_shape(example["init"], hlotrace.random.key(0)), mesh, rule)
    batch = placed((struct(np.zeros((64, 64), np.float32)), struct(np.zeros(64, np.int32))), mesh,
                   lambda path: P("data"))
    compiled = example["step"].lower(params, params, *batch).compile()
    kinds = {found.kind for found in collectives(compiled.as_text(), mesh)}
    assert "all-reduce" in kinds and compiled.memory_analysis().alias_size_in_bytes > 0
    # of a device: products forward, by weights and, but for the first layer, by inputs
    assert compiled.cost_analysis()["flops"] > 2 * 16 * (2 * 64 * 128 + 3 * 128 * 64 + 3 * 64 * 10)


@pytest.mark.parametrize("causal", [False, True])
def test_ring_attention_is_compiled(causal):
    mesh = auto("h100:8", (8,), ("ring",))
    example = defined("ring_attention.py", mesh)
    blocks = P(None, "ring")
    ring = hlotrace.shard_map(lambda q, k, v: example["ring_attention"](q, k, v, causal), mesh=mesh,
                              in_specs=blocks, out_specs=blocks)
    shape = tuple(example[size] for size in ("BATCH", "LENGTH", "HEADS", "WIDTH"))
    qkv = placed((hlotrace.ShapeDtypeStruct(shape, jnp.float32),) * 3, mesh, lambda path: blocks)
    compiled = hlotrace.jit(lambda *qkv: example["value_and_gradients"](ring, *qkv)).lower(*qkv).compile()
    assert {"collective-permute"} <= {found.kind for found in collectives(compiled.as_text(), mesh)}


@pytest.mark.parametrize("name, sizes", [("h100:8", (4, 2)), ("h200:64x8", (64, 8))])
def test_a_step_of_a_gpt_is_compiled(name, sizes):
    mesh = auto(name, sizes, ("data", "model"))
    example = defined("gpt.py", mesh)
    example["SIZES"]["small"] = 2, 512, 8, 512, 64, 64
    args = hlotrace.tree.map(
        lambda x, spec: hlotrace.ShapeDtypeStruct(x.shape, x.dtype, sharding=NamedSharding(mesh, spec)),
        example["types"]("small"), example["specs"](),
        is_leaf=lambda x: isinstance(x, hlotrace.ShapeDtypeStruct))
    with hlotrace.set_mesh(mesh):
        compiled = hlotrace.jit(example["step"]).lower(*args).compile()
    axes = {found.axes for found in collectives(compiled.as_text(), mesh)}
    assert ("data",) in axes and ("model",) in axes


@pytest.mark.parametrize("name", triton_kernels.CASES)
def test_a_kernel_is_compiled_by_triton(name):
    kernel, out, args, options = triton_kernels.CASES[name]
    compiled = hlotrace.jit(pallas.pallas_call(kernel, out, **options),
                            in_shardings=SingleDeviceSharding(gpus(1)[0])).lower(*map(struct, args)).compile()
    assert "__gpu$xla.gpu.triton" in compiled.as_text()

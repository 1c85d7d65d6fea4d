"""What texts of partitioned programs tell: the collectives of HLO."""

import dataclasses
import json
import os
import subprocess
import sys

import pytest
from places import ROOT
from shardy_programs import MANUAL, MLP

from hlotrace.inspection.communication import collectives, table
from hlotrace.runtime.devices import plugins
from hlotrace.sharding import AbstractMesh

MESH = AbstractMesh((4, 2), ("data", "model"))
CUBE = AbstractMesh((2, 1, 2, 2), ("x", "one", "y", "z"))


def read(line, mesh=MESH, head="", computation="main"):
    """What is read of a module with these lines."""
    return collectives(
        f"HloModule m\n{head}\n\nENTRY %{computation} (p: f32[4,8]) -> f32[4,8] {{\n{line}\n}}\n",
        mesh,
    )


DATA, MODEL, BOTH = ("data",), ("model",), ("data", "model")
LINES = [
    ("cpu, lists",
     "  %op1.6 = f32[4,8]{0,1} all-reduce(%copy), channel_id=1, "
     "replica_groups={{0,1},{2,3},{4,5},{6,7}}, "
     "use_global_device_ids=true, to_apply=%region_2.0",
     ("all-reduce", "op1.6", "f32[4,8]", 128, MODEL)),
    ("cpu, iota",
     "  ROOT %all-gather.6 = f32[2048,4096]{1,0} all-gather(%fusion), channel_id=1, "
     "replica_groups=[2,4]<=[4,2]T(1,0), dimensions={0}",
     ("all-gather", "all-gather.6", "f32[2048,4096]", 33554432, DATA)),
    ("cpu, mesh",
     "  %all-reduce.1 = f32[] all-reduce(%r), channel_id=2, "
     "replica_groups=mesh['axis_0'=4,'axis_1'=1,'axis_2'=2] "
     "{'axis_0'}, use_global_device_ids=true, to_apply=%add",
     ("all-reduce", "all-reduce.1", "f32[]", 4, DATA)),
    ("cpu, all-to-all in parts",
     "  %all-to-all = (f32[1,8]{1,0}, f32[1,8]{1,0}, /*index=2*/f32[1,8]{1,0}, "
     "f32[1,8]{1,0}) all-to-all(%a, %b, %c, %d), "
     "channel_id=1, replica_groups={{0,2,4,6},{1,3,5,7}}",
     ("all-to-all", "all-to-all", "(f32[1,8], f32[1,8], f32[1,8], f32[1,8])", 128, DATA)),
    ("cpu, combined",
     "  %all-reduce.8 = (f32[1024]{0}, bf16[3,5]{1,0}) all-reduce(%a, %b), channel_id=1, "
     "replica_groups=mesh['axis_0'=8] {'axis_0'}, to_apply=%add",
     ("all-reduce", "all-reduce.8", "(f32[1024], bf16[3,5])", 4096 + 30, BOTH)),
    ("a permute along one axis",
     "  %op5 = f32[4,8]{1,0} collective-permute(%x), channel_id=1, "
     "source_target_pairs={{0,2},{2,4},{4,6},{6,0},{1,3},{3,5},{5,7},{7,1}}",
     ("collective-permute", "op5", "f32[4,8]", 128, DATA)),
    ("a permute along both",
     "  %p = s4[4,8]{1,0:E(4)} collective-permute(%x), source_target_pairs={{0,3},{1,2}}",
     ("collective-permute", "p", "s4[4,8]", 16, BOTH)),
    ("gpu, an operand beside the result",
     "  %all-gather-start = ((bf16[512,4096]{1,0}), "
     "bf16[2048,4096]{1,0}) all-gather-start(%bitcast.126), channel_id=1, "
     "replica_groups=[2,4]<=[4,2]T(1,0), dimensions={0}\n"
     "  %all-gather-done = bf16[2048,4096]{1,0} all-gather-done(%all-gather-start)",
     ("all-gather", "all-gather-start", "bf16[2048,4096]", 16777216, DATA)),
    ("gpu, combined operands and results; what is done stands elsewhere",
     "  %s = ((bf16[8,4]{1,0}, f32[8]{0}), (bf16[4,4]{1,0}, "
     "f32[4]{0})) reduce-scatter-start(%a, %b), channel_id=7, "
     "replica_groups=mesh['axis_0'=4,'axis_1'=2] {'axis_1'}, dimensions={0}, "
     "to_apply=%add.1.clone",
     ("reduce-scatter", "s", "(bf16[4,4], f32[4])", 48, MODEL)),
    ("gpu, a sum that starts has no operand beside it",
     "  %all-reduce-start = (f32[8]{0}, f32[2]{0}) all-reduce-start(%a, %b), "
     "replica_groups={}, to_apply=%add",
     ("all-reduce", "all-reduce-start", "(f32[8], f32[2])", 40, BOTH)),
    ("gpu, a sum that starts with an operand beside it",
     "  %s = ((f32[8]{0}), f32[8]{0}) all-reduce-start(%a), replica_groups={}, to_apply=%add",
     ("all-reduce", "s", "f32[8]", 32, BOTH)),
    ("only what is done tells operands from results",
     "  s = (f32[8]{0}, u8[2]{0}, f32[16]{0}, u8[4]{0}) all-gather-start(a, b), "
     "replica_groups={}\n"
     "  d = (f32[16]{0}, u8[4]{0}) all-gather-done((f32[8]{0}, u8[2]{0}) s), dimensions={0}",
     ("all-gather", "s", "(f32[16], u8[4])", 68, BOTH)),
    ("gpu, types of operands in the line that is done",
     "  a2a = ((f32[8]{0}), f32[8]{0}) all-to-all-start(x), "
     "replica_groups={{0,1},{2,3},{4,5},{6,7}}, dimensions={0}\n"
     "  d = f32[8]{0} all-to-all-done(((f32[8]{0}), f32[8]{0}) a2a)",
     ("all-to-all", "a2a", "f32[8]", 32, MODEL)),
    ("tpu, tiled layouts and flags",
     "  %collective-permute-start = (f32[4,8]{1,0:T(4,128)S(1)}, f32[4,8]{1,0:T(4,128)S(1)}, "
     "u32[]{:S(2)}, u32[]{:S(2)}) "
     "collective-permute-start(%sine.4), channel_id=1, "
     "source_target_pairs={{0,1},{2,3},{4,5},{6,7}}, "
     'backend_config={"flag_configs":[],"barrier_config":{"barrier_type":"CUSTOM","id":"6"}}\n'
     "  %copy.2 = u32[] copy(%sine.4)\n"
     "  %collective-permute-done = f32[4,8]{1,0:T(4,128)S(1)} "
     "collective-permute-done(%collective-permute-start)",
     ("collective-permute", "collective-permute-start", "f32[4,8]", 128, MODEL)),
    ("tpu, a sum",
     "  %all-reduce.6 = bf16[256,2048]{1,0:T(8,128)(2,1)} all-reduce(%input.3), channel_id=8, "
     'replica_groups=[4,2]<=[8], frontend_attributes={x="all-gather(, replica_groups={{0}}"}, '
     "to_apply=%add.1",
     ("all-reduce", "all-reduce.6", "bf16[256,2048]", 1048576, MODEL)),
    ("a broadcast", "  %cb = pred[3]{0} collective-broadcast(%x), replica_groups={{0,2,4,6},{1,3,5,7}}",
     ("collective-broadcast", "cb", "pred[3]", 3, DATA)),
    ("ragged, of a dynamic size",
     "  %r = c64[<=4,2]{1,0} ragged-all-to-all(%a, %b, %c, %d, %e, %f), "
     "replica_groups={{0,1,2,3,4,5,6,7}}",
     ("ragged-all-to-all", "r", "c64[<=4,2]", 64, BOTH)),
    ("of eight bits, with a token",
     "  %t = (f8e4m3fn[16]{0}, token[]) all-gather(%a), "
     "replica_groups={{0},{1},{2},{3},{4},{5},{6},{7}}, dimensions={0}",
     ("all-gather", "t", "(f8e4m3fn[16], token[])", 16, ())),
]


@pytest.mark.quick
@pytest.mark.parametrize(("line", "expected"), [row[1:] for row in LINES], ids=[row[0] for row in LINES])
def test_a_line_of_a_compiler(line, expected):
    [found] = read(line)
    assert (found.kind, found.name, found.shape, found.bytes, found.axes) == expected
    assert (found.where, found.op, found.in_loop, found.trips) == (None, None, False, 1)


@pytest.mark.quick
@pytest.mark.parametrize(
    "line",
    [
        "  %r = f32[4]{0} reduce(%all-reduce, %zero), dimensions={0}, to_apply=%add",
        "  %d = f32[4]{0} all-gather-done(%s)",
        '  %f = f32[4]{0} fusion(%x), backend_config={"debug":"all-reduce(%y), replica_groups={}"}',
        '  %all-reduce = f32[4]{0} custom-call(%x), metadata={op_name="all-reduce(x)"}',
    ],
)
def test_other_instructions_are_not_collectives(line):
    assert read(line) == []


@pytest.mark.quick
@pytest.mark.parametrize(
    ("groups", "axes"),
    [
        ("{}", ("x", "y", "z")),
        ("{{0,1,2,3,4,5,6,7}}", ("x", "y", "z")),
        ("{{7,5,3,1},{0,2,4,6}}", ("x", "y")),
        ("{{0, 4}, {1, 5}, {2, 6}, {3, 7}}", ("x",)),
        ("{{0,1},{2,3},{4,5},{6,7}}", ("z",)),
        ("{{0,1,4,5},{2,3,6,7}}", ("x", "z")),
        ("[1,8]<=[8]", ("x", "y", "z")),
        ("[8,1]<=[8]", ()),
        ("[4,2]<=[8]", ("z",)),
        ("[2,4]<=[8]", ("y", "z")),
        ("[4,2]<=[2,4]T(1,0)", ("x",)),
        ("[2,4]<=[2,2,2]T(1,0,2)", ("x", "z")),
        ("[4,2]<=[2,2,2]T(0,2,1)", ("y",)),
        ("mesh['a'=2,'b'=4] {'b'}", ("y", "z")),
        ("mesh['a'=2,'b'=4] {'b','a'}", ("x", "y", "z")),
        ("mesh['a'=2,'b'=4] {'b':(1)2}", ("y",)),
        ("mesh['a'=2,'b'=4] {'a','b':(2)2}", ("x", "z")),
        ("mesh['a'=8] {'a':(2)2}", ("y",)),
        ("mesh[a=2,b=4] {a}", ("x",)),
        ("mesh['a'=4,'b'=2], device_ids=([2,4]T(1,0)) {'b'}", ("x",)),
        ("mesh['a'=4,'b'=2], device_ids=(0,4,1,5,2,6,3,7) {'b'}", ("x",)),
        # no set of axes:
        ("{{0,3},{1,2},{4,7},{5,6}}", None),
        ("{{0,1,2},{3,4,5},{6,7}}", None),
        ("{{0,1}}", None),
        ("{{0,8},{1,9}}", None),
        ("[2,8]<=[16]", None),
        ("mesh['a'=8] {'other'}", None),
    ],
)
def test_groups_are_named_by_the_axes_of_the_mesh(groups, axes):
    [found] = read(f"  %r = f32[4]{{0}} all-reduce(%x), replica_groups={groups}, to_apply=%add", CUBE)
    assert (found.axes, found.groups) == (axes, groups)


@pytest.mark.quick
def test_a_line_without_groups_is_still_listed():
    [found] = read("  %r = f32[4]{0} all-reduce(%x), to_apply=%add")
    assert (found.axes, found.groups) == (None, "")
    assert "all-reduce  ?  " in table([found])


FRAMES = r"""
FileNames
1 "/home/me/other.py"
2 "/home/me/n\303\251t \"2\".py"

FunctionNames
1 "main"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=4 end_column=4}
2 {file_name_id=2 function_name_id=1 line=77 end_line=80 column=4 end_column=4}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=1}

"""


@pytest.mark.quick
@pytest.mark.parametrize(("metadata", "where", "op"),
                         [(r'op_name="jit(f)/\303\251\"a{b}\"/dot" stack_frame_id=2',
                           'nét "2".py:77',
                           'jit(f)/é"a{b}"/dot'),
                          ('op_type="add" op_name="f/add" source_file="/a/train.py" source_line=12',
                           "train.py:12",
                           "f/add"),
                          (r'op_name="f" source_file="C:\\a\\b.py" source_line=5 source_end_line=6',
                           "b.py:5",
                           "f"),
                          ('op_name="f" stack_frame_id=9', None, "f"),
                          ('op_name="f" source_file="-" source_line=5', None, "f"),
                          ('op_name="f"', None, "f"),
                          ("", None, None)])
def test_the_users_line_is_told(metadata, where, op):
    line = f"  %r = f32[4]{{0}} all-reduce(%x), replica_groups={{}}, metadata={{{metadata}}}"
    [found] = read(line, head=FRAMES)
    assert (found.where, found.op) == (where, op)


LOOPS = """HloModule m

%inner.body (p: f32[4]) -> f32[4] {
  %deep = f32[4]{0} all-reduce(%p), replica_groups={}, to_apply=%add
}

%body (p: f32[4]) -> f32[4] {
  %p.1 = f32[4]{0} collective-permute(%p), source_target_pairs={{0,1}}
  %call.1 = f32[4]{0} call(%p), to_apply=%shared
  %w = f32[4]{0} while(%p), body=%inner.body, backend_config={"known_trip_count":{"n":"3"}}
}

%unknown.body (p: f32[4]) -> f32[4] {
  %g = f32[4]{0} all-gather(%p), replica_groups={}, dimensions={0}
}

%branch (p: f32[4]) -> f32[4] {
  %b = f32[4]{0} all-reduce(%p), replica_groups={}, to_apply=%add
}

%shared (p: f32[4]) -> f32[4] {
  %s = f32[4]{0} all-reduce(%p), replica_groups={}, to_apply=%add
}

%async_wrapped (p: f32[8]) -> f32[2] {
  ROOT %rs = f32[2]{0} reduce-scatter(%p), replica_groups={{0,2,4,6},{1,3,5,7}}, dimensions={0}
}

%all-reduce-scatter.clone.1 (input.3: bf16[256,2048]) -> bf16[256,1024] {
  %all-reduce.6 = bf16[256,2048]{1,0} all-reduce(%input.3), replica_groups=[4,2]<=[8], to_apply=%add
}

ENTRY %main (p: f32[4]) -> f32[4] {
  %call.2 = f32[4]{0} call(%p), to_apply=%shared
  %w.1 = f32[4]{0} while(%p), body=%body, backend_config={"known_trip_count":{"n":"5"},"x":[]}
  %w.2 = f32[4]{0} while(%w.1), body=%unknown.body, metadata={op_name="calls=%branch "}
  %c = f32[4]{0} conditional(%i, %w.2), branch_computations={%branch, %o}, metadata={op_name="cond"}
  %as = ((f32[8]), f32[2], u32[]) async-start(%c), calls=%async_wrapped, metadata={op_name="q"}
  %ad = f32[2]{0} async-done(%as), calls=%async_wrapped, metadata={op_name="q"}
  %fusion.25 = bf16[256,1024]{1,0} fusion(%p), calls=%all-reduce-scatter.clone.1, METADATA
}
""".replace("METADATA", 'metadata={op_name="dot" source_file="a.py" source_line=7}')


@pytest.mark.quick
def test_loops_calls_and_fusions_around_a_collective():
    found = {c.name: c for c in collectives(LOOPS, MESH)}
    assert list(found) == ["deep", "p.1", "g", "b", "s", "rs", "fusion.25"]
    told = {name: (c.in_loop, c.trips, c.op) for name, c in found.items()}
    assert told == {
        "deep": (True, 15, None),
        "p.1": (True, 5, None),
        "g": (True, None, None),
        "b": (False, 1, "cond"),
        "s": (True, 5, None),
        "rs": (False, 1, "q"),
        "fusion.25": (False, 1, "dot"),
    }
    scatter = found["fusion.25"]
    assert (scatter.kind, scatter.shape, scatter.axes) == ("reduce-scatter", "bf16[256,1024]", MODEL)
    assert (scatter.bytes, scatter.where) == (256 * 1024 * 2, "a.py:7")


@pytest.mark.quick
def test_modules_one_after_the_other_are_read_apart():
    other = LOOPS.replace('"n":"5"', '"n":"2"')
    trips = [
        c.trips
        for c in collectives(LOOPS + "\n\n// f: runs 2 times\n" + other, MESH)
        if c.name == "deep"
    ]
    assert trips == [15, 12]


TABLE = """\
kind                mesh axes    result                      bytes  times  line      operation
all-reduce          data, model  (f32[1] x 4)                   16     15  net.py:3  f/psum
collective-permute  {{0,3}}      (f32[1], f32[2], 2 more)       16      5  -         -
all-gather          data, model  f32[4]                         16   loop  -         -
reduce-scatter      model        bf16[256,1024]            524,288      1  a.py:7    dot
total: 4, 524,624 bytes on each device a run (1 all-reduce 240, 1 collective-permute 80, \
1 all-gather 16, 1 reduce-scatter 524,288; loops of unknown length count once)"""


@pytest.mark.quick
def test_the_table_for_people():
    found = {c.name: c for c in collectives(LOOPS, MESH)}
    first = dataclasses.replace(found["deep"], where="net.py:3", op="f/psum",
                                shape="(f32[1], f32[1], f32[1], f32[1])")
    odd = dataclasses.replace(found["p.1"], axes=None, groups="{{0,3}}",
                              shape="(f32[1], f32[2], f32[3], f32[4])")
    assert table([first, odd, found["g"], found["fusion.25"]]) == TABLE


@pytest.mark.quick
def test_a_program_that_does_not_communicate():
    assert collectives("HloModule m\n", MESH) == [] and table([]) == "no collectives"


# Collectives: what the compilers here write.

COMPILE = """
import json, sys
import hlotrace
from hlotrace.runtime import binding
devices = hlotrace.devices()
options = binding.CompileOptions()
build = options.executable_build_options
for part in (options, build):
    part.num_replicas, part.num_partitions = 1, 8
build.use_spmd_partitioning = build.use_shardy_partitioner = True
options.device_assignment = binding.device_assignment([[device.id for device in devices]])
texts = []
for text in json.load(sys.stdin):
    program = devices[0].client.compile_and_load(text, binding.DeviceList(tuple(devices)), options)
    texts.append(program.hlo_modules()[0].to_string())
print(json.dumps(texts))
"""
FOR_A_TPU = """
import json, sys
import hlotrace
topology = hlotrace.topologies.get_topology_desc("v5e:2x4")
programs = [topology.compile(text) for text in json.load(sys.stdin)]
print(json.dumps([program.hlo_modules()[0].to_string() for program in programs]))
"""


def compiled(program):
    """The optimized HLO of MLP and of MANUAL, from a process of its own."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "XLA_", "HLOTRACE_"))}
    done = subprocess.run([sys.executable, "-c", program], input=json.dumps([MLP, MANUAL]), cwd=ROOT,
                          env=clean | {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"},
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


NEEDS_LIBTPU = pytest.mark.skipif("tpu" not in plugins.find(), reason="no libtpu wheel is installed")


@pytest.mark.parametrize(("program", "trips"),
                         [(COMPILE, 5), pytest.param(FOR_A_TPU, None, marks=NEEDS_LIBTPU)],
                         ids=["cpu", "tpu"])
def test_the_collectives_of_programs_compiled_here(program, trips):
    mlp, manual = (collectives(text, MESH) for text in compiled(program))
    told = [(c.kind, c.axes, c.shape, c.bytes, c.where, c.op, c.trips) for c in mlp]
    assert told == [
        ("all-reduce", MODEL, "f32[4,8]", 128, "net.py:13", "jit(f)/layer2/dot_general", 1),
        ("all-reduce", DATA, "f32[]", 4, "nét.py:15", "jit(f)/reduce_sum", 1),
    ]
    assert [
        (c.kind, c.axes, c.shape, c.bytes, c.in_loop, c.trips)
        for c in sorted(manual, key=lambda c: c.kind)
    ] == [
        ("all-reduce", MODEL, "f32[4,8]", 128, False, 1),
        ("collective-permute", DATA, "f32[4,8]", 128, True, trips),
    ]

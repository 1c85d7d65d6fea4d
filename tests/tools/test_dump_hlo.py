"""The command hlotrace dump: what it prints and writes, and how it refuses."""
import os
import subprocess
import sys

import pytest
from gpu_topologies import needs_wheels
from places import ROOT

from hlotrace.core.config import override
from hlotrace.runtime.devices import plugins
from hlotrace.tools import dump_hlo

MODEL = """
import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.sharding import P

NUMBER = 3

class Net:
    @staticmethod
    def apply(x):
        return jnp.tanh(x)

def add(x, y):
    return x + y

def loss(params, x):
    return jnp.sum(jnp.sin(params["w"] * x))

@jax.jit
def compiled(x):
    return jnp.exp(x)

def branches(x):
    return x if x > 0 else -x

def args():
    return {"w": jax.ShapeDtypeStruct((3,), jnp.float32)}, jnp.ones(3)

def deep(w, x):
    for _ in range(12):
        for _ in range(10):
            x = jnp.tanh(x @ w) + x * 0.5
        x = jnp.exp(x)
    return x

def no_tuple():
    return [jnp.ones(3)]

def layer(x, w):
    return jnp.tanh(x @ w)

def network(params, x):
    return jnp.mean(jnp.tanh(x @ params["w"] + params["b"]))

def network_args():
    return {"b": jnp.ones(32), "w": jnp.ones((16, 32))}, jax.ShapeDtypeStruct((8, 16), jnp.float32)

def network_specs():
    return {"b": P("model"), "w": P(None, "model")}, P("data")

def half_the_specs():
    return {"b": P("model")}, P("data")

def calls(x):
    return jax.pure_callback(abs, x, x)

def says(x):
    print("tracing", x.shape)
    return x

def constrained(x):
    return jax.lax.with_sharding_constraint(2 * x, P("data"))
"""
LAYER = "model.py:layer", "f32[8,16]", "f32[16,32]"
MESH = "--mesh=data=4,model=2"
needs_libtpu = pytest.mark.skipif("tpu" not in plugins.find(), reason="no libtpu wheel is installed")


@pytest.fixture
def dump(tmp_path, monkeypatch, capsys):
    """Runs the command in a folder with model.py: (exit status, stdout, stderr)."""
    (tmp_path / "model.py").write_text(MODEL, "utf-8")
    (tmp_path / "broken.py").write_text("import hlotrace\nnumber = 1 / 0\n", "utf-8")
    (tmp_path / "needs.py").write_text("import no_such_package\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])

    def run(*args):
        monkeypatch.setattr(sys, "argv", ["hlotrace dump", *args])
        return dump_hlo.main(), *capsys.readouterr()
    yield run
    for name in ("model", "dumped_module"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("stage, sign", [
    ("jaxpr", "f32[8,128]"), ("outlined", "\nnothing repeats that is worth a function: "),
    ("stablehlo", "stablehlo.add"), ("hlo", "ENTRY"), ("optimized", "ENTRY"),
    ("cost", "\nflops: 1024\n"), ("memory", "\nargument_size_in_bytes: 8192\n")])
def test_prints_a_stage(dump, stage, sign):
    status, out, err = dump("model.py:add", "f32[8,128]", "f32[8,128]", "--stage", stage)
    assert (status, err) == (0, "")
    assert sign in "\n" + out and "====" not in out


def test_stablehlo_is_the_default_and_locations_name_the_users_line(dump):
    _, plain, _ = dump("model.py:add", "f32[3]", "f32[3]")
    _, located, _ = dump("--locations", "model.py:add", "f32[3]", "f32[3]")
    assert "stablehlo.add" in plain and "model.py" not in plain
    assert 'model.py":14:' in located


def test_several_stages_come_in_the_order_asked_each_under_its_name(dump):
    _, out, _ = dump("model.py:add", "bf16[]", "bf16", "--stage", "stablehlo,jaxpr", "--stage=jaxpr")
    assert [line for line in out.splitlines() if line.startswith("====")] == ["==== stablehlo ====", "==== jaxpr ===="]
    assert "tensor<bf16>" in out and "bf16[]" in out


def test_a_function_may_come_from_a_module_a_class_or_jit(dump):
    assert "stablehlo.add" in dump("model:add", "i32[2]", "i32[2]")[1]
    assert "stablehlo.tanh" in dump("model.py:Net.apply", "f16[2]")[1]
    assert "stablehlo.exponential" in dump("model.py:compiled", "f32[2]")[1]
    assert "stablehlo.tanh" in dump("hlotrace.numpy:tanh", "f32[2]")[1]


def test_outlined_tells_what_repeats_and_prints_each_block_once(dump):
    status, out, _ = dump("model.py:deep", "f32[32,32]", "f32[32,32]", "--stage", "outlined")
    assert status == 0
    found, total, apart, program = out.split("\n", 3)
    assert found == "repeated_0: 12 x 41 equations, 2 in, 1 out, saves 451"
    assert total == "equations: 492 -> 53"
    assert apart == "on the CPU: 12 pieces, 1 compiled; blocks that are pieces: repeated_0"
    assert program.count("jit[jaxpr=repeated_0]") == 12 and program.count("tanh") == 10


def test_outlined_tells_if_nothing_was_looked_for(dump):
    with override("hlotrace_outline", False):
        out = dump("model.py:deep", "f32[32,32]", "f32[32,32]", "--stage", "outlined")[1]
    assert out == "nothing is looked for: hlotrace_outline is off\n"


def test_grad_comes_before_vmap(dump):
    args = "model.py:add", "--stage=jaxpr", "--grad"
    assert "in (1.0" in dump(*args, "f32", "f32")[1]
    _, out, _ = dump(*args, "--vmap", "f32[5]", "f32[5]")
    assert "f32[5]" in out


def test_argnums_choose_what_grad_differentiates_by(dump):
    _, out, _ = dump("model.py:add", "f32", "f32", "--grad", "--argnums=0,1")
    assert "-> (tensor<f32>" in out and out.count('jax.result_info') == 2


def test_args_from_gives_pytrees_and_arrays(dump):
    status, out, _ = dump("model.py:loss", "--args_from", "model.py:args", "--grad", "--stage", "stablehlo")
    assert status == 0
    assert "stablehlo.cosine" in out and "result['w']" in out


def test_out_writes_a_file_a_stage_and_prints_their_paths(dump, tmp_path):
    status, out, err = dump("model.py:loss", "--args_from=model:args", "--grad", "--stage=all", "--out=new/dir")
    assert (status, err) == (0, "")
    names = ["jaxpr.txt", "outlined.txt", "stablehlo.mlir", "hlo.txt", "optimized.txt", "cost.txt", "memory.txt"]
    assert out.split() == [os.path.join("new", "dir", f"grad_loss.{name}") for name in names]
    assert all((tmp_path / path).stat().st_size for path in out.split())
    assert "stablehlo.cosine" in (tmp_path / out.split()[2]).read_text("utf-8")


def test_what_the_users_code_prints_is_not_among_the_text(dump, tmp_path):
    assert dump("model.py:says", "f32[3]", "--stage=jaxpr")[2] == "tracing (3,)\n"
    (tmp_path / "loud.py").write_text(f"print('loading')\n{MODEL}\ndef loud_args():\n    print('args')\n    return args()\n")
    status, out, err = dump("loud.py:loss", "--args_from=loud.py:loud_args")
    assert (status, err) == (0, "loading\nloading\nargs\n") and out.startswith("module @")


# --- over a mesh ------------------------------------------------------------------------------------------------

def specs(text):
    """What the comments above @main say of each argument and result: type and PartitionSpec."""
    return [line.partition(": ")[2] for line in text.splitlines() if line.lstrip().startswith("// ")]


@pytest.mark.parametrize("given", [("data,-", "-,model"), ("data;-,model",), (" data ; - , model ",)])
def test_sharded_shows_the_spec_of_every_value(dump, given):
    status, out, err = dump(*LAYER, MESH, *(f"--in_spec={spec}" for spec in given), "--stage=sharded")
    assert (status, err) == (0, "")
    assert specs(out) == ["tensor<8x16xf32>  P('data', None)", "tensor<16x32xf32>  P(None, 'model')",
                          "tensor<8x32xf32>  P('data', 'model')"]
    assert out.count("// P('data', 'model')\n") == 2


@pytest.mark.parametrize("spec, x", [
    ("?;-,model", "P(None, None)"), ("-;-,model", "P(None, None)"), ("-,model;model", "P(None, 'model')"),
    ("data+model;-", "P(('data', 'model'), None)")])
def test_a_spec_may_leave_or_double_axes(dump, spec, x):
    _, out, _ = dump(*LAYER, MESH, "--in_spec", spec, "--stage=sharded")
    assert specs(out)[0] == f"tensor<8x16xf32>  {x}"


def test_an_out_spec_decides_how_the_result_lies(dump):
    _, out, _ = dump(*LAYER, MESH, "--in_spec=data;-", "--out_spec=-,data", "--stage=sharded")
    assert specs(out)[-1] == "tensor<8x32xf32>  P(None, 'data')"
    _, out, _ = dump("model.py:add", "f32[8]", "f32[8]", MESH, "--grad", "--argnums=0,1", "--vmap", "--out_spec=data",
                     "--out_spec=model", "--stage=sharded")
    assert specs(out) == ["tensor<8xf32>  P('data')", "tensor<8xf32>  P('model')"]


def test_collectives_lists_what_is_communicated_with_the_users_line(dump):
    status, out, _ = dump(*LAYER, MESH, "--in_spec=-,model;model", "--stage=collectives")
    assert status == 0
    assert out.split("\n")[1].split() == ["all-reduce", "model", "f32[8,32]", "1,024", "1", "model.py:40",
                                          "jit(layer)/dot_general"]


def test_sharding_says_it_before_compiling(dump):
    status, out, _ = dump(*LAYER, MESH, "--in_spec=-,model;model", "--platform=gpu", "--stage=sharding")
    assert status == 0
    assert out.split("\n")[1].split() == [
        "model.py:40", "jit(layer)/dot_general", *"P(None, 'model') P('model', None) P(None, None)".split(),
        *"all-reduce over model: 1,024".split()]
    assert "tanh" in out and out.endswith("total: 1, 1,024 bytes on each device a run (1 all-reduce 1,024)\n")


def test_all_stages_come_for_a_program_over_a_mesh(dump):
    status, out, _ = dump(*LAYER, MESH, "--in_spec=data;-,model", "--stage=all")
    assert status == 0
    titles = [line.split()[1] for line in out.splitlines() if line.startswith("====")]
    assert titles == ["jaxpr", "outlined", "stablehlo", "sharded", "sharding", "hlo", "optimized", "collectives", "cost",
                      "memory"]
    assert "no collectives\n" in out and "num_partitions=8" in out
    assert f"argument_size_in_bytes: {4 * (2 * 16 + 16 * 16)}\n" in out


def test_specs_may_be_a_pytree_from_python_or_one_for_a_whole_pytree(dump):
    args = "model.py:network", "--args_from=model.py:network_args", MESH, "--grad", "--stage=sharded"
    wanted = ["tensor<32xf32>  P('model')", "tensor<16x32xf32>  P(None, 'model')", "tensor<8x16xf32>  P('data', None)"]
    assert specs(dump(*args, "--in_spec=model.py:network_specs")[1])[:3] == wanted
    assert specs(dump(*args, "--in_spec=-;data")[1])[2] == wanted[2]


def test_bare_specs_in_the_function_are_those_of_the_mesh(dump):
    assert specs(dump("model.py:constrained", "f32[8]", MESH, "--stage=sharded")[1])[1].endswith("P('data')")


def test_the_cpu_gets_as_many_devices_as_the_mesh_wants(dump, tmp_path):
    dump()      # writes model.py
    env = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    command = [sys.executable, str(ROOT / "tools" / "dump_hlo.py"), *LAYER[:1], "f32[64,16]", "f32[16,64]",
               "--mesh=data=16,model=16", "--in_spec=data;-,model", "--stage=sharded"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert specs(done.stdout)[-1] == "tensor<64x64xf32>  P('data', 'model')"


@pytest.mark.parametrize("platform", ["cpu", "gpu", "cuda", "rocm", "tpu", "mine"])
def test_text_for_a_platform_needs_no_plugin(dump, monkeypatch, platform):
    monkeypatch.setenv(plugins.VARIABLE, "mine:/nowhere.so")
    signs = {"jaxpr": "tanh", "outlined": "nothing repeats", "stablehlo": "stablehlo.tanh", "hlo": "ENTRY"}
    for stage, sign in signs.items():
        status, out, err = dump(*LAYER, f"--platform={platform}", f"--stage={stage}")
        assert (status, err) == (0, "") and sign in out
    status, out, err = dump(*LAYER, MESH, "--in_spec=data;-,model", f"--platform={platform}", "--stage=stablehlo,sharded")
    assert (status, err) == (0, "") and "num_partitions = 8" in out
    assert specs(out)[-1] == "tensor<8x32xf32>  P('data', 'model')"


def test_text_for_a_platform_is_that_platforms(dump):
    assert "xla_ffi_python_cpu_callback" in dump("model.py:calls", "f32", "--platform=cpu")[1]
    assert "xla_ffi_python_gpu_callback" in dump("model.py:calls", "f32", "--platform=gpu")[1]
    assert "the CPU: 12 pieces" in dump("model.py:deep", "f32[32,32]", "f32[32,32]", "--platform=cpu", "--stage=outlined")[1]
    out = dump("model.py:deep", "f32[32,32]", "f32[32,32]", "--platform=cuda", "--stage=outlined")[1]
    assert "on cuda: one executable" in out


@needs_libtpu
def test_stages_for_a_tpu_that_is_not_here(dump):
    options = MESH, "--platform=tpu:v5e:2x4", "--in_spec=-,model;model", "--stage=optimized,collectives,cost,memory"
    status, out, _ = dump(*LAYER, *options)
    assert status == 0
    assert "is_scheduled=true" in out and "\noptimal_seconds: " in out and "\nargument_size_in_bytes: " in out
    status, out, _ = dump("model.py:layer", "f32[8,128]", "f32[128,128]", "--platform=tpu:v5e:2x4", "--stage=memory")
    assert status == 0 and f"argument_size_in_bytes: {4 * (8 + 128) * 128}\n" in out
    status, _, err = dump("model.py:layer", "f32[640000,2560]", "f32[2560,51200]", MESH, "--platform=tpu:v5e:2x4",
                          "--stage=memory")
    assert status == 2 and err.count("\n") == 1 and "RESOURCE_EXHAUSTED: layer does not fit" in err


@needs_wheels
def test_all_stages_for_gpus_that_are_not_here(dump):
    status, out, _ = dump(*LAYER, MESH, "--platform=h100:8", "--in_spec=-,model;model", "--stage=all")
    assert status == 0
    titles = [line.split()[1] for line in out.splitlines() if line.startswith("====")]
    assert titles == ["jaxpr", "outlined", "stablehlo", "sharded", "sharding", "hlo", "optimized", "collectives", "cost",
                      "memory", "ptx"]
    assert "\nflops: " in out and "\nargument_size_in_bytes: " in out and "all-reduce  model" in out
    assert "// kernel " in out and " kernels, " in out and ".visible .entry" in out
    status, _, err = dump("model.py:layer", "f32[640000,2560]", "f32[2560,51200]", "--platform=gpu:l4", "--stage=memory")
    assert status == 2 and "RESOURCE_EXHAUSTED: layer does not fit" in err


# --- help and mistakes ------------------------------------------------------------------------------------------

def test_help_tells_of_types_and_flags(dump):
    status, out, _ = dump("--help")
    assert status == 0
    assert "f32[8,128]" in out and "--stage" in out


@pytest.mark.parametrize("args, words", [
    ([], "which function?"),
    (["add", "f32"], "'add' is neither module:function nor path/file.py:function"),
    (["model.add", "f32"], "say model:add"),
    (["model.py", "f32"], "say model.py:NAME, with the name of a function in it"),
    ([":add", "f32"], "say FILE.py:add"),
    (["model.py:ad", "f32"], "model.py has no ad; did you mean 'add'?"),
    (["model.py:add", "8,128", "f32"], "a dtype, then the sizes in brackets"),
    (["nothing.py:add", "f32"], "there is no file nothing.py"),
    (["no_such_module:add", "f32"], "there is no module no_such_module"),
    (["no_such_module.sub:add", "f32"], "there is no module no_such_module"),
    (["needs.py:add", "f32"], "needs.py:1: ModuleNotFoundError: No module named 'no_such_package'"),
    (["broken.py:add", "f32"], "broken.py:2: ZeroDivisionError"),
    (["model.py:subtract", "f32"], "model.py has no subtract"),
    (["model.py:NUMBER", "f32"], "NUMBER is of type int, not a function"),
    (["model.py:add", "f32[2", "f32"], "'f32[2' is not of the form f32[8,128]"),
    (["model.py:add", "f33[2]", "f32"], "there is no dtype 'f33'"),
    (["model.py:add", "f64[2]", "f32"], "f64 needs --x64"),
    (["model.py:add", "f32[2]"], "takes (x, y), and 1 are given: missing a required argument: 'y'; write a TYPE, as f32[8,128]"),
    (["model.py:add", "f32[2]", "f32[3]"], "model.py:14: "),
    (["model.py:branches", "f32"], "model.py:24: TracerBoolConversionError"),
    (["model.py:add", "f32[2]", "f32[2]", "--grad"], "TypeError"),
    (["model.py:add", "f32", "f32", "--grad", "--argnums=x"], "argument numbers are integers"),
    (["model.py:add", "f32", "f32", "--stage", "hol"], "there is no stage 'hol'; known are jaxpr, outlined, stablehlo"),
    (["model.py:add", "f32", "f32", "--stag", "hlo"], "stag"),
    (["model.py:loss", "f32", "--args_from=model.py:args"], "give TYPEs or --args_from, not both"),
    (["model.py:loss", "--args_from=model.py:nothing"], "--args_from 'model.py:nothing': model.py has no nothing"),
    (["model.py:loss", "--args_from=model.py:no_tuple"], "must return a tuple of arguments, not a list"),
    (["model.py:add", "f32", "f32", "--out=model.py"], "--out model.py: "),
    ([*LAYER, "--mesh=data=4,model"], "--mesh 'data=4,model' is not of the form data=4,model=2"),
    ([*LAYER, "--mesh=data=4,data=2"], "or names an axis twice"),
    ([*LAYER, "--mesh=data=99"], "--mesh: make_mesh: Number of devices 8 must be >="),
    ([*LAYER, MESH, "--in_spec=data"], "--in_spec gives 1 SPECs for 2 arguments; `?` leaves one to the compiler"),
    ([*LAYER, MESH, "--in_spec=data;da ta"], "--in_spec 'da ta': 'da ta' is neither - nor a mesh axis"),
    ([*LAYER, MESH, "--in_spec=data;nope"], "Resource axis: nope of P('nope',) is not found in mesh: ('data', 'model')"),
    ([*LAYER, MESH, "--in_spec=-,-,data;-"], "--in_spec of an argument float32[8,16]: Sharding"),
    ([*LAYER, MESH, "--out_spec=nope"], "Resource axis: nope"),
    ([*LAYER, MESH, "--platform=xyz"], "--platform 'xyz': want cpu, gpu, cuda, rocm, tpu or the name of a topology"),
    ([*LAYER, "--platform=h10:8"], "the name of a topology, such as h100:8 or v5e:2x4; did you mean 'h100'?"),
    ([*LAYER, "--platform=cpu:8"], "want cpu, gpu, cuda, rocm, tpu or the name of a topology"),
    ([*LAYER, "--stage=ptx"], "--stage ptx is of NVIDIA GPUs, not of cpu: say --platform h100"),
    ([*LAYER, "--in_spec=data;-"], "--in_spec and --out_spec name axes of a --mesh; give one"),
    ([*LAYER, "--out_spec=data"], "--in_spec and --out_spec name axes of a --mesh; give one"),
    ([*LAYER, "--stage=sharded"], "the stages sharded, sharding, collectives are those of a program over a mesh; give --mesh"),
    (["model.py:add", "f32[6]", "f32[6]", MESH, "--in_spec=data;-"], "partitioned 4 times, but the dimension size is 6"),
    (["model.py:network", "--args_from=model.py:network_args", MESH, "--in_spec=model.py:half_the_specs"],
     "--in_spec specification must be a tree prefix"),
    (["model.py:network", "--args_from=model.py:network_args", MESH, "--in_spec=model.py:no_tuple"],
     "must return a tuple of PartitionSpecs, not a list"),
])
def test_a_mistake_is_told_in_one_line_with_exit_status_2(dump, args, words):
    status, out, err = dump(*args)
    assert (status, out) == (2, "")
    assert err.startswith("hlotrace dump: ") and err.count("\n") == 1 and err.endswith("\n")
    assert words in err


@pytest.mark.parametrize("platform, words", [
    ("gpu", "Unknown backend cuda. Available backends are ['cpu']: no PJRT plugin for it is installed"), ("tpu", "Unknown backend tpu"),
    ("tpu:v5e:2x4", 'pip install "libtpu=='), ("v5e:2x4", 'pip install "libtpu=='),
    ("h100:8", "pip install --no-deps \"jax-cuda12-pjrt==")])
@pytest.mark.parametrize("mesh", [[MESH], []])
def test_a_platform_that_is_not_there_is_told_in_one_line(dump, monkeypatch, platform, words, mesh):
    monkeypatch.setattr(plugins, "find", dict)
    status, out, err = dump(*LAYER, *mesh, f"--platform={platform}", "--stage=memory")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert words in err


def test_runs_from_a_checkout_without_installation(tmp_path):
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, str(ROOT / "tools" / "dump_hlo.py"), "hlotrace.numpy:sin", "f64[4]", "--x64"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "stablehlo.sine" in done.stdout and "tensor<4xf64>" in done.stdout


def test_runs_as_a_module_and_a_reader_may_stop_reading():
    command = [sys.executable, "-m", "hlotrace.tools.dump_hlo", "hlotrace.numpy:sin", "f32[4]", "--stage=jaxpr,hlo"]
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_html_writes_a_page_in_place_of_the_stage(dump, tmp_path):
    status, out, err = dump(*LAYER, MESH, "--in_spec=data;-,model", "--html", "pages/layer.html")
    assert (status, out, err) == (0, "pages/layer.html\n", "")
    page = (tmp_path / "pages" / "layer.html").read_text("utf-8")
    assert all(f'"name":"{stage}"' in page for stage in ("jaxpr", "StableHLO", "sharded", "optimized"))
    assert '"mesh":[["data",4],["model",2]]' in page


def test_html_of_another_platform_has_its_texts(dump, tmp_path):
    status, out, _ = dump(*LAYER, "--platform=gpu", "--html=layer.html", "--stage=jaxpr")
    assert status == 0 and out.startswith("layer.html\n{ lambda")
    page = (tmp_path / "layer.html").read_text("utf-8")
    assert '"name":"StableHLO"' in page and '"name":"optimized"' not in page


def test_html_where_no_file_can_be(dump, tmp_path):
    (tmp_path / "taken").mkdir()
    status, _, err = dump(*LAYER, "--html=taken")
    assert status == 2 and err.startswith("hlotrace dump: --html taken:")


@pytest.mark.parametrize(("second", "differing"), [
    ("model.py:add", []),
    ("hlotrace.numpy:subtract", ["- c:f32[3] = add a b    # model.py:14 (add)", "+ a':f32[3] = sub a b", "- return c", "+ return a'"]),
])
def test_diff_prints_what_differs(dump, second, differing):
    status, out, err = dump("model.py:add", "f32[3]", "f32[3]", "--diff", second)
    assert (status, err) == (0, "")
    lines = [line for line in out.splitlines() if not line.startswith("  ")]
    assert len(lines) == len(differing) and all(map(str.startswith, lines, differing)), out

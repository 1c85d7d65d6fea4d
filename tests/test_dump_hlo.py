"""The command hlotrace-dump: what it prints and writes, and how it refuses."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hlotrace.tools import dump_hlo

ROOT = Path(__file__).resolve().parent.parent
MODEL = """
import hlotrace as jax
import hlotrace.numpy as jnp

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
"""


@pytest.fixture
def dump(tmp_path, monkeypatch, capsys):
    """Runs the command in a folder with model.py: (exit status, stdout, stderr)."""
    (tmp_path / "model.py").write_text(MODEL, "utf-8")
    (tmp_path / "broken.py").write_text("import hlotrace\nnumber = 1 / 0\n", "utf-8")
    (tmp_path / "needs.py").write_text("import no_such_package\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])

    def run(*args):
        monkeypatch.setattr(sys, "argv", ["hlotrace-dump", *args])
        return dump_hlo.main(), *capsys.readouterr()
    yield run
    for name in ("model", "dumped_module"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("stage, sign", [
    ("jaxpr", "f32[8,128]"), ("outlined", "\nnothing repeats\n"),
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
    assert 'model.py":13:' in located


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


def test_help_tells_of_types_and_flags(dump):
    status, out, _ = dump("--help")
    assert status == 0
    assert "f32[8,128]" in out and "--stage" in out


@pytest.mark.parametrize("args, words", [
    ([], "which function?"),
    (["add", "f32"], "'add' is neither module:function nor path/file.py:function"),
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
    (["model.py:add", "f32[2]"], "TypeError: add() missing 1 required positional argument: 'y'"),
    (["model.py:add", "f32[2]", "f32[3]"], "model.py:13: "),
    (["model.py:branches", "f32"], "model.py:23: TracerBoolConversionError"),
    (["model.py:add", "f32[2]", "f32[2]", "--grad"], "TypeError"),
    (["model.py:add", "f32", "f32", "--grad", "--argnums=x"], "argument numbers are integers"),
    (["model.py:add", "f32", "f32", "--stage", "hol"], "there is no stage 'hol'; known are jaxpr, outlined, stablehlo"),
    (["model.py:add", "f32", "f32", "--stag", "hlo"], "stag"),
    (["model.py:loss", "f32", "--args_from=model.py:args"], "give TYPEs or --args_from, not both"),
    (["model.py:loss", "--args_from=model.py:nothing"], "--args_from 'model.py:nothing': model.py has no nothing"),
    (["model.py:loss", "--args_from=model.py:no_tuple"], "must return a tuple of arguments, not a list"),
    (["model.py:add", "f32", "f32", "--out=model.py"], "--out model.py: "),
])
def test_a_mistake_is_told_in_one_line_with_exit_status_2(dump, args, words):
    status, out, err = dump(*args)
    assert (status, out) == (2, "")
    assert err.startswith("hlotrace-dump: ") and err.count("\n") == 1 and err.endswith("\n")
    assert words in err


def test_absl_missing_is_told_in_one_line(dump, monkeypatch):
    monkeypatch.setitem(sys.modules, "absl", None)
    assert dump("model.py:add", "f32", "f32") == (2, "", "hlotrace-dump: absl-py is missing: pip install absl-py\n")


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

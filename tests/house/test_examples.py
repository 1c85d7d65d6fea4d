"""Every example runs as a user runs it, and says what it promises."""
import os
import re
import struct
from pathlib import Path

import forked
import numpy as np
import pytest
from places import EXAMPLES, TESTS

import hlotrace as jax


def run(name, *arguments, silent=True, light=False):
    """What the example prints; it must end well, and without warnings where it is `silent`.

    Where it is `light`, scikit-learn's digits are read without its import (tests/light/), which takes two
    seconds.
    """
    path = [str(EXAMPLES.parent), os.environ.get("PYTHONPATH", "")]
    program = forked.file(EXAMPLES / name)
    if light:
        path.insert(0, str(TESTS / "light"))        # of what it starts
        program = f"import sys; sys.path.insert(1, {path[0]!r})\n{program}"
    done = forked.run(program, *arguments, timeout=300, PYTHONPATH=os.pathsep.join(path))
    assert done.returncode == 0 and (not silent or done.stderr == ""), done.stdout + done.stderr
    return done.stdout


def test_a_forked_process_has_the_library_already():
    """Importing it takes each of a hundred processes half a second."""
    assert forked.run("import sys; print('hlotrace.numpy' in sys.modules)").stdout == "True\n"


def test_every_example_is_tested_and_short():
    files = {p.name: len(p.read_text("utf-8").splitlines()) for p in EXAMPLES.glob("*.py")}
    assert set(files) == {"digits.py", "quickstart.py", "inspect_program.py", "layer.py", "sharded_mlp.py",
                          "ring_attention.py", "multi_process.py", "elastic.py", "checkpoints.py",
                          "tpu_ahead_of_time.py",
                          "gpt.py", "resnet.py"}
    assert max(files.pop("gpt.py"), files.pop("resnet.py")) <= 120      # models, to be planned and measured
    assert max(files.values()) <= 80, files


def test_quickstart_prints_gradients_and_stablehlo():
    out = run("quickstart.py")
    assert re.search(r"gradient, one example: +\[ *8\. +16\. *\]", out)
    assert "[[8.0, 16.0], [-54.0, 18.0], [-28.0, 14.0]]" in out
    fitted = re.search(r"fitted weights: +\[(.*)\]", out)[1]
    assert [float(w) for w in fitted.split()] == pytest.approx([2, -3], abs=1e-4)
    assert "func.func public @main(" in out and "stablehlo.dot_general" in out


def test_layer_is_a_function_to_look_at():      # tests/house/test_pages.py looks at it
    assert run("layer.py") == ""


def test_inspect_program_shows_every_stage():
    _, *sections = re.split(r"======== (.*) ========\n", run("inspect_program.py"))
    stages = dict(zip(sections[::2], sections[1::2]))
    signs = {"jaxpr": "dot_general", "result": "shape=(8, 16)", "StableHLO:": "stablehlo.exponential",
             "StableHLO,": "inspect_program.py", "HLO:": "ENTRY", "optimized": "ENTRY", "cost": " flops, ",
             "memory": "4608 bytes of arguments, 512 of results"}
    assert [title.split()[0].rstrip(":") for title in stages] == [sign.rstrip(":") for sign in signs]
    for text, sign in zip(stages.values(), signs.values()):
        assert sign in text


def test_digits_learns_to_read():
    out = run("digits.py")
    epochs = re.findall(r"epoch +(\d+)  loss ([\d.]+)  test accuracy ([\d.]+)", out)
    assert [int(n) for n, _, _ in epochs] == list(range(1, len(epochs) + 1))
    assert float(epochs[-1][1]) < float(epochs[0][1])
    assert float(re.search(r"images in [\d.]+ s; test accuracy ([\d.]+)", out)[1]) >= 0.95
    png = Path(re.search(r"picture: (.*)", out)[1]).read_bytes()
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">2I", png[16:24]) == (1320, 480)


def test_sharded_mlp_learns_and_shows_how_it_lies():
    out = run("sharded_mlp.py", light=True)
    assert float(re.findall(r"test accuracy ([\d.]+)", out)[-1]) >= 0.95
    for title in ("a batch, (64, 64), P('data',):", "up w, (64, 256), P(None, 'model'):",
                  "down w, (256, 64), P('model', None):"):
        assert title in out
    assert out.count("CPU 0") == 3


def test_ring_attention_equals_attention():
    errors = re.findall(r"largest difference (\S+) of", run("ring_attention.py"))
    assert len(errors) == 8 and all(float(e) < 1e-5 for e in errors)


def test_processes_train_as_one_does():
    out = run("multi_process.py", "--epochs", "3", light=True)
    assert float(re.search(r"differ by (\S+) at most", out)[1]) < 1e-5
    assert float(re.findall(r"accuracy ([\d.]+)", out)[-1]) >= 0.9


def elastic_losses():
    """Those of `elastic.py` by NumPy, in one process and in which none is killed."""
    up, down = (np.asarray(jax.random.normal(jax.random.key(0), shape), np.float64) / shape[0] ** 0.5
                for shape in ((16, 64), (64, 1)))
    for step in range(12):
        x = np.random.default_rng([2026, step]).standard_normal((48, 16), np.float32).astype(np.float64)
        hidden = np.tanh(x @ up)
        wrong = hidden @ down - np.sin(x.sum(axis=1, keepdims=True))
        yield np.mean(wrong ** 2)
        slope = wrong * 2 / 48
        up, down = up - 0.1 * x.T @ (slope @ down.T * (1 - hidden ** 2)), down - 0.1 * hidden.T @ slope


def test_training_goes_on_with_the_same_losses_when_processes_are_killed():
    out = run("elastic.py", "--kill", "0:6", "--kill", "1:9", silent=False)
    assert re.findall(r"process .*go on", out) == [
        "process 0 of 3 is lost; 2 go on", "process 1 of 2 is lost; 1 go on"]
    printed = re.findall(r"step (\d+): loss (\S+)", out)
    steps = [int(step) for step, _ in printed]
    # again from the checkpoint after step 3
    assert {*steps} == {*range(12)} and steps[:8] == [*range(6), 4, 5]
    wanted = [*elastic_losses()]
    np.testing.assert_allclose([float(loss) for _, loss in printed], [wanted[step] for step in steps],
                               rtol=1e-4)


def test_tpu_ahead_of_time_says_what_is_missing_or_what_chips_need():
    out = run("tpu_ahead_of_time.py")
    assert "pip install" in out and "libtpu" in out or "all-reduce" in out


def test_gpt_is_a_step_that_lowers_the_loss():
    source = {}
    exec(compile((EXAMPLES / "gpt.py").read_text("utf-8"), "gpt.py", "exec"), source)
    params, first, second, tokens = source["gpt_tiny"]()
    keys = iter(jax.random.split(jax.random.key(0), len(params)))
    params = {name: 0.02 * jax.random.normal(next(keys), spec.shape) for name, spec in params.items()}
    zeros = jax.tree.map(jax.numpy.zeros_like, params)
    batch = jax.random.randint(jax.random.key(1), tokens.shape, 0, 8)
    state, losses, step = (params, zeros, zeros), [], jax.jit(source["step"])
    for _ in range(4):
        *state, loss = step(*state, batch)
        losses.append(float(loss))
    assert np.isfinite(losses).all() and losses[-1] < losses[0]

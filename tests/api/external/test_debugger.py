"""debug.breakpoint: a prompt with the values of the run, under every transformation; debug.log."""
import functools
import io
import logging

import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp


def prompt(commands, call, **options):
    """What a prompt prints while `call(stop)` runs and these commands are typed."""
    out, typed = io.StringIO(), io.StringIO("\n".join(commands) + "\n")
    call(functools.partial(jax.debug.breakpoint, backend="cli", stdin=typed, stdout=out, **options))
    jax.effects_barrier()
    return out.getvalue()


class Held:
    """Something that is no pytree."""


def outer(stop):
    held = Held()

    @jax.jit
    def inner(x, params):
        here = {"y": x * params["w"], "held": held}
        stop()
        return here["y"] + 1
    assert float(inner(3., {"w": 2.})) == 7


COMMANDS = [        # what is typed, and what the answer has
    ("p x", "Array(3., dtype=float32)"),
    ("here['y'] + 1", "Array(7., dtype=float32)"),
    ("p type(here['held']).__name__", "'Held'"),
    ("pp params", "{'w': Array(2., dtype=float32)}"),
    ("[np.shape(x) for _ in range(2)]", "[(), ()]"),
    ("sorted(locals())", "['held', 'here', 'params', 'stop', 'x']"),
    ("nonsense", "*** NameError: name 'nonsense' is not defined"),
    ("p 1 +", "*** SyntaxError: invalid syntax\n"),
    ("", "*** SyntaxError"),
    ("l", "->          stop()"),
    ("list", "def inner(x, params):"),
    ("d", "At bottommost frame."),
    ("u", "->      assert float(inner("), ("p held", "Held object"), ("up", "in prompt"[3:]),
    ("down", "return here"),
    ("w", "in outer"), ("bt", "Traceback:"), ("help q", "end the program"),
]


def test_commands():
    said = prompt([*(c for c, _ in COMMANDS), "c"], outer)
    head, *answers = said.split("(jdb) ")
    assert head == "Entering jdb:\n"
    for (command, answer), told in zip(COMMANDS, answers[:-1], strict=True):
        assert answer in told, (command, told)
    assert "At topmost frame." in prompt(["u"] * 200 + ["c"], outer)


def test_frames_are_counted_and_filtered():
    said = prompt(["u", "c"], outer, num_frames=1)
    assert "At topmost frame." in said
    ours = " in Jit" + "Function."      # not as it would stand in this line
    assert [ours in prompt(["bt", "c"], outer, filter_frames=filtered) for filtered in (True, False)] == [
        False, True]
    for wrong, error in (({"num_frames": 0}, ValueError), ({"backend": "web"}, ValueError),
                         ({"color": 3}, TypeError)):
        with pytest.raises(error, match="debug.breakpoint"):
            jax.debug.breakpoint(**wrong)


@pytest.mark.parametrize("transform, times, value", [
    (lambda f: f, 1, "3.0"),
    (jax.jit, 1, "Array(3., dtype=float32)"),
    (jax.grad, 1, "3."),
    (lambda f: jax.jit(jax.grad(f)), 1, "Array(3., dtype=float32)"),
    (lambda f: lambda x: jax.vmap(f)(jnp.array([3., 3.])), 2, "Array(3., dtype=float32)"),
    (lambda f: lambda x: jax.lax.fori_loop(0, 2, lambda i, c: c + f(x + i * 0), 0.), 2,
     "Array(3., dtype=float32)"),
    (jax.checkpoint, 1, "3."),
], ids=["eager", "jit", "grad", "jit of grad", "vmap", "loop", "checkpoint"])
def test_transformations(transform, times, value):
    def stopped(stop):
        def f(x):
            stop()
            return x * x
        transform(f)(3.)
    said = prompt(["p x", "c"] * times, stopped)
    assert said.count("Entering jdb") == times and said.count(value) >= times, said


def test_quitting_ends_the_program_and_the_end_of_input_too():
    for commands in (["q"], ["quit"], []):
        with pytest.raises(SystemExit):
            prompt(commands, lambda stop: stop())


def test_a_token_is_passed_on():
    def stopped(stop):
        found.append(jax.jit(lambda x: stop(token={"a": x * 2}, ordered=True)["a"] + 1)(3.))
    found = []
    assert "Array(6., " in prompt(["p 2 * x", "c"], stopped) and float(found[0]) == 7


def test_without_a_terminal_the_frames_are_printed(capsys):
    @jax.jit
    def f(x):
        wide = jnp.broadcast_to(x, (1000,))
        text = "".join(map(str, range(1000)))
        jax.debug.breakpoint()
        return wide.sum(), len(text)
    f(2.)
    jax.effects_barrier()
    said = capsys.readouterr().out
    assert said.startswith(
        "Breakpoint at ") and "x = Array(2., dtype=float32)" in said and "jax.debug.breakpoint()" in said
    assert all(len(line) < 700 for line in said.splitlines())


def test_ordered_ones_have_an_ordered_effect():
    for ordered, kind in ((False, jax.debug.DebugEffect), (True, jax.debug.OrderedDebugEffect)):
        for stop in (lambda x, ordered=ordered: jax.debug.breakpoint(ordered=ordered),
                     lambda x, ordered=ordered: jax.debug.print("{}", x, ordered=ordered),
                     lambda x, ordered=ordered: jax.debug.log("{}", x, ordered=ordered)):
            effect, = jax.make_jaxpr(stop)(1.).effects
            assert type(effect) is kind and effect == kind() and effect.ordered == ordered


def test_log(caplog):
    with caplog.at_level(logging.INFO):
        jax.jit(lambda x: jax.debug.log("x is {} {y}", x, y=3))(np.float32(1.5))
        jax.debug.log()("again {}", 2, ordered=False)
        jax.effects_barrier()
    assert [(r.levelname, r.getMessage()) for r in caplog.records if "{" not in r.getMessage()][-2:] == [
        ("INFO", "x is 1.5 3"), ("INFO", "again 2")]
    with pytest.raises(ValueError, match="Unused positional arguments to `jax.debug.log`"):
        jax.debug.log("x", 3)
    with pytest.raises(TypeError, match=r"debug.log\('{}', x\)"):
        jax.debug.log(3)


def test_callbacks_without_a_function_take_it_later(capsys):
    seen = []
    jax.debug.callback(ordered=True)(lambda x: seen.append(int(x)), 4)
    jax.debug.print(ordered=True)("later {}", 5)
    jax.effects_barrier()
    assert seen == [4] and capsys.readouterr().out == "later 5\n"

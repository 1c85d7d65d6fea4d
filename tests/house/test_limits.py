"""Limits: what is too large, and what ends a computation from outside, is an error that says so; the process
lives on."""
import subprocess
import sys
import textwrap

import forked
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax, random
from hlotrace.core.avals import MOST_ELEMENTS
from hlotrace.runtime import binding

HUGE = 2 ** 32
KEY = random.key(0)
ROW = jax.ShapeDtypeStruct((HUGE,), "float32")
TOO_MANY = {
    "zeros": lambda: jnp.zeros((HUGE, HUGE)),
    "zeros of one axis": lambda: jnp.zeros((2 ** 63,)),
    "zeros of bytes": lambda: jnp.zeros(MOST_ELEMENTS, jnp.int8),
    "zeros of half bytes": lambda: jnp.zeros((2 ** 31, 2 ** 31), jnp.int4),
    "zeros without elements": lambda: jnp.zeros((HUGE, HUGE, 0)),
    "empty": lambda: jnp.empty((2 ** 40, 2 ** 40)),
    "eye": lambda: jnp.eye(HUGE),
    "tri": lambda: jnp.tri(HUGE),
    "full": lambda: jnp.full((HUGE, HUGE), 1),
    "lax.full": lambda: lax.full((HUGE, HUGE), 1.0),
    "full of keys": lambda: jnp.broadcast_to(KEY, (HUGE, HUGE)),
    "ones_like": lambda: jnp.ones_like(jnp.ones(3), shape=(HUGE, HUGE)),
    "broadcast_to": lambda: jnp.broadcast_to(1.0, (HUGE, HUGE)),
    "broadcast": lambda: lax.broadcast(1.0, (HUGE, HUGE)),
    "arange": lambda: jnp.arange(0, 1e30),
    "linspace": lambda: jnp.linspace(0, 1, 2 ** 62),
    "logspace": lambda: jnp.logspace(0, 1, 2 ** 64),
    "tile": lambda: jnp.tile(jnp.ones(2 ** 8), 2 ** 60),
    "repeat": lambda: jnp.repeat(jnp.ones(2 ** 8), 2 ** 54),
    "resize": lambda: jnp.resize(jnp.ones(3), (2 ** 40, 2 ** 40)),
    "pad": lambda: jnp.pad(jnp.ones(4), 2 ** 62),
    "lax.pad": lambda: lax.pad(jnp.ones(4), 0.0, [(0, 0, 2 ** 62)]),
    "window": lambda: lax.reduce_window(jnp.ones(4), 0.0, lax.add, (2,), (1,), [(2 ** 62, 2 ** 62)]),
    "convolution": lambda: lax.conv_general_dilated(jnp.ones((1, 1, 4)), jnp.ones((1, 1, 2)), (1,),
                                                    [(2 ** 62, 2 ** 62)]),
    "meshgrid": lambda: jnp.meshgrid(*[jnp.ones(2 ** 16)] * 4),
    "indices": lambda: jnp.indices((2 ** 20,) * 3),
    "diag": lambda: jnp.diag(jnp.ones(4), 2 ** 40),
    "vander": lambda: jnp.vander(jnp.ones(2 ** 16), 2 ** 62),
    "outer": lambda: jax.eval_shape(jnp.outer, ROW, ROW),
    "dot": lambda: jax.make_jaxpr(lambda x: jnp.dot(x[:, None], x[None]))(ROW),
    "einsum": lambda: jax.make_jaxpr(lambda x: jnp.einsum("i,j->ij", x, x))(ROW),
    "sum of outer operands": lambda: jax.make_jaxpr(lambda x: x[:, None] + x)(ROW),
    "vmap": lambda: jax.make_jaxpr(jax.vmap(lambda x: jnp.zeros((HUGE,)) + x))(ROW),
    "jacobian": lambda: jax.eval_shape(jax.jacobian(lambda x: 2 * x), ROW),
    "scan": lambda: lax.scan(lambda c, _: (c, c), jnp.ones(3), None, length=2 ** 62),
    "random.normal": lambda: random.normal(KEY, (HUGE, HUGE)),
    "random.bits": lambda: random.bits(KEY, (2 ** 63,)),
    "random.split": lambda: random.split(KEY, 2 ** 60),
    "random.randint": lambda: random.randint(KEY, (2 ** 62,), 0, 3),
    "iota": lambda: lax.iota("int32", 2 ** 63),
    "broadcasted_iota": lambda: lax.broadcasted_iota("int32", (HUGE, HUGE), 0),
    "reshape": lambda: jnp.ones(4).reshape(HUGE, HUGE),
    "reshape of nothing": lambda: jnp.ones(0).reshape(HUGE, HUGE, 0),
    "bincount": lambda: jnp.bincount(jnp.arange(3), length=2 ** 62),
    "nonzero": lambda: jnp.nonzero(jnp.ones(3), size=2 ** 62),
    "one_hot": lambda: jax.nn.one_hot(jnp.arange(4), 2 ** 62),
    "window function": lambda: jnp.hamming(2 ** 62),
    "ShapeDtypeStruct": lambda: jax.ShapeDtypeStruct((HUGE, HUGE), "float32"),
    "lower": lambda: jax.jit(lambda x: x).lower(jax.ShapeDtypeStruct((2 ** 64,), "float32")),
    "an argument": lambda: jax.jit(lambda x: x)(np.broadcast_to(np.float32(0), (2 ** 30, 2 ** 30))),
}


@pytest.mark.parametrize("call", TOO_MANY.values(), ids=TOO_MANY)
def test_shapes_with_too_many_elements(call):
    """jaxlib ends the process over a size that does not fit, or shows the user's shape as MLIR that does not
    parse."""
    for way in (call, lambda: jax.jit(call)()):
        with pytest.raises((TypeError, ValueError, OverflowError)) as caught:
            way()
        text = str(caught.value)
        assert type(caught.value) is OverflowError or str(MOST_ELEMENTS) in text or "reshape" in text


def test_the_largest_shapes_are_types():
    assert jax.ShapeDtypeStruct((MOST_ELEMENTS - 1,), "complex64").size == MOST_ELEMENTS - 1
    assert jax.eval_shape(lambda: jnp.zeros((2 ** 29, 2 ** 29))).shape == (2 ** 29, 2 ** 29)
    assert jax.ShapeDtypeStruct((2 ** 58, 0), "float32").size == 0


def test_structs_take_sizes_only():
    for shape, error in (((2.5,), TypeError), ((-1,), ValueError)):
        with pytest.raises(error, match="ShapeDtypeStruct: shape"):
            jax.ShapeDtypeStruct(shape, "float32")


@pytest.mark.parametrize("call", [
    lambda: jnp.eye(2 ** 24), lambda: jnp.tri(2 ** 24), lambda: lax.iota("int32", 2 ** 40),
    lambda: jnp.zeros(2 ** 45),
    lambda: jax.jit(lambda x: jnp.outer(x, x) + 1)(jnp.ones(2 ** 20)),
    lambda: jax.jit(lambda x: lax.map(lambda y: y + jnp.zeros(2 ** 45), x))(jnp.ones(2 ** 10))])
def test_more_than_the_compiler_counts_or_the_machine_has(call):
    words = "limit is" if binding.most_cpu_elements else r"allocating \d+ bytes \(\d+\.\d [TPE]iB\)"
    with pytest.raises(ValueError if binding.most_cpu_elements else jax.errors.JaxRuntimeError, match=words):
        jax.block_until_ready(call())


PAIR = 2 ** 17, 2 ** 18     # 256 GiB of complex64


@pytest.mark.parametrize("use", [np.asarray, repr, str, np.from_dlpack, jax.device_get, jax.block_until_ready,
                                 lambda x: x.tolist(), lambda x: x.unsafe_buffer_pointer(),
                                 lambda x: np.asarray(x[0]),
                                 lambda x: np.asarray(x.real.astype(jnp.bfloat16))])
def test_a_result_without_memory_is_an_error_wherever_it_is_read(use):
    """jaxlib's buffer protocol ends the process over a buffer whose computation failed."""
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"allocating 274877906944 bytes \(256.0 GiB\)"):
        use(jnp.multiply(jnp.ones((PAIR[0], 1), jnp.complex64), jnp.ones((1, PAIR[1]), jnp.complex64)))
    assert (jnp.ones(3) + 1)[0] == 2


def printed(script, seconds=120):
    """What a process of its own prints, which must end by itself with status 0."""
    done = forked.run("import warnings; warnings.simplefilter('ignore')" + textwrap.dedent(script),
                      timeout=seconds)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr[-3000:])
    return done.stdout


def test_a_child_of_fork_computes_if_its_parent_only_imported():
    assert printed("""
        import os
        import hlotrace as jax, hlotrace.numpy as jnp
        f = jax.jit(lambda x: x @ x)
        jax.make_jaxpr(f)(jax.ShapeDtypeStruct((300, 300), "float32"))
        for _ in range(3):
            child = os.fork()
            if not child:
                print(float(f(jnp.ones((300, 300))).sum()), flush=True)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        print(float(f(jnp.ones((300, 300))).sum()))
    """).split() == ["27000000.0"] * 4


def test_a_child_of_fork_is_told_where_its_parent_has_computed():
    """Threads do not come along: in the child, nothing may wait for one, not even its end."""
    told = printed("""
        import multiprocessing, os, signal, sys
        import numpy as np
        import hlotrace as jax, hlotrace.numpy as jnp
        f, g = jax.jit(lambda x: x @ x), jax.jit(lambda x: x + 1)
        x = f(jnp.ones((500, 500))).block_until_ready()
        compiled, one, key = f.lower(x).compile(), g(1.0), jax.random.key(0)
        late = f(jnp.ones((3000, 3000)))
        calls = {"compiled before": lambda: f(x), "found by its types": lambda: g(one), "ahead of time": lambda: compiled(x),
                 "new": lambda: jax.jit(lambda x: x.T)(x), "eager": lambda: x + 1, "new eager": lambda: jnp.cos(x),
                 "made": lambda: jnp.ones(3), "put": lambda: jax.device_put(np.ones(3), one.device), "random":
                 lambda: jax.random.normal(key), "asked": jax.devices, "waited for":
                 lambda: jax.block_until_ready(late), "read": lambda: np.asarray(late), "grad": lambda: jax.grad(g)(1.0)}
        def work(name):
            signal.alarm(60)
            assert np.asarray(x)[0, 0] == 500
            try:
                calls[name]()
            except RuntimeError as error:
                assert "os.fork()" in str(error) and "spawn" in str(error) and "<string>:6" in str(error), error
                return True
            return name in ("waited for", "read")       # it was ready when the child was made
        child = os.fork()
        if not child:
            print(all(map(work, calls)))
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(all(pool.map(work, calls)))
        print(late[0, 0])
    """)
    assert told.split() == ["True", "True", "3000.0"]


@pytest.mark.parametrize("work", [
    "x = x + 1", "x = g(x)", "g(x).block_until_ready()", "np.asarray(g(x))", "x = h(x)",
    "jax.device_put(np.ones(9))",
    "jax.jit(lambda x: x @ x)(x)", "jax.debug.callback(lambda x: None, x)",
    # takes the lock that logging's end needs
    "x = x + 1; [logging.root.manager._clear_cache() for _ in range(99)]"])
def test_threads_that_compute_when_the_process_ends(work):
    """Python would end a daemon thread inside of jaxlib's C++, which aborts the process."""
    printed(f"""
        import logging, threading, time
        import numpy as np
        import hlotrace as jax, hlotrace.numpy as jnp
        jax.config.update("jax_explain_cache_misses", False)
        g, h = jax.jit(lambda x: x @ x / 300), jax.jit(lambda x: jax.pure_callback(np.sin, x, x))
        begun = threading.Semaphore(0)
        def compute():
            x = jnp.ones((300, 300))
            while True:
                {work}
                begun.release()
        for _ in range(2):
            threading.Thread(target=compute, daemon=True).start()
        threading.Thread(target=lambda: (jnp.ones(3), time.sleep(1000)), daemon=True).start()
        for _ in range(20):
            begun.acquire()
    """)


def test_a_process_ends_when_what_it_computes_is_there():
    """Threads of XLA that compute while C++ ends the process would use what it frees: it ended by SIGSEGV."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent("""
        import atexit
        atexit.register(lambda: print(product.is_ready()))      # called last
        import hlotrace.numpy as jnp
        product = jnp.ones((1500, 1500)) @ jnp.ones((1500, 1500))
        product = product @ product @ product
    """)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr[-3000:]


def test_ctrl_c_anywhere_leaves_a_usable_process():
    """Interrupts at random times of eager operations, traces, compiles, calls, callbacks and waits."""
    assert printed("""
        import random, signal
        import numpy as np
        import hlotrace as jax, hlotrace.numpy as jnp
        from hlotrace.core.config import state
        from hlotrace.core.trace import EVAL
        jax.config.update("jax_explain_cache_misses", False)
        times, x, twice = random.Random(0), jnp.arange(3.0), jax.jit(lambda x: jnp.sin(x) * 2)
        def work(i):
            y = jnp.ones(i % 7 + 1) + jnp.cos(jnp.ones(i % 7 + 1))
            twice(y)
            jax.jit(lambda x: jax.lax.scan(lambda c, _: (c * i, c), x, None, length=3))(x)
            jax.grad(lambda x: jnp.sum(jax.vmap(jnp.tanh)(x) ** 2))(y)
            jax.jit(lambda x: jax.pure_callback(np.sin, x, x) + i)(x).block_until_ready()
            with jax.enable_x64(True):
                np.asarray(jnp.linspace(0.0, 1.0, 5) * 2)
            jax.jit(jax.vmap(lambda v: jnp.cumsum(v)[::-1], axis_name="i"))(y[None])
        def wait(i):
            jnp.dot(*[jnp.ones((700, 700))] * 2).block_until_ready()
        came = []
        def interrupt(*_):      # as SIGINT does; Python drops what is raised while a callback of a weak reference runs
            came.append(1)
            raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, interrupt)        # SIGINT, but at a time of its own
        def until_it_came(i):   # no loop in the try itself: Python 3.13 leaves a while's last jump out of it
            signal.setitimer(signal.ITIMER_REAL, times.uniform(1e-4, 0.1))
            while len(came) == i:
                (wait if i % 4 == 3 else work)(i)
        for i in range(40):
            try:
                until_it_came(i)
            except KeyboardInterrupt:
                pass
            assert state.trace is EVAL and not state.axis_env and not state.x64 and state.overrides is None
            assert np.allclose(twice(x), np.sin([0, 1, 2]) * 2)
        work(1)
        print(len(came))
    """) == "40\n"


def test_ctrl_c_at_each_place_that_holds_what_is_in_force():
    """An interrupt, in turn, wherever Python looks for one: at each start of a function, after each function
    in C."""
    assert printed("""
        import contextlib, gc, os, sys
        import hlotrace as jax, hlotrace.numpy as jnp
        from hlotrace.core import config, trace
        from hlotrace.sharding import mesh as meshes
        jax.config.update("jax_explain_cache_misses", False)
        owners = {module.__file__ for module in (config, trace, meshes, contextlib)}
        mesh = jax.make_mesh((1,), ("x",), (jax.sharding.AxisType.Auto,))
        def program(i):
            y = jnp.ones(2)
            jax.jit(lambda x: x + i)(y)
            jax.grad(lambda x: jax.vmap(jnp.tanh)(x).sum())(y), jax.linearize(jnp.sin, y), jax.make_jaxpr(jnp.sin)(y)
            jax.jvp(jnp.sin, (y,), (y,)), jax.experimental.jet.jet(jnp.sin, (1.0,), ((1.0, 0.0),))
            with jax.enable_x64(True):
                jnp.linspace(0.0, 1.0, 5)
            jax.random.normal(jax.random.key(i))
            with jax.named_scope("a"), jax.debug_nans(True):
                jax.vmap(lambda v: v + jax.lax.axis_index("i"), axis_name="i")(y)
            with mesh, jax.sharding.use_abstract_mesh(mesh.abstract_mesh):
                jax.shard_map(lambda v: v + i, mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P("x"))(y)
        def now():
            here = {k: v for k, v in vars(config.state).items() if k not in ("trace_key", "version")}
            return {**here, "gc": gc.isenabled()}
        program(0)
        clean, seen = now(), set()
        def interrupt(frame, event, _):
            code, caller = frame.f_code, frame.f_back
            if event not in ("call", "c_return") or caller is None:
                return
            place = event, code, frame.f_lasti, caller.f_code, caller.f_lineno
            mine = {code.co_filename, caller.f_code.co_filename} & owners
            by_user = "<string>" in (code.co_filename, caller.f_code.co_filename, caller.f_back and
                                     caller.f_back.f_code.co_filename)
            if (mine or code.co_name in ("__enter__", "__exit__")) and not by_user and place not in seen:
                seen.add(place)
                raise KeyboardInterrupt
        i = before = 0
        while i == 0 or before != len(seen):
            before, i = len(seen), i + 1
            try:
                sys.setprofile(interrupt)
                program(i)
            except KeyboardInterrupt:
                pass
            finally:
                sys.setprofile(None)
            assert now() == clean, now()
        print(len(seen) > 100)
    """) == "True\n"


def test_known_integers_divided_by_zero():
    """XLA of jaxlib 0.10 would divide them while it compiles, and end the process."""
    nothing = jnp.zeros(0, "int32")
    for dtype, most in (("int32", -1), ("uint8", 255)):
        found = jax.jit(lambda x, dtype=dtype: (
            lax.div(jnp.zeros(3, dtype), jnp.zeros(3, dtype)),
            lax.rem(jnp.full(3, 7, dtype), jnp.zeros((), dtype)),
            lax.div(x.sum().astype(dtype), x.sum().astype(dtype)), x * 0 // (x * 0)))(nothing)
        assert [np.asarray(f).tolist() for f in found] == [[most] * 3, [7] * 3, most, []]
    assert np.isnan(jnp.nanmean(nothing)) and jnp.nanmean(nothing, dtype="int32") == -1


def test_signals_are_held_while_something_must_be_whole():
    """Ctrl-C comes at the end of it; what else happens there is raised as it is, and the handlers are what
    they were."""
    assert printed("""
        import signal, threading
        from hlotrace.runtime.processes.interrupts import held
        signal.signal(signal.SIGINT, signal.default_int_handler)        # a job in the background starts without
        before, steps = signal.getsignal(signal.SIGINT), []
        try:
            with held():
                signal.raise_signal(signal.SIGINT)
                steps.append("whole")
        except KeyboardInterrupt:
            steps.append("interrupted")
        try:
            with held():
                1 / 0
        except ZeroDivisionError:
            steps.append("raised")
        def elsewhere():
            with held():
                steps.append("thread")
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert signal.getsignal(signal.SIGINT) is before
        print(*steps)
    """) == "whole interrupted raised thread\n"

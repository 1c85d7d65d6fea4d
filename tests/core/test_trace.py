"""Traces: which is current; what is known of a tracer."""
import operator
import threading

import numpy as np
import pytest
from not_compiled import ones_for_results

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.core.avals import ShapedArray
from hlotrace.core.config import state
from hlotrace.core.jaxpr_trace import trace_to_jaxpr
from hlotrace.core.trace import EVAL, concrete_or_error, is_concrete


def traced(f):
    return trace_to_jaxpr(lambda *xs: f(*xs), [ShapedArray((), "float32")])


@pytest.mark.quick
def test_one_trace_is_current_and_knows_its_parent():
    assert state.trace is EVAL and EVAL.parent is None and not EVAL.staging
    inside = []

    def inner(x):
        inside.append(state.trace)
        return [x]

    def outer(x):
        inside.append(state.trace)
        return traced(inner) and [x]
    traced(outer)
    first, second = inside
    assert second.parent is first and first.parent is EVAL and first.staging and not first.alive and not second.alive
    assert state.trace is EVAL
    with pytest.raises(ZeroDivisionError):
        traced(lambda x: 1 / 0)
    assert state.trace is EVAL


@pytest.mark.quick
def test_what_another_thread_sets_counts_when_the_trace_has_ended():
    """Not before: a program is traced under one set of options."""
    before, inside = state.trace_key, []

    def f(x):
        thread = threading.Thread(target=lambda: jax.config.update("jax_numpy_rank_promotion", "raise"))
        thread.start()
        thread.join()
        inside.append(state.trace_key)
        return [x]
    try:
        traced(f)
        assert inside == [before] and state.trace_key is not before
        assert state.trace_key.options != before.options
    finally:
        jax.config.update("jax_numpy_rank_promotion", "allow")
    assert state.trace_key is before


@pytest.mark.quick
def test_concrete_values():
    grads = []

    def f(x):
        grads.append((is_concrete(x), float(concrete_or_error(x))))
        return x
    jax.vjp(f, np.float32(3))
    assert grads == [(True, 3)] and is_concrete(5) and concrete_or_error(5) == 5
    with pytest.raises(jax.errors.ConcretizationTypeError, match="needed here"):
        traced(lambda x: [concrete_or_error(x, "needed here")])
    kept = []
    traced(lambda x: kept.append(x) or [x])
    with pytest.raises(jax.errors.UnexpectedTracerError):
        concrete_or_error(kept[0])


@pytest.mark.parametrize("transform, text", [
    (jax.jit, "JitTracer(float32[2])"), (jax.vmap, "VmapTracer(aval=float32[], batched=float32[2])"),
    (lambda f: lambda x: jax.vjp(f, x), "GradTracer(primal=[0. 1.], typeof(tangent)=f32[2])"),
    (lambda f: lambda x: jax.jvp(f, (x,), (x,)), "JVPTracer(primal=[0. 1.], tangent=[0. 1.])"),
    (lambda f: lambda x: jax.jit(f)(2), "JitTracer(~int32[])"),
    (lambda f: lambda x: jax.vmap(jax.grad(f))(x),
     "GradTracer(primal=VmapTracer(aval=float32[], batched=float32[2]), typeof(tangent)=f32[])"),
    (lambda f: lambda x: jax.jit(f)(jax.random.key(0)), "JitTracer(key<fry>[])"),
    (lambda f: lambda x: jax.jit(lambda x: f(jax.new_ref(x))[...])(x), "JitTracer(Ref{float32[2]})"),
])
def test_what_is_printed_of_a_tracer(transform, text):
    def f(x):
        seen.append((repr(x), str(x), f"{x}"))
        return x

    seen = []
    transform(f)(jnp.arange(2.0))
    assert seen == [(text,) * 3]


CONVERSIONS = {"bool": bool, "int": int, "float": float, "complex": complex, "index": operator.index, "len": len,
               "item": lambda x: x.item(), "tolist": lambda x: x.tolist()}


@pytest.mark.parametrize("convert", CONVERSIONS)
@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_a_tracer_of_a_known_value_converts_as_the_value_does(convert, dtype):
    """The same result, or an error of the same class, whatever the shape."""
    def outcome(x):
        try:
            return CONVERSIONS[convert](x)
        except Exception as error:
            return type(error)

    def traced(x):
        found = []
        tangent = x if x.dtype.kind == "f" else np.zeros(x.shape, jax.dtypes.float0)
        jax.jvp(lambda x: (found.append(outcome(x)), x)[1], (x,), (tangent,))
        return found[0]
    with ones_for_results():        # what is converted has elements that are 1
        for shape in ((), (1,), (1, 1), (0,), (2,), (2, 1)):
            x = jnp.ones(shape, dtype)
            assert traced(x) == outcome(x), shape

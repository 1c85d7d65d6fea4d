"""What a traced program holds; library functions are traced once for each type and spliced later."""

import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.core.avals import ShapedArray
from hlotrace.core.config import state
from hlotrace.core.jaxpr import Literal, sub_jaxprs
from hlotrace.core.jaxpr_trace import is_current, trace_to_jaxpr
from hlotrace.core.primitive import Primitive
from hlotrace.core.trace import EVAL
from hlotrace.errors import JaxprTypeError

X = np.linspace(0.5, 2, 6, dtype=np.float32).reshape(2, 3)
SCALAR = ShapedArray((), "float32")


def names(jaxpr):
    return [e.primitive.name for e in jaxpr.eqns] + [
        n for e in jaxpr.eqns for s in sub_jaxprs(e.params) for n in names(s)
    ]


def layered(x):
    for _ in range(3):
        x = jax.nn.softmax(jnp.var(x, axis=0) + x) * jnp.sin(x)
    return jnp.mean(x)


def test_the_program_is_flat_and_each_use_has_its_own_variables():
    grad = jax.make_jaxpr(jax.grad(layered))(X)
    assert not {"inlined", "jit"} & set(names(grad))
    bound = [v for e in grad.eqns for v in e.outvars]
    assert len(bound) == len(set(bound))
    again = jax.make_jaxpr(jax.grad(lambda x: layered(x)))(X)
    assert str(again) == str(grad)


def scanned(x):
    return lax.scan(lambda c, r: (c + layered(r * x), r), 0.0, x)[0]


@pytest.mark.parametrize("fun, x",
                         [(jax.grad(layered), X),
                          (jax.vmap(jax.grad(layered)), np.stack([X, X + 1])),
                          (jax.jacfwd(jax.grad(layered)), X),
                          (jax.grad(lambda x: jax.grad(layered)(x).sum()), X),
                          (lambda x: jax.linearize(layered, x)[1](x), X),
                          (jax.grad(scanned), X),
                          (lambda x: jax.linearize(scanned, x)[1](x), X),
                          (jax.grad(jax.checkpoint(layered)), X),
                          (lambda x: jax.vjp(layered, x)[1](jnp.float32(2)), X)])
def test_compiled_and_eager_agree(fun, x):
    eager, compiled = fun(jnp.asarray(x)), jax.jit(fun)(x)
    for a, b in zip(jax.tree.leaves(eager), jax.tree.leaves(compiled), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def test_a_constant_is_part_of_what_is_kept():
    f = jax.jit(lambda x: (x * 0.0, x * -0.0, jnp.where(x > 0, x, 1), jnp.where(x > 0, x, 1.0), x**2, x**3))
    a, b, c, d, e, g = jax.grad(lambda x: 0.0 * x)(1.0), *f(np.float32(2))[1:]
    assert np.signbit(b) and not np.signbit(a) and (c, d, e, g) == (2, 2, 4, 8)
    grads = [jax.jit(jax.grad(lambda x, k=k: x ** k))(3.0) for k in (2, 3, 2.0)]
    np.testing.assert_allclose(grads, [6, 27, 6], rtol=1e-6)


def test_an_option_is_part_of_what_is_kept():
    f = lambda x: jnp.var(x) * jnp.arange(2)
    assert jax.jit(f)(X).dtype == jnp.float32
    with jax.enable_x64(True):
        assert jax.jit(f)(X.astype(np.float64)).dtype == jnp.float64
    assert state.trace.staging is False


def test_equations_carry_the_line_of_their_own_use():
    def f(x):
        a = jnp.var(x)
        b = jnp.var(x)
        return jnp.mean(a + b)
    text = jax.jit(jax.grad(f)).lower(X).as_text(debug_info=True)
    first = f.__code__.co_firstlineno
    for line in (1, 2, 3):
        assert f'test_jaxpr_trace.py":{first + line}:' in text


def test_named_scopes_enclose_what_is_spliced():
    def f(x):
        with jax.named_scope("outer"):
            return jnp.var(x)
    for _ in range(2):
        assert "outer/" in jax.jit(lambda x: f(x)).lower(X).as_text(debug_info=True)


def test_an_error_names_the_callers_values():
    def f(params):
        return jnp.matmul(params["w"], params["w"])
    for _ in range(2):
        with pytest.raises(TypeError, match="matmul|dot"):
            jax.jit(f)({"w": X})
    with pytest.raises(jax.errors.ConcretizationTypeError, match=r"params\['w'\]"):
        jax.jit(lambda params: jnp.arange(params["w"]))({"w": 3})


# --- programs and what they have seen --------------------------------------------------------------------------------


def traced(f, *avals):
    return trace_to_jaxpr(lambda *xs: f(*xs), avals or [SCALAR])


@pytest.mark.quick
@pytest.mark.parametrize("bytes_each", [4, 4000], ids=["small", "large"])
@pytest.mark.parametrize("around", [lambda f: f, jax.jit, jax.checkpoint, lambda f: jax.jit(jax.jit(f))],
                         ids=["itself", "jit", "checkpoint", "jit of jit"])
def test_a_program_knows_whether_numpy_arrays_that_it_has_seen_are_as_they_were(around, bytes_each):
    """Also those that only a function inside of it has seen."""
    table = np.zeros(bytes_each // 4, np.float32)
    program = traced(lambda x: [around(lambda x: x + table)(x)])
    assert is_current(program)
    table[-1] = 1
    assert not is_current(program)
    table[-1] = 0
    assert is_current(program)


@pytest.mark.quick
def test_constants_of_a_program():
    """Python numbers and small arrays are literals, large ones are given beside it, one for each object."""
    small, large = np.ones(3, np.float32), np.ones(1000, np.float32)
    program = traced(lambda x: [x + 2.0, x + np.float16(1), x + small, large * x + large])
    literals = [v for eqn in program.eqns for v in eqn.invars if type(v) is Literal]
    assert len(program.consts) == 1 and program.consts[0].shape == (1000,)
    assert {v.aval.short() for v in literals} >= {"f32[]", "f32[3]"}
    small[:] = 7        # the program has what it was
    assert all((np.asarray(v.val) != 7).all() for v in literals)


@pytest.mark.quick
def test_nothing_is_traced_where_that_is_forbidden():
    with jax.no_tracing(), pytest.raises(RuntimeError, match="re-tracing fn, but 'no_tracing' is set"):
        traced(lambda x: [x])


@pytest.mark.quick
def test_checks_see_a_rule_that_gives_another_type(monkeypatch):
    """Where jax_enable_checks is on, each program is held against the typing rules of its equations."""
    changing = Primitive("changing", abstract_eval=lambda x: x)
    program = traced(lambda x: [changing.bind(x)])
    monkeypatch.setattr(changing, "abstract_eval",
                        lambda x: x if state.trace is not EVAL else x.update(dtype=np.dtype("int32")))
    assert str(traced(lambda x: [changing.bind(x)])) == str(program)
    with jax.enable_checks(True), pytest.raises(JaxprTypeError, match="changing: result is typed"):
        traced(lambda x: [changing.bind(x)])


def test_an_array_that_takes_another_shape_is_another_constant():
    x = np.arange(6, dtype=np.float32)

    def f(y):
        first = y + x
        x.resize((2, 3), refcheck=False)
        return first, y.reshape(2, 3) + x
    jaxpr = jax.make_jaxpr(f)(x.copy())
    assert [a.shape for a in jaxpr.out_avals] == [(6,), (2, 3)]


def test_scopes_of_a_program_are_within_those_of_where_it_is_spliced():
    def inner(x):
        with jax.named_scope("inner"):
            return jnp.sin(x)
    program = jax.make_jaxpr(lambda x: jnp.cos(inner(x)))(1.0)

    def outer(x):
        with jax.named_scope("outer"):
            return state.trace.splice(program, [x])
    assert [e.name_stack for e in jax.make_jaxpr(outer)(1.0).eqns] == ["outer/inner", "outer"]
    assert [e.name_stack for e in jax.make_jaxpr(lambda x: state.trace.splice(program, [x]))(1.0).eqns] == [
        "inner",
        "",
    ]

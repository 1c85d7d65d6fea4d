"""Programs evaluated by NumPy, equation by equation: formulas and what transformations make are checked without a compiler.

A primitive is here if a table of tests needs it; any other is refused by its name, or compiled alone where a test allows it.
"""
import numpy as np
from op_table.row import listed

import hlotrace as jax
from hlotrace.core.jaxpr import Literal, literal_value
from hlotrace.core.primitive import PRIMITIVES


def _dot(x, y, dimension_numbers, **_):
    if x.dtype.kind == "V":
        raise NotImplementedError("products of narrow floats")
    (cx, cy), (bx, by) = dimension_numbers
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    xs = [next(letters) for _ in range(x.ndim)]
    shared = dict(zip((*cy, *by), (xs[i] for i in (*cx, *bx))))
    ys = [shared[i] if i in shared else next(letters) for i in range(y.ndim)]
    batch = [xs[i] for i in bx]
    out = batch + [c for c in xs if c not in ys] + [c for c in ys if c not in xs]
    return np.einsum(f"{''.join(xs)},{''.join(ys)}->{''.join(out)}", x, y)


def _broadcast(x, shape, broadcast_dimensions, **_):
    full = [1] * len(shape)
    for axis, size in zip(broadcast_dimensions, x.shape):
        full[axis] = size
    return np.broadcast_to(x.reshape(full), shape)


def _pad(x, value, padding_config):
    for axis, (low, high, inner) in enumerate(padding_config):
        n = x.shape[axis]
        spread = np.full((*x.shape[:axis], n + max(n - 1, 0) * inner, *x.shape[axis + 1:]), value, x.dtype)
        spread[(slice(None),) * axis + (slice(None, None, inner + 1),)] = x
        sides = [(0, 0)] * x.ndim
        sides[axis] = max(low, 0), max(high, 0)
        x = np.pad(spread, sides, constant_values=value)
        x = x[(slice(None),) * axis + (slice(max(-low, 0), x.shape[axis] - max(-high, 0)),)]
    return x


def _plain(function):
    def run(*xs, **_):
        shapes = {x.shape for x in xs}
        assert len(shapes - {()}) < 2, f"NumPy broadcasts, a program does not: {shapes}"
        return function(*xs)
    return run


def _real(function):
    def run(*xs):
        if any(x.dtype.kind == "c" for x in xs):
            raise NotImplementedError(f"{function.__name__} of complex numbers")
        return _plain(function)(*xs)
    return run


def _convert(x, new_dtype, **_):
    return (x if np.dtype(new_dtype).kind == "c" else x.real).astype(new_dtype)


def _cumulative(function):
    def run(x, axis, reverse=False, **_):
        return np.flip(function(np.flip(x, axis), axis=axis), axis) if reverse else function(x, axis=axis)
    return run


def _reduce(function):
    return lambda x, axes, **_: function(x, axis=tuple(axes))


def _extreme(function, of_none):
    def run(x, axes, **_):
        info = np.iinfo(x.dtype) if x.dtype.kind in "iu" else None
        initial = np.clip(of_none, info.min, info.max) if info else of_none
        return function(x, axis=tuple(axes), initial=initial)
    return run


BY_NAME = {
    **{name: _plain(getattr(np, f)) for name, f in {
        "add": "add", "add_any": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "neg": "negative", "sin": "sin", "cos": "cos",
        "tan": "tan", "exp": "exp", "exp2": "exp2", "log": "log", "log1p": "log1p", "expm1": "expm1", "tanh": "tanh",
        "sinh": "sinh", "cosh": "cosh", "asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh",
        "acosh": "arccosh", "atanh": "arctanh", "sqrt": "sqrt", "cbrt": "cbrt", "square": "square",
        "pow": "power", "abs": "abs", "sign": "sign", "floor": "floor", "ceil": "ceil",
        "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
        "and": "bitwise_and", "or": "bitwise_or", "not": "invert",
        "real": "real", "imag": "imag", "conj": "conj",
        "copy": "array", "stop_gradient": "array", "rem": "fmod", "is_finite": "isfinite"}.items()},
    **{name: _real(f) for name, f in (("atan2", np.arctan2), ("max", np.maximum), ("min", np.minimum))},
    "complex": lambda x, y: x + 1j * y,
    "rsqrt": lambda x, **_: 1 / np.sqrt(x),
    "logistic": lambda x, **_: 1 / (1 + np.exp(-x)),
    "integer_pow": lambda x, y: x ** float(y),
    "convert_element_type": _convert,
    "broadcast_in_dim": _broadcast,
    "reshape": lambda x, new_sizes, **_: x.reshape(new_sizes),
    "squeeze": lambda x, dimensions, **_: np.squeeze(x, tuple(dimensions)),
    "transpose": lambda x, permutation: x.transpose(permutation),
    "rev": lambda x, dimensions: np.flip(x, dimensions),
    "slice": lambda x, start_indices, limit_indices, strides: x[tuple(map(slice, start_indices, limit_indices, strides or [1] * x.ndim))],
    "pad": _pad,
    "concatenate": lambda *xs, dimension: np.concatenate(xs, dimension),
    "name": lambda x, name: x,
    "iota": lambda dtype, shape, dimension, **_: _broadcast(np.arange(shape[dimension], dtype=dtype), shape, (dimension,)),
    "select_n": lambda which, *cases: np.choose(which.astype(int), cases) if which.ndim else np.array(cases[int(which)]),
    "dot_general": _dot,
    **{f"reduce_{name}": _reduce(f) for name, f in (
        ("sum", np.sum), ("prod", np.prod), ("and", np.bitwise_and.reduce), ("or", np.bitwise_or.reduce))},
    "reduce_max": _extreme(np.max, -np.inf),
    "reduce_min": _extreme(np.min, np.inf),
    **{name: _cumulative(f) for name, f in (("cumsum", np.cumsum), ("cumprod", np.cumprod), ("cummax", np.maximum.accumulate),
                                            ("cummin", np.minimum.accumulate))},
    "argmax": lambda x, axes, index_dtype, **_: np.argmax(x, *axes).astype(index_dtype),
    "argmin": lambda x, axes, index_dtype, **_: np.argmin(x, *axes).astype(index_dtype),
}
for known in BY_NAME:
    assert known in PRIMITIVES, known


def apply(primitive, operands, params):
    """What a primitive gives for arrays, as a list; what NumPy does not have is compiled."""
    if primitive.name in BY_NAME and all(isinstance(x.dtype, np.dtype) for x in operands):      # not of keys
        try:
            return [np.asarray(BY_NAME[primitive.name](*map(np.asarray, operands), **params))]
        except NotImplementedError:
            pass
    return listed(primitive.bind(*operands, **params))


def _held(x, aval):
    """An array, or keys as they are."""
    return np.asarray(x, aval.dtype) if isinstance(aval.dtype, np.dtype) else x


def evaluate(jaxpr, *args, compiled=None):
    """The results of a program, as NumPy arrays.

    Args:
        compiled: "the rest": primitives that are not here are called as they are; "all": all of them; or a
            function of (primitive, operands, parameters) that gives the result of what is not here.
    """
    env = {v: _held(x, v.aval) for v, x in zip(jaxpr.constvars, jaxpr.consts)}
    env |= {v: _held(x, v.aval) for v, x in zip(jaxpr.invars, args, strict=True)}

    def read(atom):
        return np.asarray(literal_value(atom), atom.aval.dtype) if type(atom) is Literal else env[atom]
    for eqn in jaxpr.eqns:
        operands, name = [read(v) for v in eqn.invars], eqn.primitive.name
        if name in BY_NAME and compiled != "all" and all(isinstance(x.dtype, np.dtype) for x in operands):
            results = [np.asarray(BY_NAME[name](*operands, **eqn.params))]
        elif name in ("jit", "inlined", "composite", "closed_call", "custom_jvp_call", "custom_vjp_call"):
            results = evaluate(eqn.params["jaxpr"], *operands, compiled=compiled)
        elif callable(compiled):
            results = [np.asarray(compiled(eqn.primitive, operands, eqn.params))]
        elif compiled:
            results = eqn.primitive.bind(*operands, **eqn.params)
            results = [_held(x, v.aval) for x, v in zip(listed(results), eqn.outvars, strict=True)]
        else:
            raise NotImplementedError(f"tests/reference.py does not have {name}")
        for v, x in zip(eqn.outvars, results, strict=True):
            assert (x.shape, x.dtype) == (v.aval.shape, v.aval.dtype), f"{name}: {v.aval} and not {x.dtype}{x.shape}"
            env[v] = x
    return [read(v) for v in jaxpr.outvars]


def run(function, *args, compiled=None):
    """What a function gives for arrays, flat: traced, and evaluated by NumPy."""
    jaxpr = jax.make_jaxpr(lambda *xs: jax.tree.leaves(function(*xs)))(*args)
    with np.errstate(all="ignore"):
        return evaluate(jaxpr, *jax.tree.leaves(args), compiled=compiled)


def by_numpy(function, *calls, compiled=None):
    """The results of each call, or None where a primitive of the program is not here."""
    jaxpr, shapes = jax.make_jaxpr(function, return_shape=True)(*calls[0])
    try:
        with np.errstate(all="ignore"):
            found = [evaluate(jaxpr, *jax.tree.leaves(args), compiled=compiled) for args in calls]
    except NotImplementedError:
        return None
    return [jax.tree.unflatten(jax.tree.structure(shapes), results) for results in found]


def evaluated(function):
    """The function, whose programs NumPy evaluates; only primitives that are not here are compiled."""
    return lambda *args: by_numpy(function, args, compiled="the rest")[0]


def draw(*shapes, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.uniform(0.3, 0.9, shape) for shape in shapes]


def check_rules(function, *args, **more):
    """`check_rules_wide` where 64 bits are on."""
    with jax.enable_x64():
        check_rules_wide(function, *args, **more)


def check_rules_wide(function, *args, mapped=None, linear=None):
    """Of a function of float64 arrays: its jvp is its slope, its transpose the adjoint of that, and vmap the loop.

    Args:
        mapped: which operands are mapped; all by default.
        linear: which operands it is linear in: `linear_transpose` of it is checked as well.
    """
    flat, step = lambda *xs: listed(function(*xs)), 1e-6
    tangents = draw(*(x.shape for x in args), seed=1)
    outs, slopes = np.split(np.array(run(lambda xs, ts: jax.jvp(flat, xs, ts), tuple(args), tuple(tangents)), object), 2)
    after, before = (run(flat, *(x + by * t for x, t in zip(args, tangents))) for by in (step, -step))
    for out, want, slope, a, b in zip(outs, run(flat, *args), slopes, after, before, strict=True):
        np.testing.assert_array_equal(np.asarray(out, float), want)
        np.testing.assert_allclose(np.asarray(slope, float), (a - b) / (2 * step), rtol=1e-6, atol=1e-7)
    cotangents = draw(*(np.shape(x) for x in outs), seed=2)
    pulled = run(lambda xs, cts: jax.vjp(flat, *xs)[1](cts), tuple(args), cotangents)
    dot = lambda xs, ys: sum(np.sum(np.asarray(x, float) * y) for x, y in zip(xs, ys, strict=True))
    np.testing.assert_allclose(dot(pulled, tangents), dot(slopes, cotangents), rtol=1e-9)
    for i in linear or ():
        def one(x, i=i):
            return flat(*args[:i], x, *args[i + 1:])
        back, = run(lambda cts, one=one, i=i: jax.linear_transpose(one, args[i])(cts), cotangents)
        np.testing.assert_allclose(dot([back], [args[i]]), dot(run(one, args[i]), cotangents), rtol=1e-9)
    where = range(len(args)) if mapped is None else mapped
    for axes in [tuple(0 if i == j else None for i in range(len(args))) for j in where] + [
            tuple(args[i].ndim if i in where else None for i in range(len(args)))]:
        stacks = [x if a is None else np.stack([x, x[::-1] if x.ndim else 1 - x, x * 0.5], a) for x, a in zip(args, axes)]
        found = run(jax.vmap(flat, axes), *stacks)
        each = [run(flat, *(x if a is None else x.take(n, a) for x, a in zip(stacks, axes))) for n in range(3)]
        for got, want in zip(found, zip(*each), strict=True):
            np.testing.assert_allclose(got, np.stack(want), rtol=1e-12)

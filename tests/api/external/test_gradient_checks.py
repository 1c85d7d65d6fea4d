"""check_grads and kin pass what is right, and say what is wrong and where."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.test_util import check_grads, check_jvp, check_vjp


@jax.custom_jvp
def wrong(x):
    return {"a": x["k"] ** 2, "b": jnp.sin(x["k"])}


@wrong.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    return wrong(x), {"a": 2 * x["k"] * t["k"], "b": jnp.cos(x["k"]) * t["k"] * jnp.array([1.0, 3.0])}


def test_right_derivatives_pass():
    check_grads(lambda x, n: {"a": x ** n, "n": n}, (jnp.array([0.5, 1.5]), 3), 2)
    check_grads(jnp.conj, (1 + 2j,), 1)
    check_grads(lambda a, b: a @ b, (jnp.ones((2, 3), "bfloat16"), jnp.ones((3, 2), "bfloat16")), 1)
    check_grads(jnp.sin, (np.float16(0.3),), 2, modes="fwd")
    with jax.enable_x64():
        check_grads(jnp.sin, (np.float64(0.3),), 3, modes=["rev"], atol=1e-7, rtol=1e-7, eps=1e-5)
    check_grads(lambda x: x.astype("int32"), (np.float32(1.5),), 2)
    check_grads(lambda x: jnp.sin(200 * x), (np.float32(0.3),), 1)      # bends too much for the first step
    check_grads(lambda x: 1e5 + x * x, (np.float32(0.3),), 1)           # differences of rounded values


@pytest.mark.parametrize(("modes", "words"), [
    ("fwd",
     r"check_grads: jvp: the derivative of the result\['b'\], float32\[2\], .* atol=0.002, .* at \[1\], expected"),
    ("rev", r"check_grads: vjp: the cotangent of args\[0\]\['k'\]")])
def test_wrong_derivatives_are_found(modes, words):
    x = {"k": jnp.array([0.5, 1.0])}
    with pytest.raises(AssertionError, match=words):
        check_grads(wrong, (x,), 1, modes)
    check_grads(wrong, (x,), 1, modes, atol=10, rtol=10)
    with pytest.raises(AssertionError, match=f"check_grads: {modes[0].replace('f', 'j').replace('r', 'v')}"):
        check_grads(lambda x: wrong(x)["a"] * 1.5 * jnp.sum(wrong(x)["b"]), (x,), 2, modes)


def test_functions_given_beside_their_derivatives():
    check_jvp(jnp.sin, lambda xs, ts: jax.jvp(jnp.sin, xs, ts), (1.0,), eps=1e-2)
    check_vjp(jnp.sin, lambda x: jax.vjp(jnp.sin, x), (1.0,), eps=1e-2)
    with pytest.raises(AssertionError, match="mine: the value of the result"):
        check_jvp(jnp.sin, lambda xs, ts: jax.jvp(jnp.cos, xs, ts), (1.0,), err_msg="mine")
    with pytest.raises(AssertionError, match=r"check_vjp: f gives .*\*"):
        check_vjp(jnp.sin, lambda x: ((jnp.sin(x),), None), (1.0,))
    check_grads(lambda x: x * 2, (1,), 1)       # an integer has no derivative to be wrong
    with pytest.raises(ValueError, match="modes"):
        check_grads(jnp.sin, (1.0,), 1, "reverse")
    with pytest.raises(AssertionError, match="expected inf"):
        check_grads(lambda x: jnp.where(x > 1, jnp.inf, x), (1.0,), 1)
    with pytest.raises(TypeError, match=r"\(x,\)"):
        check_grads(jnp.sin, 1.0, 1)


def test_tolerances_by_dtype():
    wrong = jax.custom_jvp(jnp.sin)
    wrong.defjvp(lambda p, t: (wrong(*p), 1.05 * jnp.cos(p[0]) * t[0]))
    for tolerance in 0.2, {np.dtype("float32"): 0.2}, {jnp.float32: 0.2, jnp.bfloat16: 1e-9}:
        check_grads(wrong, (1.,), 1, atol=tolerance, rtol=tolerance)
    with pytest.raises(AssertionError):
        check_grads(wrong, (1.,), 1, atol={jnp.bfloat16: 1.}, rtol={jnp.bfloat16: 1.})

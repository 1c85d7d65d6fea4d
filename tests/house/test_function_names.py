"""What `inspect` finds of public functions: each has the name that it is called by, a docstring and a
signature."""
import importlib
import inspect
import typing

import pytest

import hlotrace as jax
import hlotrace.numpy as jnp

pytestmark = pytest.mark.quick
MODULES = (
    "numpy numpy.linalg numpy.fft lax lax.linalg random nn nn.initializers tree tree_util scipy.special scipy.linalg "
           "scipy.signal scipy.stats scipy.ndimage scipy.fft image ops experimental.sparse").split()


@pytest.mark.parametrize("module", MODULES)
def test_functions_have_the_names_that_they_are_called_by(module):
    found = importlib.import_module(f"hlotrace.{module}")
    functions = {name: value for name in found.__all__ if callable(value := getattr(found, name))
                 and not isinstance(value, (type, typing.NewType)) and not typing.get_origin(value)}
    assert functions
    # another name may be of the same object, as nn.swish is nn.silu
    assert all(f.__name__ == name or functions[f.__name__] is f for name, f in functions.items())
    assert not [name for name, f in functions.items() if not f.__doc__]
    assert all(isinstance(inspect.signature(f), inspect.Signature) for f in functions.values())


@pytest.mark.parametrize("names, signature", [
    ("sin acos abs absolute conj degrees isnan logical_not bitwise_not", "(x, /)"), ("real imag", "(val, /)"),
    ("i0 trunc isreal", "(x)"), ("modf isposinf", "(x, /, out=None)"),
    ("arctan2 atan2 mod hypot true_divide", "(x1, x2, /)"),
    ("equal less left_shift float_power", "(x, y, /)"), ("fmax gcd lcm", "(x1, x2)"),
    ("add negative maximum logical_and bitwise_xor", "(*args, out=None, where=None)")])
def test_signatures_of_elementwise_functions(names, signature):
    assert {name: str(inspect.signature(getattr(jnp, name))) for name in names.split()} == dict.fromkeys(
        names.split(), signature)


@pytest.mark.parametrize("call, error", [
    (lambda: jnp.sin(1., out=1.), TypeError), (lambda: jnp.mod(5, 3, where=True), TypeError),
    (lambda: jnp.add(1, 2, out=3), NotImplementedError), (lambda: jnp.add(1, 2, 3), TypeError),
    (lambda: jnp.negative(1, where=True), NotImplementedError)])
def test_arguments_that_elementwise_functions_refuse(call, error):
    with pytest.raises(error):
        call()


def test_one_function_under_two_names():
    assert jnp.acos is not jnp.arccos and jax.nn.logsumexp is jax.scipy.special.logsumexp
    with pytest.raises(ValueError, match=r"jnp\.amax"):
        jnp.amax(jnp.ones(3), axis=4)
    with pytest.raises(TypeError, match=r"tree_util\.tree_map"):
        jax.tree_util.tree_map(1, 2)
    with pytest.raises(TypeError, match=r"tree\.map"):
        jax.tree.map(1, 2)

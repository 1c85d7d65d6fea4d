"""What functions do to keys, as values: `jax.experimental.key_reuse._core`."""
import pytest

import hlotrace.numpy as jnp
from hlotrace import jit, make_jaxpr, random
from hlotrace.as_jax import key_reuse_core as core
from hlotrace.as_jax.key_reuse_core import Forward, KeyReuseSignature, Sink, Source

KEY, KEYS = random.key(0), random.split(random.key(0), 3)


@pytest.mark.parametrize("function, argument, wanted", [
    (random.bits, KEY, (Sink(0),)), (random.split, KEY, (Sink(0), Source(0))),
    (lambda k: k, KEY, (Forward(0, 0),)),
    (random.key_data, KEY, ()), (random.clone, KEY, (Source(0),)),
    (lambda k: random.fold_in(k, 1), KEY, (Source(0),)),
    (lambda k: (k, random.bits(k)), KEY, (Sink(0), Forward(0, 0))),
    (core.consume, KEY, (Sink(0), Forward(0, 0))),
    (lambda k: k[0], KEYS, (Sink(0, [True, False, False]), Source(0))),
    (jit(random.bits), KEY, (Sink(0),)),
    (lambda k: k.reshape(3, 1), KEYS, (Forward(0, 0),)), (lambda k: k[:, None], KEYS, (Forward(0, 0),)),
    (lambda k: jnp.squeeze(k[:1]), KEYS, (Sink(0, [True, False, False]), Source(0))), (lambda x: x, 1., ()),
    (lambda k: core.assert_consumed(core.consume(k)), KEY, (Sink(0),)), (core.assert_unconsumed, KEY, ())])
def test_signatures(function, argument, wanted):
    assert core.function_type_signature(function, argument) == KeyReuseSignature(*wanted)


def test_equations_and_primitives():
    eqn = make_jaxpr(random.bits)(KEY).eqns[0]
    assert core.key_reuse_signature_from_eqn(eqn) == KeyReuseSignature(Sink(0))
    assert core.key_reuse_signature_from_primitive(core.consume_p, KEY) == KeyReuseSignature(
        Forward(0, 0), Sink(0))
    assert repr(KeyReuseSignature(Sink(0), Forward(0, 1))) == "KeyReuseSignature(Sink(0), Forward(0, 1))"


@pytest.mark.parametrize("function, error", [
    (lambda k: (random.bits(k), random.bits(k)), core.KeyReuseError), (core.assert_consumed, AssertionError),
    (lambda k: (random.bits(k), core.assert_unconsumed(k)), AssertionError)])
def test_what_is_found(function, error):
    with pytest.raises(error, match="consumed"):
        core.check_key_reuse(function, KEY)
    core.assert_consumed(KEY)       # outside of a program it says nothing
    with pytest.raises(ValueError, match="consume: programs that are checked for key reuse may have it"):
        jit(core.consume)(KEY)

"""Every transformation with every kind of value that is no array, in every role; what comes out is NumPy's.
"""
import dataclasses

import numpy as np
import pytest
from mesh8 import auto_mesh

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.experimental import hijax

START, X = np.array([1., 2., 3.], "float32"), np.float32(5)


# --- the kinds
# --------------------------------------------------------------------------------------------------

@dataclasses.dataclass
class Scaled:
    """Integers and what they are multiplied by; its tangents are arrays of floats."""
    numbers: object
    scale: object


@dataclasses.dataclass(frozen=True)
class ScaledType(hijax.HiType):
    shape: tuple

    def lo_ty(self):
        return [jax.core.ShapedArray(self.shape, jnp.int16),
                jax.core.ShapedArray(self.shape[:-1], jnp.float32)]

    def lower_val(self, value):
        return [value.numbers, value.scale]

    def raise_val(self, numbers, scale):
        return Scaled(numbers, scale)

    def to_tangent_aval(self):
        return jax.core.ShapedArray(self.shape, jnp.float32)

    def dec_rank(self, size, spec):
        return ScaledType(self.shape[1:])

    def inc_rank(self, size, spec):
        return ScaledType((size, *self.shape))


class Straight(hijax.VJPHiPrimitive):
    """Its derivative is that of what gives its argument."""
    def jvp(self, primals, tangents):
        return self(*primals), tangents[0]

    def vjp_fwd(self, perturbed, x):
        return self(x), None

    def vjp_bwd_retval(self, residuals, g):
        return (g,)


class Pack(Straight):
    def __init__(self, x):
        self.in_avals, self.out_aval, self.params = (x,), ScaledType(x.shape), {}
        super().__init__()

    def expand(self, x):
        return Scaled(jnp.round(2 * x).astype(jnp.int16), jnp.full(x.shape[:-1], 0.5, jnp.float32))


class Unpack(Straight):
    def __init__(self, ty):
        self.in_avals, self.out_aval, self.params = (ty,), ty.to_tangent_aval(), {}
        super().__init__()

    def expand(self, value):
        return value.numbers * value.scale[..., None]


class Box:
    def __init__(self, content):
        self.content = content

    def cur_qdd(self):
        return jax.core.ShapedArray(self.content.shape, self.content.dtype)


class BoxType(hijax.MutableHiType):
    def read_loval(self, made_of, box):
        return [get_box.bind(box)]

    def new_from_loval(self, made_of, content):
        return Box(content)

    def update_from_loval(self, made_of, box, content):
        set_box.bind(box, content)


class GetBox(hijax.HiPrimitive):
    def to_lojax(self, box):
        return box.content


class SetBox(hijax.HiPrimitive):
    multiple_results = True

    def to_lojax(self, box, content):
        box.content = content
        return []


class NewBox(hijax.HiPrimitive):
    def to_lojax(self, content):
        return Box(content)


get_box, set_box, new_box = GetBox("get_box"), SetBox("set_box"), NewBox("new_box")
BOX = BoxType()
hijax.register_hitype(Scaled, lambda value: ScaledType(value.numbers.shape))
hijax.register_hitype(Box, lambda box: BOX)


@dataclasses.dataclass(frozen=True)
class Kind:
    """How values of a kind are made of an array, read, and given another array: `write` gives the value."""
    make: object
    read: object
    write: object
    changes: bool


def _set(ref, x):
    ref[...] = x
    return ref


def _set_box(box, x):
    set_box.bind(box, x)
    return box


def pack(x):
    return Pack(jax.typeof(x))(x)


KINDS = {
    "Ref": Kind(lambda x: jax.new_ref(x), lambda r: r[...], _set, True),
    "view": Kind(lambda x: jax.new_ref(jnp.stack([x, -x])).at[0], lambda r: r[...], _set, True),
    "immutable": Kind(lambda x: pack(jnp.asarray(x)), lambda v: Unpack(jax.typeof(v))(v), lambda v,
                      x: pack(x), False),
    "mutable": Kind(lambda x: new_box.bind(jnp.asarray(x)), get_box.bind, _set_box, True),
}


def use(kind):
    """A function of a value and a number, which writes where it can: the sum of what was in it, times the
    number."""
    def used(value, x):
        before = kind.read(value)
        if kind.changes:
            kind.write(value, 2 * before + lax.stop_gradient(x))
        return before.sum() * x
    return used


# --- as an argument, and closed over
# ----------------------------------------------------------------------------

def _custom_jvp(f, *args):
    rule = jax.custom_jvp(f)
    rule.defjvp(lambda primals, tangents: (f(*primals), tangents[-1] * 100))
    return rule(*args) if len(args) == 2 else jax.grad(rule)(*args) / 100 * START.sum() * X


def _custom_vjp(f, *args):
    rule = jax.custom_vjp(f)
    rule.defvjp(lambda *primals: (f(*primals), None), lambda _, g: (*[None] * (len(args) - 1), g * 100))
    return jax.grad(rule, len(args) - 1)(*args) / 100 * START.sum() * X


def _shard_map(f, *args):
    mesh = auto_mesh((1,), ("d",))
    return jax.shard_map(f, mesh=mesh, in_specs=(jax.P(),) * len(args), out_specs=jax.P())(*args)


def _tangents(args):
    """Tangents of a value of an immutable type, and of a number."""
    return (*[np.zeros(3, "float32")] * (len(args) - 1), np.float32(1))


VALUE, SLOPE = START.sum() * X, START.sum()
CALLS = {       # of a function f(value, x) or f(x): what is called, and what comes out
    "call": (lambda f, *args: f(*args), VALUE),
    "jit": (lambda f, *args: jax.jit(f)(*args), VALUE),
    "jit in jit": (lambda f, *args: jax.jit(lambda *args: jax.jit(f)(*args))(*args), VALUE),
    "grad": (lambda f, *args: jax.grad(f, len(args) - 1)(*args), SLOPE),
    "grad in jit": (lambda f, *args: jax.jit(jax.grad(f, len(args) - 1))(*args), SLOPE),
    "grad of jit": (lambda f, *args: jax.grad(jax.jit(f), len(args) - 1)(*args), SLOPE),
    "value_and_grad": (lambda f, *args: jax.value_and_grad(f, len(args) - 1)(*args)[1], SLOPE),
    "vjp": (lambda f, *args: jax.vjp(f, *args)[1](np.float32(1))[-1], SLOPE),
    "jvp": (lambda f, *args: jax.jvp(f, args, _tangents(args))[1], SLOPE),
    "linearize": (lambda f, x: jax.linearize(f, x)[1](np.float32(1)), SLOPE),
    "vmap": (lambda f, *args: jax.vmap(f, (*[None] * (len(args) - 1), 0))(*args[:-1], args[-1][None])[0], VALUE),
    "checkpoint": (lambda f, *args: jax.checkpoint(f)(*args), VALUE),
    "custom_jvp": (_custom_jvp, VALUE),
    "custom_vjp": (_custom_vjp, VALUE),
    "cond": (lambda f, *args: lax.cond(True, f, lambda *args: 0 * args[-1], *args), VALUE),
    "switch": (lambda f, *args: lax.switch(1, [lambda *args: 0 * args[-1], f], *args), VALUE),
    "shard_map": (_shard_map, VALUE),
    "eval_shape": (lambda f, *args: jax.eval_shape(f, *args).shape, ()),
    "scan": (lambda f, *args: lax.scan(lambda c, _: (c, f(*args)), 0, None, length=1)[1][0], VALUE),
    "while_loop": (lambda f, *args: lax.while_loop(lambda s: s[0] < 1, lambda s: (s[0] + 1, f(*args)),
                                                   (0, np.float32(0)))[1], VALUE),
    "fori_loop": (lambda f, *args: lax.fori_loop(0, 1, lambda i, s: f(*args), np.float32(0)), VALUE),
}
LOOPS = ("scan", "while_loop", "fori_loop")     # their arguments are carried: see below
# (transformation, role, kinds) -> (error, its words, why it is so by nature)
RAISES = {
    **{(name, role, kind): (ValueError, "mapped|under vmap|batched|meaning",
                            "what differs for each cannot be in what all share")
       for name in ("vmap",) for role in ("argument", "closure") for kind in ("Ref", "view", "mutable")},
    **{("jvp", "argument", kind): (TypeError, "same tree structure", "what can change has no tangent")
       for kind in ("Ref", "view", "mutable")},
}


def expect(name, role, kind):
    """A context in which the error of a cell is raised, or nothing; and whether it is."""
    row = RAISES.get((name, role, kind))
    return (pytest.raises(row[0], match=row[1]) if row else None), row


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [n for n in CALLS if n not in (*LOOPS, "linearize")])
def test_as_an_argument(name, kind):
    k, (call, want) = KINDS[kind], CALLS[name]
    value = k.make(START)
    context, raises = expect(name, "argument", kind)
    if raises:
        with context:
            call(use(k), value, X)
        np.testing.assert_array_equal(k.read(value), START)
        return
    np.testing.assert_allclose(call(use(k), value, X), want)
    after = START if name == "eval_shape" or not k.changes else 2 * START + X
    np.testing.assert_array_equal(k.read(value), after)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CALLS)
def test_closed_over(name, kind):
    k, (call, want) = KINDS[kind], CALLS[name]
    value = k.make(START)
    context, raises = expect(name, "closure", kind)
    if raises:
        with context:
            call(lambda x: use(k)(value, x), X)
        np.testing.assert_array_equal(k.read(value), START)
        return
    np.testing.assert_allclose(call(lambda x: use(k)(value, x), X), want)
    after = START if name == "eval_shape" or not k.changes else 2 * START + X
    np.testing.assert_array_equal(k.read(value), after)


@pytest.mark.parametrize("kind", KINDS)
def test_mapped_arguments(kind):
    k, starts = KINDS[kind], np.stack([START, 10 * START])
    value, xs = k.make(starts), np.array([1., 2.], "float32")
    for call in jax.vmap(use(k)), jax.jit(jax.vmap(use(k))):
        np.testing.assert_allclose(call(value, xs), starts.sum(1) * xs)
        starts = 2 * starts + xs[:, None] if k.changes else starts
        np.testing.assert_array_equal(k.read(value), starts)


# --- as a carry
# -------------------------------------------------------------------------------------------------

STEPS = np.array([1., 2., 3.], "float32")
CARRIES = {     # of a function step(value, x) -> value: the loop over STEPS
    "scan": lambda step, v: lax.scan(lambda v, x: (step(v, x), None), v, STEPS)[0],
    "scan in jit": lambda step, v: jax.jit(lambda v: lax.scan(lambda v, x: (step(v, x), None), v, STEPS)[0])(v),
    "fori_loop": lambda step, v: lax.fori_loop(0, 3, lambda i, v: step(v, jnp.asarray(STEPS)[i]), v),
    "while_loop": lambda step, v: lax.while_loop(lambda s: s[0] < 3, lambda s: (
        s[0] + 1, step(s[1], jnp.asarray(STEPS)[s[0]])), (0, v))[1],
    "cond": lambda step, v: lax.cond(True, lambda v: step(step(step(v, 1.), 2.), 3.), lambda v: v, v),
    "switch": lambda step, v: lax.switch(0, [lambda v: step(step(step(v, 1.), 2.), 3.), lambda v: v], v),
    "checkpoint": lambda step, v: jax.checkpoint(lambda v: step(step(step(v, 1.), 2.), 3.))(v),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CARRIES)
def test_as_a_carry(name, kind):
    k = KINDS[kind]
    value = k.make(START)

    def run():
        return CARRIES[name](lambda v, x: k.write(v, k.read(v) * 2 + x), value)
    if kind in ("Ref", "view"):     # who gets one back could not know which it is: it stays where it is
        with pytest.raises(ValueError, match="mutable array references cannot be returned"):
            run()
        return
    if kind == "mutable" and name == "scan in jit":     # the caller has it already
        with pytest.raises(ValueError, match="returned a mutable value that it was given"):
            run()
        return
    found = run()
    assert (found is value) == (kind == "mutable")
    np.testing.assert_array_equal(k.read(found), ((START * 2 + 1) * 2 + 2) * 2 + 3)


# --- as a result
# ------------------------------------------------------------------------------------------------

RESULTS = {     # of a function make(x) -> value: called with START, with what the array of the result is
    "jit": (lambda make: jax.jit(make)(START), START),
    "grad": (lambda make: jax.grad(lambda x: (x.sum(), make(x)), has_aux=True)(START)[1], START),
    "value_and_grad": (lambda make: jax.value_and_grad(lambda x: (x.sum(), make(x)), has_aux=True)(START)[0][1], START),
    "vjp": (lambda make: jax.vjp(make, START)[0], START),
    "jvp": (lambda make: jax.jvp(make, (START,), (START,))[0], START),
    "linearize": (lambda make: jax.linearize(make, START)[0], START),
    "vmap": (lambda make: jax.vmap(make)(np.stack([START, START])), np.stack([START, START])),
    "checkpoint": (lambda make: jax.checkpoint(make)(START), START),
    "scan": (lambda make: lax.scan(lambda c, x: (c, make(x)), 0, np.stack([START, -START]))[1], np.stack([START, -START])),
    "cond": (lambda make: lax.cond(False, lambda x: make(2 * x), make, START), START),
    "switch": (lambda make: lax.switch(0, [make, lambda x: make(2 * x)], START), START),
    "shard_map": (lambda make: jax.shard_map(make, mesh=auto_mesh((1,), ("d",)), in_specs=jax.P(),
                                             out_specs=jax.P())(START), START),
    "custom_vjp": (lambda make: custom(make)(START), START),
}


def custom(make):
    rule = jax.custom_vjp(make)
    rule.defvjp(lambda x: (make(x), None), lambda _, g: (g,))
    return rule


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", RESULTS)
def test_as_a_result(name, kind):
    k, (call, want) = KINDS[kind], RESULTS[name]
    if kind in ("Ref", "view"):     # it lives in the function that made it
        with pytest.raises(ValueError, match="mutable array references cannot be returned"):
            call(k.make)
        return
    np.testing.assert_array_equal(k.read(call(k.make)), want)


# --- derivatives with respect to a value
# ------------------------------------------------------------------------

WEIGHTS = np.array([1., 10., 100.], "float32")
DERIVATIVES = {     # of a function f(value) -> number, which is the sum of WEIGHTS times what is in it
    "grad": lambda f, v: jax.grad(f)(v),
    "jit": lambda f, v: jax.jit(jax.grad(f))(v),
    "value_and_grad": lambda f, v: jax.value_and_grad(f)(v)[1],
    "vjp": lambda f, v: jax.vjp(f, v)[1](np.float32(1))[0],
    "of jit": lambda f, v: jax.grad(jax.jit(f))(v),
    "of checkpoint": lambda f, v: jax.grad(jax.checkpoint(f))(v),
    "of cond": lambda f, v: jax.grad(lambda v: lax.cond(True, f, lambda v: np.float32(0), v))(v),
    "of scan": lambda f, v: jax.grad(lambda v: lax.scan(lambda v, _: (v, f(v)), v, None, length=4)[1].sum() / 4)(v),
    "of custom_vjp": lambda f, v: jax.grad(custom(f))(v) * WEIGHTS,
    "of vmap": lambda f, v: jax.grad(lambda v: jax.vmap(lambda x: f(v) * x)(np.ones(2, "float32")).sum() / 2)(v),
    "vmap": lambda f, v: jax.vmap(jax.grad(f), (None,), axis_size=2)(v)[1],
    "by jvp": lambda f, v: np.array([jax.jvp(f, (v,), (e,))[1] for e in np.eye(3, dtype="float32")]),
    "of shard_map": lambda f, v: jax.grad(lambda v: _shard_map(f, v))(v),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_with_respect_to_a_value(name, kind):
    k = KINDS[kind]

    def f(value):
        return (k.read(value) * WEIGHTS).sum()
    value = k.make(START)
    if kind != "immutable":     # what is in it is not what was passed, once it is written
        if name == "vjp":
            assert DERIVATIVES[name](f, value) is None
            return
        with pytest.raises((TypeError, ValueError), match="with respect to|structure|mapped|axis"):
            DERIVATIVES[name](f, value)
        return
    if name == "of custom_vjp":
        rule = jax.custom_vjp(f)
        rule.defvjp(lambda v: (f(v), None), lambda _, g: (g * WEIGHTS,))
        np.testing.assert_array_equal(jax.grad(rule)(value), WEIGHTS)
        return
    np.testing.assert_allclose(DERIVATIVES[name](f, value), WEIGHTS)


def test_every_cell_that_raises_is_one():
    assert all(name in CALLS and role in ("argument", "closure") and kind in KINDS for name, role,
               kind in RAISES)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if KINDS[kind].changes])
@pytest.mark.parametrize("call", [
    lambda f, v: jax.jit(f)(v, v), lambda f, v: jax.vmap(f)(v, v), lambda f, v: jax.checkpoint(f)(v, v),
    lambda f, v: lax.cond(True, f, f, v, v), lambda f, v: lax.scan(lambda c, x: (c, 0), (v, v), None,
                                                                   length=1),
    lambda f, v: lax.while_loop(lambda c: False, lambda c: c, (v, v)), lambda f, v: jax.vjp(f, v, v),
    lambda f, v: custom(f)(v, v), lambda f, v: jax.jit(f).lower(v, v), lambda f, v: jax.eval_shape(f, v, v),
    lambda f, v: jax.shard_map(f, mesh=auto_mesh((1,), ("d",)), in_specs=jax.P(),
                               out_specs=jax.P())(v, v)],
    ids=["jit", "vmap", "checkpoint", "cond", "scan", "while", "vjp", "custom_vjp", "lower", "eval_shape",
         "shard_map"])
def test_what_can_change_is_passed_once(call, kind):
    k = KINDS[kind]
    with pytest.raises(ValueError, match="only one reference to a mutable array may be passed .* appeared at "
                       "both"):
        call(lambda a, b: k.read(a) + k.read(b), k.make(START))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if KINDS[kind].changes])
@pytest.mark.parametrize("call", [lambda f, v: jax.jit(f)(v), lambda f, v: jax.vmap(f)(v), lambda f,
                                  v: jax.eval_shape(f, v)], ids=["jit", "vmap", "eval_shape"])
def test_what_can_change_is_passed_or_closed_over(call, kind):
    k = KINDS[kind]
    value = k.make(START)
    with pytest.raises(ValueError, match="both closed over (by a function )?and passed (to it )?as an argument"):
        call(lambda v: k.read(value), value)
    np.testing.assert_array_equal(k.read(value), START)


def test_a_spec_of_a_value_is_that_of_its_arrays():
    """A PartitionSpec of all of them, a HiPspec of each."""
    class Spec(hijax.HiPspec):
        def to_lo(self):
            return [jax.P("d"), jax.P("d")]
    mesh, value = auto_mesh((1,), ("d",)), pack(jnp.stack([START, 2 * START]))
    for spec in jax.P("d"), Spec():
        found = jax.shard_map(KINDS["immutable"].read, mesh=mesh, in_specs=(spec,), out_specs=jax.P("d"))(value)
        np.testing.assert_array_equal(found, [START, 2 * START])

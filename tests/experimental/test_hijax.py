"""experimental.hijax: values of the user's own types go through jit as their arrays, and mutable ones are
updated."""
import dataclasses
import functools

import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.core import effects
from hlotrace.experimental import cur_qdd, hijax


@dataclasses.dataclass
class Scaled:
    """int8 numbers and what they are multiplied by."""
    numbers: object
    scale: object


@dataclasses.dataclass(frozen=True)
class ScaledType(hijax.HiType):
    shape: tuple

    def lo_ty(self):
        return [jax.core.ShapedArray(self.shape, jnp.int8), jax.core.ShapedArray((), jnp.float32)]

    def lower_val(self, value):
        return [value.numbers, value.scale]

    def raise_val(self, numbers, scale):
        return Scaled(numbers, scale)

    def to_tangent_aval(self):
        return jax.core.ShapedArray(self.shape, jnp.float32)


class Pack(hijax.HiPrimitive):
    def to_lojax(self, x, *, bits):
        scale = jnp.max(jnp.abs(x)) / (2**(bits - 1) - 1)
        return Scaled(jnp.round(x / scale).astype(jnp.int8), scale)

    def jvp(self, primals, tangents, *, bits):
        return pack.bind(*primals, bits=bits), tangents[0]      # straight through


class Unpack(hijax.HiPrimitive):
    def impl(self, value):
        return value.numbers * value.scale

    def jvp(self, primals, tangents):
        return unpack.bind(*primals), tangents[0]


class Read(hijax.HiPrimitive):
    def to_lojax(self, value):
        return value.scale


class Box:
    """A pytree that can be replaced."""
    __slots__ = ("content",)

    def __init__(self, content):
        self.content = content

    def cur_qdd(self):
        return MadeOf(jax.tree.structure(self.content), tuple(map(jax.typeof, jax.tree.leaves(self.content))))


@dataclasses.dataclass(frozen=True)
class MadeOf:
    structure: object
    types: tuple

    def normalize(self):
        return MadeOf(self.structure, tuple(t.normalize() for t in self.types))


class BoxType(hijax.MutableHiType):
    def read_loval(self, made_of, box):
        return jax.tree.leaves(get.bind(box))

    def new_from_loval(self, made_of, *arrays):
        return Box(jax.tree.unflatten(made_of.structure, arrays))

    def update_from_loval(self, made_of, box, *arrays):
        put.bind(box, made_of.structure, *arrays)


class Get(hijax.HiPrimitive):
    def to_lojax(self, box):
        return box.content


class Put(hijax.HiPrimitive):
    multiple_results = True

    def to_lojax(self, box, structure, *arrays):
        box.content = jax.tree.unflatten(structure, arrays)
        return []


class New(hijax.HiPrimitive):
    def to_lojax(self, *arrays):
        return Box(list(arrays))


pack, unpack, get, put, new = Pack("pack"), Unpack("unpack"), Get("get"), Put("put"), New("new")
BOX = BoxType()
hijax.register_hitype(Scaled, lambda value: ScaledType(value.numbers.shape))
hijax.register_hitype(Box, lambda box: BOX)


def write(box, content):
    put.bind(box, jax.tree.structure(content), *jax.tree.leaves(content))


X = np.array([1., 2., -3.], "float32")
PACKED = [42, 85, -127]


def test_values_go_in_and_out_of_compiled_functions_and_their_results():
    eager, scale = pack.bind(X, bits=8), np.float32(3 / 127)
    assert type(eager) is Scaled and eager.numbers.tolist() == PACKED
    found = jax.jit(lambda x: {"a": pack.bind(x, bits=8)})(X)["a"]
    assert type(found) is Scaled and found.numbers.tolist() == PACKED and found.scale == scale
    for f in (unpack.bind, jax.jit(unpack.bind), jax.jit(lambda v: jax.jit(unpack.bind)(v))):
        np.testing.assert_allclose(f(found), np.array(PACKED) * scale, rtol=1e-6)
    counted = []
    f = jax.jit(lambda value, n: counted.append(n) or unpack.bind(value) * n, static_argnums=1)
    assert f(found, 2).tolist() == f(eager, 2).tolist() and counted == [2]
    batched = jax.vmap(lambda x: unpack.bind(pack.bind(x, bits=8)))(np.stack([X, 2 * X]))
    np.testing.assert_allclose(batched[1], 2 * np.array(PACKED) * scale, rtol=1e-6)
    total = jax.lax.fori_loop(0, 3, lambda i, c: c + unpack.bind(found)[2], jnp.float32(0))      # closed over
    np.testing.assert_allclose(total, -9, rtol=1e-6)
    assert jax.typeof(found) == ScaledType((3,)) and repr(hijax.HiType()) == "HiType()"
    packed = jax.jit(lambda x: pack.bind(x, bits=8))
    for types in jax.eval_shape(packed, X), packed.eval_shape(X), jax.make_jaxpr(packed, return_shape=True)(
        X)[1]:
        assert types == ScaledType((3,))
    # a type goes where a value's type is all that is needed
    for value in found, ScaledType((3,)):
        assert jax.eval_shape(unpack.bind, value).shape == jax.jit(unpack.bind).lower(
            value).out_info.shape == (3,)
        assert jax.jit(unpack.bind).trace(value).jaxpr.eqns and jax.make_jaxpr(unpack.bind)(value).eqns
        assert "name=unpack" in str(jax.make_jaxpr(unpack.bind)(value)) and "rules=" not in str(
            jax.make_jaxpr(unpack.bind)(value))
    assert jax.typeof(jax.ShapeDtypeStruct((2,), "int8")) == jax.core.ShapedArray((2,), jnp.int8)
    for length in None, 3:      # the scale is one number
        with pytest.raises(ValueError, match="no leading axis to scan over: xs"):
            jax.lax.scan(lambda c, x: (c, None), 0, found, length)


def test_derivatives_by_the_rules_of_primitives():
    weights = np.array([1., 2., 3.], "float32")

    def loss(x):
        return (unpack.bind(pack.bind(x, bits=8)) * weights).sum()
    for f in (loss, jax.jit(loss), jax.checkpoint(loss)):
        np.testing.assert_array_equal(jax.grad(f)(X), weights)
        assert jax.jvp(f, (X,), (X,))[1] == (X * weights).sum()
    np.testing.assert_array_equal(jax.vmap(jax.grad(loss))(np.stack([X, X])), [weights, weights])
    packed = pack.bind(X, bits=8)
    np.testing.assert_array_equal(jax.grad(lambda v: (unpack.bind(v) * weights).sum())(packed), weights)
    with pytest.raises(NotImplementedError, match="read has no rule for its derivatives"):
        jax.grad(jax.jit(lambda x: Read("read").bind(pack.bind(x, bits=8))))(X)
    with pytest.raises(TypeError, match="Jacobian is by elements"):
        jax.jacrev(unpack.bind)(packed)


def test_mutable_arguments_have_their_new_state_after_the_call():
    box, traced = Box({"n": jnp.int32(0)}), []

    @jax.jit
    def count(box, x, *, by=1):
        traced.append(1)
        state = get.bind(box)
        write(box, {"n": state["n"] + by, "last": x} if "last" not in state
              else {**state, "n": state["n"] + by})
        return state["n"] * 10

    assert count(box, X) == 0 and box.content["n"] == 1 and box.content["last"].tolist() == X.tolist()
    # of another structure now
    assert count(box, X) == 10 and count(box, X, by=4) == 20 and box.content["n"] == 6
    assert len(traced) == 3 and count(box, X) == 60 and len(traced) == 3
    assert jax.jit(lambda b, x: count(b, x) + get.bind(b)["n"])(box, X) == 78 and box.content["n"] == 8
    assert jax.eval_shape(count, box, X).shape == () and box.content["n"] == 8
    made = jax.jit(lambda x: new.bind(x, x + 1))(1.)
    assert type(made) is Box and made.content == [1, 2] and cur_qdd(made).types[0].shape == ()
    with pytest.raises(ValueError, match="only one reference .* appeared at both a and b"):
        jax.jit(lambda a, b: None)(box, box)
    with pytest.raises(ValueError, match="<lambda>.*returned a mutable value that it was given"):
        jax.jit(lambda b: [b])(box)


@pytest.mark.parametrize("run", [
    lambda f: jax.jit(lambda: [f() for _ in range(5)] and None)(),
    lambda f: [jax.jit(f)() for _ in range(5)],
    lambda f: jax.lax.scan(lambda *_: (None, f()), None, None, length=5),
    lambda f: jax.jit(lambda: jax.lax.fori_loop(0, 5, lambda i, c: f() or c, 0))(),
    lambda f: [jax.lax.cond(i < 5, f, lambda: None) for i in range(7)]],
                         ids=["jit", "jits", "scan", "loop in jit", "cond"])
def test_mutable_values_from_outside_of_a_program_are_read_and_written_in_it(run):
    box = Box([jnp.float32(3), X])
    run(lambda: write(box, [get.bind(box)[0] + 1, get.bind(box)[1]]))
    assert get.bind(box)[0] == 8 and get.bind(box)[1].tolist() == X.tolist()
    write(box, [jnp.float32(1), X])     # and is seen by compiled programs
    run(lambda: write(box, [get.bind(box)[0] + 1, get.bind(box)[1]]))
    assert get.bind(box)[0] == 6


def test_mutable_values_made_in_a_program_and_in_derivatives():
    def loss(x, box):
        inner = new.bind(x)
        write(inner, [get.bind(inner)[0] ** 2])
        write(box, [jax.lax.stop_gradient(x * 3)])
        return get.bind(inner)[0] + get.bind(box)[0]
    for transform in (lambda f: f, jax.jit):
        box = Box([jnp.float32(1)])
        assert transform(lambda x, b: jax.grad(lambda x: loss(x, b))(x))(4., box) == 8 and get.bind(box)[
            0] == 12
    with pytest.raises(ValueError, match="cannot come to be made of"):
        jax.jit(lambda: write(box, []))()


@dataclasses.dataclass(frozen=True)
class Along(hijax.MappingSpec):
    """By which axis a Rows is mapped."""
    axis: int


@dataclasses.dataclass
class Rows:
    array: object


@dataclasses.dataclass(frozen=True)
class RowsType(hijax.HiType):
    shape: tuple

    def lo_ty(self):
        return [jax.core.ShapedArray(self.shape, jnp.float32)]

    def lower_val(self, rows):
        return [rows.array]

    def raise_val(self, array):
        return Rows(array)

    def dec_rank(self, size, spec):
        return RowsType(self.shape[:spec.axis] + self.shape[spec.axis + 1:])

    def inc_rank(self, size, spec):
        return RowsType((*self.shape[:spec.axis], size, *self.shape[spec.axis:]))

    def leading_axis_spec(self):
        return Along(0)


hijax.register_hitype(Rows, lambda rows: RowsType(rows.array.shape))


class Double(hijax.VJPHiPrimitive):
    """Twice the rows, by rules of its own, which note that they are asked."""
    def __init__(self, ty, asked=()):
        self.in_avals, self.out_aval, self.params = (ty,), ty, {}
        super().__init__()
        self.asked = asked

    def expand(self, rows):
        return Rows(2 * rows.array)

    def vjp_fwd(self, perturbed, rows):
        self.asked.append(perturbed)
        return self(rows), None

    def vjp_bwd(self, residuals, g, accumulator):
        accumulator.accum(g)
        accumulator.accum(g)

    def batch(self, axis, args, dims):
        self.asked.append((axis.size, dims, args[0].array.shape))
        return Double(RowsType(args[0].array.shape), self.asked)(*args), dims[0]


def test_rules_for_batching_and_for_accumulators():
    rows, asked = Rows(jnp.arange(6.).reshape(2, 3)), []

    def total(rows):
        return (Double(jax.typeof(rows), asked)(rows).array * X[:rows.array.shape[0]]).sum()
    gradient = jax.grad(lambda r: (Double(jax.typeof(r), asked)(r).array * X).sum())(rows)
    assert asked == [(True,)] and gradient.array.tolist() == (2 * np.array([X, X])).tolist()
    for axis in 0, 1:
        asked.clear()
        found = jax.vmap(total, in_axes=(Along(axis),), axis_size=(2, 3)[axis])(rows)
        each = np.moveaxis(np.arange(6.).reshape(2, 3), axis, 0)
        np.testing.assert_allclose(found, [(2 * r * X[:len(r)]).sum() for r in each])
        assert asked == [((2, 3)[axis], (Along(axis),), (2, 3))]
    out = jax.vmap(lambda r: Double(jax.typeof(r), asked)(r), in_axes=(Along(1),), out_axes=Along(0),
                   axis_size=3)(rows)
    assert out.array.tolist() == (2 * np.arange(6.).reshape(2, 3).T).tolist()
    with pytest.raises(ValueError, match="give axis_size"):
        jax.vmap(total, in_axes=(Along(1),))(rows)
    ref, kept, nothing = jax.new_ref(jnp.zeros(3)), hijax.ValAccum(), hijax.NullAccum()
    for accumulator in hijax.RefAccum(None, ref), kept, nothing:
        accumulator.accum(X)
        accumulator.accum(X)
        assert isinstance(accumulator, hijax.GradAccum)
    assert ref[...].tolist() == kept.freeze().tolist() == (2 * X).tolist() and nothing.freeze() is None
    assert type(ref.at[0]) is hijax.TransformedRef


class Negative(hijax.VJPHiPrimitive):
    def __init__(self, x):
        self.in_avals, self.out_aval, self.params = (x,), x, {}
        super().__init__()

    def expand(self, x):
        return -x

    def jvp(self, primals, tangents):
        return self(*primals), Negative(jax.typeof(tangents[0]))(*tangents)

    def transpose(self, ct, x):
        assert hijax.is_undefined_primal(x)
        return (ct * -100,)


class Accumulating(Negative):
    def transpose(self, ct, x):
        x.accum(ct * -50)
        x.accum(ct * -50)


class Bare(Negative):
    jvp = None


class Mistaken(Negative):
    def jvp(self, primals, tangents):
        return [self(*primals)], tangents[0]


def test_rules_for_transposition_and_mistakes():
    def negative(x, kind=Negative):
        return kind(jax.typeof(x))(x)
    for f in (negative, jax.jit(negative), functools.partial(negative, kind=Accumulating)):
        assert jax.jvp(f, (X,), (X,))[1].tolist() == (-X).tolist()
        assert jax.grad(lambda x, f=f: f(x).sum())(X).tolist() == [-100] * 3
        assert jax.vmap(jax.grad(f))(X).tolist() == [-100] * 3 == jax.grad(
            lambda x, f=f: jax.vmap(f)(x).sum())(X).tolist()
        assert jax.linear_transpose(f, X)(X)[0].tolist() == (-100 * X).tolist()
    aval = jax.typeof(jnp.asarray(X))
    assert Negative(aval) == Negative(aval) != Bare(aval) and len({Negative(aval), Negative(aval)}) == 1
    for wrong, error, words in [
            (lambda: jax.grad(lambda x: Bare(aval)(x).sum())(X), NotImplementedError,
             "Bare has no rule for its derivatives"),
            (lambda: jax.jvp(Mistaken(aval), (X,), (X,)), TypeError,
             "Mistaken: its rule jvp must give a result of the structure"),
            (lambda: Negative(aval)(X, X), TypeError, "takes 1 arguments, those of in_avals, and got 2"),
            (lambda: jax.jvp(Double(RowsType((3,)), []), (Rows(X),), (Rows(X),)), NotImplementedError,
             "must implement `jvp`: it has a rule for reverse mode alone"),
            (lambda: hijax.VJPHiPrimitive(), AttributeError, "must set in_avals")]:
        with pytest.raises(error, match=words):
            wrong()


def test_what_is_written_from_inside_to_a_mutable_value_from_outside():
    box = Box([jnp.float32(1)])
    for transform, words in (lambda f: jax.grad(f)(2.), "value of grad"), (lambda f: jax.vmap(f)(X),
                                                                           "value of vmap"):
        with pytest.raises(ValueError, match=f"a {words}( or jvp)?( of .*)? is written"):
            transform(lambda x: write(box, [x]) or x)
        assert get.bind(box) == [1]


def test_declarations_and_what_is_refused():
    class Effect(effects.Effect):
        pass
    hijax.control_flow_allowed_effects.add_type(Effect)
    assert hijax.control_flow_allowed_effects.contains(Effect()) and issubclass(
        hijax.ShapedArray, hijax.AbstractValue)
    assert hijax.aval_property(lambda aval: 3).fget(None) == 3 and issubclass(
        hijax.AvalMutableQDD, hijax.AvalQDD)
    assert repr(hijax.HiPrimitive("new_box")) == "new_box" and hijax.HiPspec() and hijax.aval_method(len)
    for declare, words in ((lambda: hijax.AvalQDD(1, 2), "AvalQDD"),
                           (lambda: hijax.HiPrimitive("p").bind(1), "'p' defines neither"),
                           (lambda: hijax.HiType().lower_val(1), "HiType does not define lower_val")):
        with pytest.raises(NotImplementedError, match=words):
            declare()
    for wrong in (lambda: hijax.register_hitype(3, len),
                  lambda: hijax.control_flow_allowed_effects.add_type(3), lambda: cur_qdd(3)):
        with pytest.raises(TypeError, match="not 3|class|no mutable type"):
            wrong()


class SinTimes(hijax.VJPHiPrimitive):
    def __init__(self, x, y):
        self.in_avals, self.out_aval, self.params = (x, y), {"product": x, "y": y}, {}
        super().__init__()

    def expand(self, x, y):
        return {"product": jnp.sin(x) * y, "y": y}

    def lin(self, perturbed, x, y):
        perturbations.append(perturbed)
        return self(x, y), (jnp.cos(x) * y, jnp.sin(x))

    def linearized(self, residuals, dx, dy):
        return {"product": residuals[0] * dx + residuals[1] * dy, "y": dy}


perturbations = []


@pytest.mark.parametrize("around", [lambda f: f, jax.jit])
def test_a_primitive_that_knows_its_linearization(around):
    x, y = jnp.float32(1), jnp.float32(2)
    call = around(lambda x, y: SinTimes(jax.typeof(x), jax.typeof(y))(x, y))
    out, linear = jax.linearize(call, x, y)
    np.testing.assert_allclose(out["product"], np.sin(1) * 2, rtol=1e-6)
    np.testing.assert_allclose(linear(x, y)["product"], 2 * np.cos(1) + 2 * np.sin(1), rtol=1e-6)
    assert linear(x, y)["y"] == 2
    np.testing.assert_allclose(jax.linearize(lambda x: call(x, y), x)[1](x)["product"], 2 * np.cos(1),
                               rtol=1e-6)
    np.testing.assert_allclose(jax.grad(lambda x: call(x, y)["product"])(x), 2 * np.cos(1), rtol=1e-6)
    assert perturbations[0] == (True, True) and (True, False) in perturbations
    with pytest.raises(NotImplementedError, match="define jvp"):
        jax.jvp(call, (x, y), (x, y))

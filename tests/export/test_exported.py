"""hlotrace.export: functions as portable programs, read back and called; artifacts that JAX wrote (data/,
made with 0.10.2 and 0.12), and the format itself.
"""
import collections
import dataclasses

import forked
import numpy as np
import pytest
from equal import same
from mesh8 import devices
from places import DATA

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import export, lax, random
from hlotrace.experimental import checkify
from hlotrace.export import flatbuffers
from hlotrace.export.format import _EXPORTED
from hlotrace.extend.core import Primitive
from hlotrace.interpreters import mlir
from hlotrace.sharding import AbstractMesh, Mesh, NamedSharding, P

X, Y = np.arange(6, dtype=np.float32).reshape(2, 3), {
    "b": np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)}
Params = collections.namedtuple("Params", "w b")
export.register_namedtuple_serialization(Params, serialized_name="Params")


def f(x, y):
    return {"a": jnp.sin(x) @ y["b"]}


def exported(fun, *args, **options):
    return export.export(jax.jit(fun), **options)(*args)


def again(e, **options):
    return export.deserialize(e.serialize(**options))


def test_what_is_exported_is_read_back_and_called():
    e = exported(f, jax.ShapeDtypeStruct((2, 3), np.float32), Y)
    for it in (e, again(e)):
        assert it.fun_name == "f" and it.platforms == (export.default_export_platform(),) == ("cpu",)
        assert it.in_tree == jax.tree.structure(((X, Y), {})) and it.out_tree == jax.tree.structure(f(X, Y))
        assert [a.shape for a in it.in_avals] == [(2, 3), (3, 4)] and [a.shape for a in it.out_avals] == [
            (2, 4)]
        assert (it.nr_devices, it.module_kept_var_idx, it.uses_global_constants) == (1, (0, 1), False)
        assert it.in_shardings_hlo == (None, None) and it.out_shardings_hlo == (None,)
        assert it.ordered_effects == it.unordered_effects == it.disabled_safety_checks == ()
        assert (export.minimum_supported_calling_convention_version <= it.calling_convention_version
                <= export.maximum_supported_calling_convention_version)
        assert "stablehlo.sine" in it.mlir_module() and it.mlir_module_serialized[:4] == b"ML\xefR"
        assert str(it) == "Exported(fun_name=f, ...)"
        same(it.call(X, Y), f(X, Y))
        same(jax.jit(lambda x, it=it: it.call(x * 2, Y)["a"] + 1)(X), f(X * 2, Y)["a"] + 1)
    assert e.serialize() == e.serialize() == exported(f, X, Y).serialize()


def loss(call):
    return lambda x, y: jnp.sum(call(x, y)["a"] ** 2)


def test_derivatives_go_as_far_as_was_asked_for():
    e = exported(f, X, Y)

    def second(call):
        return jax.grad(lambda x: jnp.sum(jax.grad(loss(call))(x, Y) ** 2))
    for call in (e.call, again(e, vjp_order=2).call):
        same(jax.grad(loss(call), (0, 1))(X, Y), jax.grad(loss(f), (0, 1))(X, Y))
        same(second(call)(X), second(f)(X), slack=4)
    once = again(e, vjp_order=1)
    assert once.has_vjp() and not once.vjp().has_vjp() and not again(e).has_vjp()
    same(once.vjp().call(X, Y["b"], np.ones((2, 4), np.float32))[0],
         jax.vjp(f, X, Y)[1]({"a": jnp.ones((2, 4))})[0])
    with pytest.raises(ValueError, match="No VJP is available: fun_vjp_jax was serialized without"):
        second(once.call)(X)
    with pytest.raises(ValueError, match="vjp_order=1"):
        jax.grad(loss(again(e).call))(X, Y)
    with pytest.raises(ValueError, match="no VJP of high-enough order"):
        once.serialize(vjp_order=2)
    with pytest.raises(ValueError, match="vjp_order is the number"):
        e.serialize(vjp_order=-1)
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(e.call, (X, Y), (X, Y))


def test_integer_arguments_and_results_have_no_cotangents():
    e = exported(lambda x, i, unused: (x * i, i + 1), X, 3, {"a": 1.0})
    assert e.module_kept_var_idx == (0, 1) and e.vjp().module_kept_var_idx == (1, 3)
    for it in (e, again(e, vjp_order=1)):
        same(jax.grad(lambda x, it=it: it.call(x, 3, {"a": 1.0})[0].sum())(X), np.full((2, 3), 3, np.float32))


def test_vmap_runs_it_for_each_element():
    e = exported(f, X, Y)
    xs = np.stack([X, X + 1, X * 2])
    want = jax.vmap(f, (0, None))(xs, Y)["a"]
    same(jax.vmap(e.call, (0, None))(xs, Y)["a"], want)
    same(jax.vmap(e.call, (2, None), 1)(np.moveaxis(xs, 0, 2), Y)["a"], np.moveaxis(np.asarray(want), 0, 1))
    same(jax.vmap(jax.grad(loss(e.call)), (0, None))(xs, Y), jax.vmap(jax.grad(loss(f)), (0, None))(xs, Y),
         slack=4)


def test_key_arrays_large_constants_and_dtypes():
    big = np.arange(3000, dtype=np.float32)
    e = again(exported(lambda k, b, h: (random.normal(k, (3,)) + jnp.asarray(big).sum(), ~b, h * 2,
                                        random.split(k)),
                       random.key(0), np.array([True]), jnp.ones(2, "bfloat16")))
    x, b, h, keys = e.call(random.key(7), np.array([False]), jnp.ones(2, "bfloat16"))
    same(x, random.normal(random.key(7), (3,)) + big.sum())
    assert b[0] and h.dtype == "bfloat16" and (keys == random.split(random.key(7))).all()


twice_p = Primitive("twice_for_export")
twice_p.def_abstract_eval(lambda x: x)
mlir.register_lowering(twice_p, mlir.lower_fun(lambda x: x * 2, multiple_results=False))
mlir.register_lowering(twice_p, mlir.lower_fun(lambda x: x + x, multiple_results=False), platform="tpu")


def test_several_platforms_in_one_artifact():
    alike = exported(jnp.sin, X, platforms=("tpu", "cpu", "cuda"))
    other = exported(lambda x: twice_p.bind(x) + 1, X, platforms=["tpu", "cpu"])
    assert "stablehlo.case" not in alike.mlir_module() and "stablehlo.case" in other.mlir_module()
    for e, want in ((alike, np.sin(X)), (other, X * 2 + 1)):
        assert e.uses_global_constants and "_platform_index" in e.mlir_module()
        same(e.call(X), want)
        same(again(e).call(X), want)
    assert "_platform_index" in jax.jit(alike.call).trace(X).lower(lowering_platforms=("tpu",)).as_text()
    for options in ({}, {"lowering_platforms": ("cuda",)}):
        with pytest.raises(ValueError,
                           match="'sin' was exported for platforms .*'tpu'.* but it is used on '(cpu|cuda)'"):
            jax.jit(exported(jnp.sin, X, platforms=["tpu"]).call).trace(X).lower(**options).as_text()
    any_platform = exported(jnp.sin, X, platforms=["tpu"],
                            disabled_checks=[export.DisabledSafetyCheck.platform()])
    same(again(any_platform).call(X), np.sin(X))


def over(mesh, *spec):
    return NamedSharding(mesh, P(*spec))


def mesh(first, *names):
    return Mesh(np.array(devices()[first:first + 4]).reshape(2, 2), names)


def test_over_devices():
    here, there = mesh(0, "a", "b"), mesh(4, "u", "v")
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    e = export.export(jax.jit(jnp.matmul, in_shardings=(over(here, "a"), None),
                              out_shardings=over(here, None, "b")))(x, x)
    moved = jax.device_put(x, over(there, "u"))
    theirs = export.deserialize((DATA / "matmul_jax_0.12.0.1.bin").read_bytes())
    for it in (e, again(e, vjp_order=1), theirs):
        assert it.nr_devices == 4
        assert it.in_shardings_jax(here)[0].is_equivalent_to(over(here, "a"), 2) and it.in_shardings_jax(
            here)[1] is None
        assert it.out_shardings_jax(here) == (over(here, None, "b"),)
        out = it.call(moved, x)
        same(out, x @ x)
        assert out.sharding == over(there, None, "v")
        with pytest.raises(ValueError,
                           match="was exported for 4 devices and is called in a context with 1 device"):
            it.call(x, x)
    same(jax.grad(lambda a: again(e, vjp_order=1).call(a, x).sum())(moved), np.tile(x.sum(1), (4, 1)))
    with pytest.raises(ValueError, match="was exported for 4 devices"):
        e.in_shardings_jax(Mesh(np.array(devices()), "x"))
    by_device = exported(jax.shard_map(lambda y: lax.psum(y, "a"), mesh=here, in_specs=P("a"), out_specs=P()),
                         jax.device_put(x, over(here, "a")))
    same(again(by_device).call(moved), x[:2] + x[2:])
    # one that was exported for one device runs over any
    same(exported(jnp.sin, x).call(moved), np.sin(x))


# --- what JAX wrote -----------------------------------------------------------------------------------------

def their_loss(params, batch, key):
    """As what data/loss_jax_0.10.2.bin was made of."""
    x = batch["x"] + random.key_data(key)[1].astype(jnp.float32)
    h = lax.erf(x @ params.w + params.b)
    return jnp.mean((h - batch["y"]) ** 2)


def test_a_program_of_jax_is_called_and_differentiated():
    e = export.deserialize((DATA / "loss_jax_0.10.2.bin").read_bytes())
    assert e.fun_name == "loss" and e.platforms == ("tpu", "cpu") and e.has_vjp()
    params = Params(np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2), np.ones(2, np.float32))
    batch, key = {"x": np.ones((4, 3), np.float32), "y": np.zeros((4, 2), np.float32)}, random.key(5)
    same(e.call(params, batch, key), their_loss(params, batch, key), slack=4)
    same(jax.grad(e.call)(params, batch, key), jax.grad(their_loss)(params, batch, key), slack=4)


PROGRAM = """
import sys, hlotrace, numpy
e = hlotrace.export.deserialize(open(sys.argv[1], "rb").read())
print(float(e.call(numpy.float32(0.5))), float(hlotrace.grad(e.call)(0.5)), "jax" in sys.modules)
"""


def test_another_process_needs_the_bytes_alone(tmp_path):
    (tmp_path / "bytes").write_bytes(exported(jnp.sin, np.float32(0)).serialize(vjp_order=1))
    value, slope, with_jax = forked.run(PROGRAM, tmp_path / "bytes", check=True).stdout.split()
    assert np.allclose([float(value), float(slope)], [np.sin(0.5), np.cos(0.5)]) and with_jax == "False"


# --- structures ---------------------------------------------------------------------------------------------

class Box:
    def __init__(self, value, label):
        self.value, self.label = value, label


jax.tree_util.register_pytree_node(Box, lambda b: ((b.value,), b.label), lambda label, c: Box(c[0], label))
export.register_pytree_node_serialization(Box, serialized_name="Box", serialize_auxdata=str.encode,
                                          deserialize_auxdata=bytes.decode)


class Made(Box):
    pass


jax.tree_util.register_pytree_node(Made, lambda b: ((b.value,), b.label), lambda label, c: Made(c[0], label))
export.register_pytree_node_serialization(
    Made, serialized_name="Made", serialize_auxdata=str.encode, deserialize_auxdata=bytes.decode,
    from_children=lambda label, children: Made(*children, label))


def test_containers():
    tree = ({"p": Params(1.0, Box(2.0, "here")), "none": None}, [3.0, ()],
            collections.OrderedDict(z=4.0, a=Made(5.0, "m")))
    e = again(export.export(jax.jit(lambda *args, last: (args, last)))(*tree, last=6.0))
    got, last = e.call(*tree, last=6.0)
    assert jax.tree.structure(got) == jax.tree.structure(tree) and last == 6
    assert jax.tree.leaves(got) == jax.tree.leaves(tree)


def test_containers_that_cannot_be_written():
    Other = collections.namedtuple("Other", "x")
    with pytest.raises(ValueError, match="(?s)unregistered type .*Other.*register_namedtuple_serialization"):
        exported(lambda p: p.x, Other(1.0)).serialize()
    with pytest.raises(TypeError, match="keys that are strings; found 1 of type int"):
        exported(lambda d: d[1], {1: 2.0}).serialize()
    for register, cls, name, words in (
            (export.register_namedtuple_serialization, Params, "again", "Duplicate .*Params"),
            (export.register_namedtuple_serialization, Other, "Params", "Duplicate .*'Params'"),
            (export.register_namedtuple_serialization, int, "int", "no collections.namedtuple")):
        with pytest.raises(ValueError, match=words):
            register(cls, serialized_name=name)
    with pytest.raises(ValueError, match="no pytree node"):
        export.register_pytree_node_serialization(int, serialized_name="int", serialize_auxdata=str,
                                                  deserialize_auxdata=int)
    blob = exported(lambda p: p.w, Params(1.0, 2.0)).serialize()
    with pytest.raises(ValueError, match="unregistered type `Qarams`"):
        export.deserialize(blob.replace(b"Params", b"Qarams"))
    with pytest.raises(ValueError, match="has the namedtuple 'Params' with the fields"):
        export.deserialize(blob.replace(b'["w", "b"]', b'["w", "c"]'))


# --- mistakes -----------------------------------------------------------------------------------------------

def printing(x):
    jax.debug.print("{}", x)
    return x


def test_functions_of_one_array_are_as_their_jit():
    same(export.export(jnp.sin)(X).call(X), jnp.sin(X))
    assert jnp.cos.lower(X).as_text() == jax.jit(jnp.cos).lower(X).as_text()
    assert jnp.cos.trace(X).jaxpr.eqns[0].primitive.name == "cos"


@pytest.mark.parametrize("call, error, words", [
    (lambda: export.export(f), ValueError, "must be the result of `jit`"),
    (lambda: exported(f, X, Y, platforms="cpu"), TypeError, "platforms is a sequence"),
    (lambda: exported(f, X, Y, disabled_checks=["platform"]), TypeError, "DisabledSafetyCheck"),
    (lambda: exported(printing, X), NotImplementedError, "host_callbacks is not yet implemented"),
    (lambda: exported(lambda x: jax.pure_callback(np.sin, x, x), X), NotImplementedError, "host_callbacks"),
    (lambda: exported(lambda r: r[...], jax.new_ref(X)), NotImplementedError, "Pass the value, ref"),
    (lambda: exported(lambda x: checkify.check(x[0, 0] > 9, "small"), X), NotImplementedError,
     "Export checkify.checkify"),
    (lambda: export.deserialize("text"), TypeError, "bytes that Exported.serialize gave"),
    (lambda: export.deserialize(b"abc"), ValueError, "not a FlatBuffer"),
    (lambda: exported(f, X, Y).call(X), ValueError,
     "same pytree structure as when the function 'f' was exported"),
    (lambda: exported(f, X, Y).call(X[:1], Y), ValueError,
     r"args\[0\]\.shape\[0\] \(expected same constant\): expected \(2, 3\) and called with \(1, 3\)"),
    (lambda: exported(f, X, Y).call(X, {"b": Y["b"][0]}), ValueError, r"Rank mismatch for args\[1\]\['b'\]"),
    (lambda: exported(f, X, Y).call(X.astype("int32"), Y), ValueError,
     r"Dtype mismatch for args\[0\]: expected float32"),
])
def test_mistakes(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_kernels_that_nobody_promises():
    kernel_p = Primitive("kernel_for_export")
    kernel_p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(kernel_p, lambda ctx, x: mlir.custom_call(
        "my_kernel", result_types=[x.type], operands=[x]).results)
    check = export.DisabledSafetyCheck.custom_call("my_kernel")
    assert (str(check), check.is_custom_call(), str(check.platform()), check.platform().is_custom_call()) == (
        "custom_call:my_kernel", "my_kernel", "platform", None)
    with pytest.raises(ValueError, match="no compatibility guarantees: it calls 'my_kernel'"):
        exported(kernel_p.bind, X)
    assert again(exported(kernel_p.bind, X, disabled_checks=[check])).disabled_safety_checks == (check,)


def test_bytes_that_were_cut_or_changed_are_an_error_or_another_program():
    blob = exported(jnp.sin, np.float32(0)).serialize()
    rng = np.random.default_rng(0)
    for n in rng.integers(0, len(blob), 20):
        with pytest.raises(ValueError):
            export.deserialize(blob[:n])
    program = flatbuffers.read(blob, _EXPORTED)["module"]
    at = blob.index(program)
    # the program's own bytes are MLIR's affair
    for n in [*range(at), *range(at + len(program), len(blob))]:
        changed = bytearray(blob)
        changed[n] ^= 255
        try:
            export.deserialize(changed)
        except (ValueError, NotImplementedError):
            pass


# --- the format ---------------------------------------------------------------------------------------------

def test_flatbuffers():
    Inner = flatbuffers.Table(name=str, more=lambda: Outer)
    Outer = flatbuffers.Table(flag="?", small="B", large="Q", text=str, raw=bytes, numbers=["H"], words=[str],
                              tables=[Inner], one=Inner, absent=str, last="i")
    value = {"flag": True, "small": 7, "large": 1 << 60, "text": "grün", "raw": b"\0\1",
             "numbers": [1, 65535],
             "words": ["", "b"], "tables": [{"name": "x"}, {"more": {"last": -1}}], "one": {"name": "y"},
             "last": -5}
    data = flatbuffers.write(value, Outer)
    got = flatbuffers.read(data, Outer)
    assert {k: got[k] for k in value if k not in ("tables", "one")} == {
        k: v for k, v in value.items() if k not in ("tables", "one")}
    assert got["tables"][1]["more"]["last"] == -1 and got["one"] == {"name": "y", "more": None} and got[
        "absent"] is None
    assert flatbuffers.write(got, Outer) != b"" and flatbuffers.read(
        flatbuffers.write(got, Outer), Outer) == got
    # by the format's own rules: the root's offset, a vtable before its table, numbers at multiples of their
    # size
    root = int.from_bytes(data[:4], "little")
    vtable = root - int.from_bytes(data[root:root + 4], "little", signed=True)
    large = root + int.from_bytes(data[vtable + 8:vtable + 10], "little")
    assert int.from_bytes(data[large:large + 8], "little") == 1 << 60


@pytest.mark.parametrize("version", [8, 9, 10, 11])
def test_the_calling_convention_is_an_option(version):
    before = jax.config.jax_export_calling_convention_version
    jax.config.update("jax_export_calling_convention_version", version)
    try:
        if version in (9, 10):
            it = exported(jnp.sin, 1.)
            assert it.calling_convention_version == again(it).calling_convention_version == version
            same(again(it).call(1.), jnp.sin(1.))
        else:
            with pytest.raises(ValueError, match=f"version is {version}; hlotrace knows 9 to 10"):
                exported(jnp.sin, 1.)
    finally:
        jax.config.update("jax_export_calling_convention_version", before)


def test_weak_types_stay_where_the_artifact_is_not_written():
    it = exported(lambda x: x * 2, 1.)
    assert it.call(1.).weak_type and not again(it).call(1.).weak_type
    n, = export.symbolic_shape("n")
    with pytest.raises(jax.errors.InconclusiveDimensionOperation, match="does not divide"):
        exported(lambda x: x.reshape(-1, 8), jax.ShapeDtypeStruct((n,), "float32"))


def test_an_exported_function_is_a_frozen_dataclass():
    e = exported(jnp.sin, jax.ShapeDtypeStruct((2,), np.float32))
    assert repr(e).startswith(
        "Exported(fun_name='sin', in_tree=PyTreeDef(((*,), {})), in_avals=(ShapedArray(float32[2]),)")
    assert dataclasses.replace(e, fun_name="g").fun_name == "g"
    with pytest.raises(dataclasses.FrozenInstanceError):
        e.fun_name = "g"
    assert hash(e) == hash(e) and e == e and e.in_shardings_hlo == (None,)


def test_static_data_of_containers_is_written_as_bytes():
    class Held:
        def __init__(self, x):
            self.x = x
    jax.tree_util.register_pytree_node(Held, lambda h: ((h.x,), "data"), lambda _, xs: Held(*xs))
    export.register_pytree_node_serialization(Held, serialized_name="test.Held",
                                              serialize_auxdata=lambda data: data,
                                              deserialize_auxdata=lambda raw: raw.decode())
    with pytest.raises(ValueError, match="must return a `bytes` object"):
        exported(lambda h: h.x, Held(jnp.ones(2))).serialize()


def test_sizes_of_arguments_may_be_differences():
    a, b = export.symbolic_shape("a, b")
    sizes = (a - b,), (a,), (b,)
    e = exported(lambda x, y, z: x, *(jax.ShapeDtypeStruct(size, np.float32) for size in sizes))
    same(e.call(jnp.ones(1), jnp.ones(3), jnp.ones(2)), jnp.ones(1))


def test_shardings_over_a_mesh_without_devices():
    abstract = NamedSharding(AbstractMesh((2, 4), ("x", "y")), P("x"))
    exported = export.export(jax.jit(lambda x: x * 2, in_shardings=abstract, out_shardings=abstract))(
        jax.ShapeDtypeStruct((8,), np.float32))
    assert exported.nr_devices == 8
    mesh = Mesh(np.array(devices()).reshape(2, 4), ("x", "y"))
    x = jax.device_put(np.arange(8, dtype=np.float32), NamedSharding(mesh, P("x")))
    got = jax.jit(export.deserialize(exported.serialize()).call)(x)
    assert got.tolist() == [2.0 * i for i in range(8)] and got.sharding.is_equivalent_to(x.sharding, 1)

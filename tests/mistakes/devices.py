"""Devices, meshes, shardings and what runs on several devices, put together wrongly."""
import numpy as np
from mesh8 import auto_mesh
from mistakes import mistake

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.sharding import AxisType, NamedSharding, PartitionSpec as P, SingleDeviceSharding


def mesh(*sizes, names=("x", "y", "z")):
    return auto_mesh(sizes, names[:len(sizes)])


def on(device, shape=(4,)):
    return jax.device_put(jnp.ones(shape), jax.devices()[device])


@mistake(ValueError, "device_put", "'gpu:0'", advice="jax.devices('gpu')[0]")
def put_to_a_name():
    return jax.device_put(jnp.ones(3), "gpu:0")  # <-


@mistake(ValueError, "device_put", "got 1", advice="jax.devices()[1]")
def put_to_a_number():
    return jax.device_put(jnp.ones(3), 1)  # <-


@mistake(ValueError, "device_put", "P('x',)", "no mesh in context", advice="NamedSharding(mesh, spec)")
def put_to_a_spec():
    return jax.device_put(jnp.ones(8), P("x"))  # <-


@mistake(ValueError, "device_put", "Mesh(axis_sizes=(8,)", advice="NamedSharding(mesh, PartitionSpec(...))")
def put_to_a_mesh():
    m = mesh(8)
    return jax.device_put(jnp.ones(8), m)  # <-


@mistake(TypeError, "device_put", "'alice'", "str", advice="expected an array")
def put_a_text():
    return jax.device_put({"name": "alice", "w": jnp.ones(3)})  # <-


@mistake(ValueError, "device_put", "1 key", "2 keys", advice="only the value has 'b'")
def put_by_a_tree_of_another_structure():
    d = jax.devices()
    return jax.device_put({"a": jnp.ones(3), "b": jnp.ones(3)}, {"a": d[0]})  # <-


@mistake(RuntimeError, "devices", "gpus", advice="Unknown backend")
def devices_of_an_unknown_platform():
    return jax.devices("gpus")  # <-


@mistake(ValueError, "make_mesh", "(4, 4)", "16", "devices 8", advice="jax_num_cpu_devices")
def mesh_larger_than_the_machine():
    return jax.make_mesh((4, 4), ("x", "y"))  # <-


@mistake(ValueError, "make_mesh", "(4, 2)", "('x',)", advice="one size for each name")
def mesh_with_a_name_too_few():
    return jax.make_mesh((4, 2), ("x",))  # <-


@mistake(ValueError, "make_mesh", "(4, 2)", "xyz", advice="a tuple of texts")
def mesh_names_as_one_text():
    return jax.make_mesh((4, 2), "xyz")  # <-


@mistake(TypeError, "make_mesh", "got 8", advice="write (8,)")
def mesh_of_one_size():
    return jax.make_mesh(8, ("x",))  # <-


@mistake(ValueError, "Mesh", "('x', 'x')", "'x'", advice="its own name")
def mesh_with_a_name_twice():
    return jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "x"))  # <-


@mistake(ValueError, "Mesh", "devices.ndim == 1", advice="equal the length")
def mesh_of_devices_that_have_not_its_rank():
    return jax.sharding.Mesh(jax.devices(), ("x", "y"))  # <-


@mistake(ValueError, "Mesh", "CpuDevice(id=0)", advice="used once")
def mesh_with_a_device_twice():
    d = jax.devices()
    return jax.sharding.Mesh([d[0], d[0]], ("x",))  # <-


@mistake(ValueError, "make_mesh", "('x', 'y')", advice="should match the number")
def mesh_axis_types():
    return jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,))  # <-


@mistake(ValueError, "NamedSharding", "'batch'", "P('batch', None)", advice="is not found in mesh: ('x', 'y')")
def spec_with_an_unknown_axis():
    return NamedSharding(mesh(4, 2), P("batch", None))  # <-


@mistake(ValueError, "NamedSharding", "'modle'", advice="did you mean 'model'")
def spec_with_a_misspelt_axis():
    m = mesh(4, 2, names=("data", "model"))
    return NamedSharding(m, P("modle"))  # <-


@mistake(jax.errors.DuplicateSpecError, "NamedSharding", "P('x', 'x')", advice="at most one positional dimension")
def spec_with_an_axis_twice():
    return NamedSharding(mesh(4, 2), P("x", "x"))  # <-


@mistake(TypeError, "PartitionSpec", "entry 0 is 0", advice="the name of a mesh axis")
def spec_of_numbers():
    return NamedSharding(mesh(4, 2), P(0, 1))  # <-


@mistake(TypeError, "NamedSharding", "('x', 'y')", advice="write P(")
def spec_as_a_tuple():
    return NamedSharding(mesh(4, 2), ("x", "y"))  # <-


@mistake(TypeError, "NamedSharding", "P('x',)", advice="mesh is a Mesh")
def sharding_of_swapped_arguments():
    return NamedSharding(P("x"), mesh(8))  # <-


@mistake(ValueError, "device_put", "float32[8]", "at least 2", "rank 1", advice="Drop entries")
def more_entries_than_axes():
    sharding = NamedSharding(mesh(4, 2), P("x", "y"))
    return jax.device_put(jnp.ones(8), sharding)  # <-


@mistake(jax.errors.IndivisibleError, "device_put", "float32[10,3]", "size is 10", "partitioned 4 times", advice="Pad it to 12")
def size_that_does_not_divide():
    sharding = NamedSharding(mesh(4, 2), P("x"))
    return jax.device_put(jnp.ones((10, 3)), sharding)  # <-


@mistake(ValueError, "device_put", "x['b']", "size is 3", "partitioned 4 times", advice="Pad it to 4")
def size_of_a_leaf_that_does_not_divide():
    sharding = NamedSharding(mesh(4, 2), P("x"))
    return jax.device_put({"w": jnp.ones((8, 3)), "b": jnp.ones(3)}, sharding)  # <-


@mistake(ValueError, "+", "x: float32[4]", "ids [0]", "ids [1]", advice="device_put")
def eager_operands_on_different_devices():
    x, y = on(0), on(1)
    return x + y  # <-


@mistake(ValueError, "params['w'] of f", "ids [2]", "argument x of f", "ids [3]", advice="device_put")
def jit_arguments_on_different_devices():
    @jax.jit
    def f(params, x):
        return params["w"] * x
    return f({"w": on(2)}, on(3))  # <-


@mistake(ValueError, "ids [0, 1, 2, 3]", "ids [0, 1, 2, 3, 4, 5, 6, 7]",
         advice="same devices, in the same order")
def jit_arguments_on_different_meshes():
    a = jax.device_put(jnp.ones(8), NamedSharding(mesh(4), P("x")))
    b = jax.device_put(jnp.ones(8), NamedSharding(mesh(8), P("x")))
    return jax.jit(jnp.add)(a, b)  # <-


@mistake(ValueError, "argument x of f", "ids [7]", "a mesh inside the program", advice="device_put")
def constraint_on_other_devices():
    m = mesh(4)
    x = jax.device_put(jnp.ones(8), jax.devices()[7])

    @jax.jit
    def f(x):
        return lax.with_sharding_constraint(x * 2, NamedSharding(m, P("x")))
    return f(x)  # <-


@mistake(RuntimeError, "lax.with_sharding_constraint", "x: float32[8]", "P('x',)", advice="set_mesh(mesh)")
def constraint_by_a_spec_without_mesh():
    @jax.jit
    def f(x):
        return lax.with_sharding_constraint(x, P("x"))  # <-
    return f(jnp.ones(8))


@mistake(ValueError, "lax.with_sharding_constraint", "size is 6", "partitioned 4 times", advice="Pad it to 8")
def constraint_that_does_not_divide():
    m = mesh(4)
    return lax.with_sharding_constraint(jnp.ones(6), NamedSharding(m, P("x")))  # <-


@mistake(ValueError, "lax.with_sharding_constraint", "float32[8]", "at least 2", "rank 1",
         advice="Drop entries")
def constraint_of_too_many_entries():
    m = mesh(4, 2)

    @jax.jit
    def f(x):
        return lax.with_sharding_constraint(x.sum(0), NamedSharding(m, P("x", "y")))  # <-
    return jax.grad(lambda x: f(x).sum())(jnp.ones((8, 8)))


@mistake(ValueError, "in_shardings of <lambda>", "length 3", "length 2", advice="must be a tree prefix")
def in_shardings_of_another_structure():
    s = NamedSharding(mesh(8), P("x"))
    return jax.jit(lambda a, b: a + b, in_shardings=(s, s, s))(jnp.ones(8), jnp.ones(8))  # <-


@mistake(ValueError, "in_shardings of <lambda>", "1 key", "2 keys", advice="only the value has 'b'")
def in_shardings_with_a_missing_key():
    s = NamedSharding(mesh(8), P("x"))
    f = jax.jit(lambda params: params["w"] + params["b"], in_shardings=({"w": s},))
    return f({"w": jnp.ones(8), "b": jnp.ones(8)})  # <-


@mistake(ValueError, "params['w'] of <lambda>", "size is 12", "partitioned 8 times", advice="Pad it to 16")
def in_shardings_that_do_not_divide():
    s = NamedSharding(mesh(8), P("x"))
    f = jax.jit(lambda params: params["w"].sum(), in_shardings=s)
    return f({"w": jnp.ones(12)})  # <-


@mistake(ValueError, "argument x of <lambda>", "P(None, 'x')", "P('x',)", advice="device_put")
def in_shardings_of_a_committed_argument():
    m = mesh(8)
    x = jax.device_put(jnp.ones((8, 8)), NamedSharding(m, P("x")))
    f = jax.jit(lambda x: x, in_shardings=NamedSharding(m, P(None, "x")))
    return f(x)  # <-


@mistake(RuntimeError, "in_shardings", "P('x',)", advice="set_mesh(mesh)")
def in_shardings_that_are_a_spec():
    return jax.jit(lambda x: x, in_shardings=P("x"))(jnp.ones(8))  # <-


@mistake(TypeError, "in_shardings", "'x'", advice="expected to be Shardings")
def in_shardings_that_are_a_text():
    return jax.jit(lambda x: x, in_shardings="x")(jnp.ones(8))  # <-


@mistake(ValueError, "out_shardings of <lambda>", "length 3", "length 2", advice="must be a tree prefix")
def out_shardings_of_another_structure():
    s = NamedSharding(mesh(8), P("x"))
    f = jax.jit(lambda x: (x, x + 1), out_shardings=(s, s, s))
    return f(jnp.ones(8))  # <-


@mistake(ValueError, "result 0 of <lambda>", "float32[]", "at least 1", advice="Drop entries")
def out_shardings_of_a_scalar():
    s = NamedSharding(mesh(8), P("x"))
    f = jax.jit(lambda x: {"loss": x.sum()}, out_shardings=s)
    return f(jnp.ones(8))  # <-


@mistake(ValueError, "argument x of <lambda>", "result 0", "ids [0]", advice="device_put")
def shardings_over_different_devices():
    m = mesh(8)
    f = jax.jit(lambda x: x, in_shardings=NamedSharding(m, P("x")), out_shardings=SingleDeviceSharding(jax.devices()[0]))
    return f(jnp.ones(8))  # <-


def manual(f, in_specs, out_specs, m=None, **kwargs):
    return jax.shard_map(f, mesh=mesh(4) if m is None else m, in_specs=in_specs, out_specs=out_specs, **kwargs)


@mistake(ValueError, "shard_map of <lambda>", "in_specs", "length 1", "length 2", advice="must be a tree prefix")
def shard_map_of_a_spec_too_few():
    f = manual(lambda a, b: a + b, (P("x"),), P("x"))
    return f(jnp.ones(8), jnp.ones(8))  # <-


@mistake(ValueError, "shard_map of <lambda>", "argument a", "2 entries", "rank 1", advice="drop entries")
def shard_map_of_a_rank_too_low():
    f = manual(lambda a: a, P("x", None), P("x", None))
    return f(jnp.ones(8))  # <-


@mistake(ValueError, "shard_map of <lambda>", "argument a", "size 10", "multiple of 4", advice="Pad it")
def shard_map_that_does_not_divide():
    f = manual(lambda a, b: a, (P("x"), P()), P("x"))
    return f(jnp.ones(10), jnp.ones(3))  # <-


@mistake(ValueError, "shard_map of <lambda>", "in_specs", "'rows'", advice="one of the axes ('x',)")
def shard_map_of_an_unknown_axis():
    return manual(lambda a: a, P("rows"), P("x"))(jnp.ones(8))  # <-


@mistake(ValueError, "shard_map of <lambda>", "out_specs P()", "float32[]", advice="psum")
def shard_map_result_that_varies():
    f = manual(lambda a: a.sum(), P("x"), P())
    return f(jnp.ones(8))  # <-


@mistake(ValueError, "shard_map of <lambda>", "out_specs", "dict with 1 key", "length 2", advice="must be a tree prefix")
def shard_map_out_specs_of_another_structure():
    f = manual(lambda a: (a, a), P("x"), {"a": P("x")})
    return f(jnp.ones(8))  # <-


@mistake(ValueError, "shard_map of <lambda>", "no mesh", advice="set_mesh(mesh)")
def shard_map_without_a_mesh():
    return jax.shard_map(lambda a: a, in_specs=P("x"), out_specs=P("x"))(jnp.ones(8))  # <-


@mistake(ValueError, "+", "a: float32[2]", "b: float32[8]", advice="must be equal")
def shard_map_operands_inside():
    def f(a, b):
        return a + b  # <-
    return manual(f, (P("x"), P()), P("x"))(jnp.ones(8), jnp.ones(8))


@mistake(NameError, "lax.psum", "a: float32[2]", "'batch'", advice="in scope here: 'x'")
def psum_of_an_unknown_axis():
    def f(a):
        return lax.psum(a, "batch")  # <-
    return manual(f, P("x"), P())(jnp.ones(8))


@mistake(NameError, "lax.psum", "'i'", advice="vmap with axis_name")
def psum_outside():
    return lax.psum(jnp.ones(3), "i")  # <-


@mistake(NameError, "lax.pmean", "x: float32[3]", "'bacth'", advice="did you mean 'batch'")
def mean_over_a_misspelt_vmap_axis():
    def f(x):
        return x - lax.pmean(x, "bacth")  # <-
    return jax.vmap(f, axis_name="batch")(jnp.ones((4, 3)))


@mistake(NameError, "lax.axis_index", "unbound axis name: i", advice="vmap with axis_name")
def axis_index_outside():
    return lax.axis_index("i")  # <-


@mistake(NameError, "lax.pmean", "'devices'", "float32[3]", advice="shard_map or pmap")
def gradient_averaged_outside():
    def step(w):
        return lax.pmean(jax.grad(lambda w: (w * w).sum())(w), "devices")  # <-
    return jax.jit(step)(jnp.ones(3))


@mistake(ValueError, "lax.ppermute", "(3, 4)", "'x'", "0 to 3", advice="(i + 1) % 4")
def ppermute_of_a_pair_outside():
    def f(a):
        return lax.ppermute(a, "x", [(i, i + 1) for i in range(4)])  # <-
    return manual(f, P("x"), P("x"))(jnp.ones(8))


@mistake(ValueError, "lax.ppermute", "((0, 1), (2, 1))", "destination", advice="once")
def ppermute_to_one_device_twice():
    def f(a):
        return lax.ppermute(a, "x", [(0, 1), (2, 1)])  # <-
    return manual(f, P("x"), P("x"))(jnp.ones(8))


@mistake(ValueError, "lax.all_to_all", "split_axis 1", "(1, 6)", "size 4", advice="tiled=True")
def all_to_all_of_a_size_that_does_not_divide():
    def f(a):
        return lax.all_to_all(a, "x", 1, 0)  # <-
    return manual(f, P("x"), P("x"))(jnp.ones((4, 6)))


@mistake(ValueError, "lax.psum_scatter", "a: float32[6]", "multiple of 4", advice="the number of devices")
def psum_scatter_of_a_size_that_does_not_divide():
    def f(a):
        return lax.psum_scatter(a, "x", tiled=True)  # <-
    return manual(f, P("x"), P("x"))(jnp.ones(24))


@mistake(ValueError, "lax.psum_scatter", "dimension 0", "(6,)", "size 4", advice="tiled=True")
def psum_scatter_untiled():
    def f(a):
        return lax.psum_scatter(a, "x")  # <-
    return manual(f, P("x"), P("x"))(jnp.ones(24))


@mistake(ValueError, "lax.all_gather", "axis 3", "float32[2]", advice="-2 <= axis < 2")
def all_gather_of_an_axis_that_is_not_there():
    def f(a):
        return lax.all_gather(a, "x", axis=3)  # <-
    return manual(f, P("x"), P("x"))(jnp.ones(8))


@mistake(ValueError, "pmap of <lambda>", "size 16", "8 devices", advice="vmap")
def pmap_over_more_than_there_are():
    return jax.pmap(lambda x: x * 2)(jnp.ones((16, 3)))  # <-


@mistake(ValueError, "pmap of <lambda>", "size 8: axis 0 of argument x", "size 4: axis 0 of argument y", advice="None in in_axes")
def pmap_of_different_sizes():
    return jax.pmap(lambda x, y: x + y)(jnp.ones((8, 3)), jnp.ones((4, 3)))  # <-


@mistake(ValueError, "pmap", "y of <lambda>", "only 0", advice="None in in_axes")
def pmap_of_a_scalar():
    return jax.pmap(lambda x, y: x * y)(jnp.ones((8, 3)), 2.0)  # <-


@mistake(ValueError, "pmap of <lambda>", "size 4", "2 devices", advice="vmap")
def pmap_over_named_devices():
    f = jax.pmap(lambda x: x, devices=jax.devices()[:2])
    return f(jnp.ones((4, 3)))  # <-


@mistake(RuntimeError, "*", "x: float32[3]", "donate_argnums", advice="use the function's result")
def donated_used_again():
    x = jnp.ones(3)
    jax.jit(lambda x: x + 1, donate_argnums=0)(x)
    return x * 2  # <-


@mistake(RuntimeError, "float32[3]", "donate_argnums", advice="use the function's result")
def donated_to_a_jitted_function_again():
    update = jax.jit(lambda p, g: p - g, donate_argnums=0)
    params = jnp.ones(3)
    update(params, jnp.ones(3))
    return update(params, jnp.ones(3))  # <-


@mistake(RuntimeError, "argument 0 of <lambda>", "a second time", advice="Pass a copy")
def donated_twice_in_one_call():
    x = jnp.ones(3)
    return jax.jit(lambda a, b: (a + 1, b + 2), donate_argnums=(0, 1))(x, x)  # <-


@mistake(RuntimeError, "float32[3]", "donate_argnums", advice="use the function's result")
def donated_and_printed():
    state = {"w": jnp.ones(3)}
    jax.jit(lambda s: {"w": s["w"] + 1}, donate_argnums=0)(state)
    return np.asarray(state["w"])  # <-


@mistake(RuntimeError, "x: float32[3]", ".delete()", advice="do not donate it")
def deleted_used():
    x = jnp.ones(3)
    x.delete()
    return float(x[0])  # <-


@mistake(ValueError, "make_array_from_callback", "(2,)", "(3,)", advice="value[index]")
def callback_of_the_wrong_shape():
    s = NamedSharding(mesh(8), P("x"))
    return jax.make_array_from_callback((16,), s, lambda index: np.ones(3, "float32"))  # <-


@mistake(ValueError, "make_array_from_callback", "(2, 4)", "(8, 8)", advice="value[index]")
def callback_with_the_whole():
    s = NamedSharding(mesh(4, 2), P("x", "y"))
    whole = np.ones((8, 8), "float32")
    return jax.make_array_from_callback((8, 8), s, lambda index: whole)  # <-


@mistake(ValueError, "make_array_from_single_device_arrays", "Expected 8", "got 4",
         advice="devices are addressable")
def shards_too_few():
    s = NamedSharding(mesh(8), P("x"))
    parts = [jax.device_put(np.ones(2, "float32"), d) for d in jax.devices()[:4]]
    return jax.make_array_from_single_device_arrays((16,), s, parts)  # <-


@mistake(ValueError, "make_array_from_single_device_arrays", "arrays[0]", "(2,)", "(3,)", advice="must have shape")
def shards_of_another_shape():
    s = NamedSharding(mesh(8), P("x"))
    parts = [jax.device_put(np.ones(3, "float32"), d) for d in jax.devices()]
    return jax.make_array_from_single_device_arrays((16,), s, parts)  # <-


@mistake(ValueError, "make_array_from_single_device_arrays", "[0, 0, ", advice="distinct devices")
def shards_all_on_one_device():
    s = NamedSharding(mesh(8), P("x"))
    return jax.make_array_from_single_device_arrays((16,), s, [jnp.ones(2)] * 8)  # <-


@mistake(TypeError, "make_array_from_single_device_arrays", "arrays[0]", "ndarray", advice="device_put")
def shards_of_numpy():
    s = NamedSharding(mesh(8), P("x"))
    return jax.make_array_from_single_device_arrays((16,), s, [np.ones(2, "float32")] * 8)  # <-


@mistake(ValueError, "P('x',)", "size is 12", "partitioned 8 times", advice="Pad it to 16")
def shard_shape_that_does_not_divide():
    return NamedSharding(mesh(8), P("x")).shard_shape((12,))  # <-


@mistake(ValueError, "NamedSharding", "Got memory kind: gpu", advice="kinds: device")
def memory_kind_that_is_not_there():
    return NamedSharding(mesh(8), P("x"), memory_kind="gpu")  # <-


@mistake(RuntimeError, "jit", "gpux", advice="Unknown backend")
def jit_on_an_unknown_backend():
    return jax.jit(lambda x: x, backend="gpux")(jnp.ones(3))  # <-


@mistake(ValueError, "default_device", "1 is not a device", advice="jax.devices()[0]")
def default_device_as_a_number():
    with jax.default_device(1):  # <-
        return jnp.ones(3)


@mistake(ValueError, "set_mesh", "Got <class 'tuple'>", advice="Expected mesh")
def set_mesh_of_a_shape():
    with jax.set_mesh((4, 2)):  # <-
        return jnp.ones(3)


@mistake(ValueError, "jnp.zeros", "size is 6", "partitioned 4 times", advice="Pad it to 8")
def zeros_that_do_not_divide():
    m = mesh(4)
    return jnp.zeros((6,), device=NamedSharding(m, P("x")))  # <-


@mistake(ValueError, "jnp.einsum", "a: float32[4,4]", "ids [0]", "ids [5]", advice="device_put")
def einsum_of_different_devices():
    a, b = on(0, (4, 4)), on(5, (4, 4))
    return jnp.einsum("ij,jk->ik", a, b)  # <-


@mistake(ValueError, "jnp.stack", "arrays[0]", "ids [0]", "ids [1]", advice="device_put")
def stack_of_different_devices():
    return jnp.stack([on(i) for i in range(4)])  # <-


@mistake(NameError, "lax.psum", "'batch'", advice="those in scope here: none")
def pmap_without_a_name():
    return jax.pmap(lambda x: jax.lax.psum(x, "batch"))(jnp.ones(8))  # <-

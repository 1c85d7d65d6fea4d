"""Functions exported, and artifacts called otherwise than they were exported."""
from mistakes import mistake

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import export

X = jnp.ones((4, 3))


def predict(params, x):
    return x @ params["w"]


def exported():
    return export.export(jax.jit(predict))({"w": jnp.ones((3, 2))}, X)


@mistake(ValueError, "predict", "result of `jit`", advice="jit(f)")
def not_jitted():
    return export.export(predict)({"w": jnp.ones((3, 2))}, X)  # <-


@mistake(ValueError, "args[1].shape[0]", "(4, 3)", "(5, 3)", advice="symbolic")
def another_batch():
    e = exported()
    return e.call({"w": jnp.ones((3, 2))}, jnp.ones((5, 3)))  # <-


@mistake(ValueError, "args[0]['w']", "float32", "int32", advice="astype")
def another_dtype():
    e = exported()
    return e.call({"w": jnp.ones((3, 2), "int32")}, X)  # <-


@mistake(ValueError, "predict", "pytree structure", "1 key", "2 keys", advice="in_tree")
def another_structure():
    e = exported()
    return e.call({"w": jnp.ones((3, 2)), "b": 1.0}, X)  # <-


@mistake(ValueError, "predict", "No VJP", advice="vjp_order=1")
def no_derivative_in_the_artifact():
    e = export.deserialize(exported().serialize())
    return jax.grad(lambda x: e.call({"w": jnp.ones((3, 2))}, x).sum())(X)  # <-


@mistake(ValueError, "predict", "('tpu',)", "'cpu'", advice="platforms=('tpu', 'cpu')")
def another_platform():
    e = export.export(jax.jit(predict), platforms=["tpu"])({"w": jnp.ones((3, 2))}, X)
    return e.call({"w": jnp.ones((3, 2))}, X)  # <-


@mistake(NotImplementedError, "noisy", "host_callbacks", advice="debug.print")
def a_callback():
    def noisy(x):
        jax.debug.print("{}", x)
        return x
    return export.export(jax.jit(noisy))(X)  # <-


def symbolic(*texts):
    scope = export.SymbolicScope()
    return [jax.ShapeDtypeStruct(export.symbolic_shape(text, scope=scope), jnp.float32) for text in texts]


@mistake(Exception, "'b' >= '4'", "inconclusive", advice="constraints=")
def a_choice_by_a_symbolic_size():
    def halve(x):
        return x[::2] if x.shape[0] >= 4 else x  # <-
    return export.export(jax.jit(halve))(*symbolic("b"))


@mistake(ValueError, "'b' (= 4)", "args[1].shape[0] (= 5)", advice="b, 3")
def sizes_that_differ():
    e = export.export(jax.jit(lambda x, y: x @ x.T @ y))(*symbolic("b, 3", "b, 3"))
    return e.call(X, jnp.ones((5, 3)))  # <-


@mistake(ValueError, "symbolic shape 'b 3'", "unexpected '3'", advice="2*b + 1")
def a_shape_without_a_comma():
    return export.symbolic_shape("b 3")  # <-


@mistake(ValueError, "symbolic scopes", "'b'", advice="scope=")
def shapes_of_two_scopes():
    one, other = export.symbolic_shape("b, 3")[0], export.symbolic_shape("b, 3")[0]
    return one + other  # <-

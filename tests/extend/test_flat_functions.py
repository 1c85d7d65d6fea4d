"""api_util: functions of flat lists, and what is said of their arguments."""
import pytest
from three_results import three

import hlotrace as jax
from hlotrace import api_util
from hlotrace.extend import linear_util


def test_flattened_functions():
    leaves, structure = jax.tree.flatten(((1, {"k": 2}), {"c": 3}))
    flat, out_tree = api_util.flatten_fun(linear_util.wrap_init(lambda a, b, c: {"x": a * b["k"], "y": c}),
                                          structure)
    assert flat.call_wrapped(*leaves) == [2, 3] and out_tree().num_leaves == 2
    flat, _ = api_util.flatten_fun_nokwargs(linear_util.wrap_init(lambda a, b: a + b),
                                            jax.tree.structure((1, 2)))
    assert flat.call_wrapped(1, 2) == [3]
    held, moving = api_util.argnums_partial(linear_util.wrap_init(pow), (-1,), (2, 5))
    assert moving == (5,) and held.call_wrapped(3) == 8
    assert held == api_util.argnums_partial(linear_util.wrap_init(pow), 1, (2, 5))[0]
    with pytest.raises(ValueError, match="not hashable"):
        api_util.argnums_partial(linear_util.wrap_init(max), 0, (1, [2]))
    tree = jax.tree.structure(((1, (2, 3)), {"z": 1}))
    assert api_util.donation_vector((), ("z",), tree) == (False, False, False, True)
    assert api_util.donation_vector((1,), (), jax.tree.structure((1, (2, 3))), False) == (False, True, True)
    assert api_util.flatten_axes("n", tree, (0, None), kws=True) == [0, 0, 0, None]
    with pytest.raises(ValueError, match="n for the tuple of arguments"):
        api_util.flatten_axes("n", jax.tree.structure((1, (2, 3))), (0, None, 2), tupled_args=True)
    assert api_util.rebase_donate_argnums((3, 4), (0, 1)) == (1, 2)
    with pytest.raises(ValueError):
        api_util.safe_map(max, [1, 2], [3])
    info = api_util.debug_info("test", three, (1, {"a": 2}), {}, static_argnums=(0,))
    assert info.arg_names == ("y['a']",) and info.traced_for == "test" and "three" in info.func_src_info
    assert api_util.shaped_abstractify(jax.ShapeDtypeStruct((2,), "int8")).str_short() == "int8[2]"
    aval = jax.core.ShapedArray((2,), jax.numpy.float32, weak_type=True)
    assert api_util.shaped_abstractify(aval) == aval
    with pytest.raises(TypeError):
        api_util.shaped_abstractify("a")

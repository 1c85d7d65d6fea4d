"""Names of operations, as jax.extend.source_info_util gives them."""
import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.extend import source_info_util


def test_where_operations_stand():
    def f(x):
        with source_info_util.transform_name_stack("jvp"), source_info_util.user_context(None):
            return jnp.sin(x)
    assert "jvp()" in jax.jit(f).lower(1.0).as_text(debug_info=True)
    with source_info_util.user_context(None, name_stack="other"):
        assert str(source_info_util.current_name_stack()) == "other"


def test_the_line_of_an_equation():
    def f(x):
        return x + 1
    (eqn,) = jax.make_jaxpr(f)(1).eqns
    for known in (eqn.source_info, eqn.source_info.traceback):
        frame = source_info_util.user_frame(known)
        assert (frame.file_name, frame.start_line) == (__file__, f.__code__.co_firstlineno + 1)
        assert frame.function_name.endswith("<locals>.f") and source_info_util.user_frames(known) == [frame]
    assert source_info_util.user_frame(None) is None and source_info_util.user_frames(None) == []
    assert str(eqn.source_info.name_stack.transform("jvp").extend("a")) == "jvp(a)"

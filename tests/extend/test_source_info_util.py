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


def test_scopes_of_transformations_are_written_around_what_they_hold():
    (eqn,) = jax.make_jaxpr(jax.named_scope("a")(lambda x: x + 1))(1).eqns
    assert str(eqn.source_info.name_stack) == "a"
    assert str(source_info_util.new_name_stack().transform("jvp").extend("a")) == "jvp(a)"

"""The intermediate representation and what all else uses: types, programs, primitives, traces, options.

JAX's names for these (`hlotrace.core.Tracer`, `.eval_jaxpr`, ...) are in `surface/jax_core_names.py`, which
is imported when one is used.
"""
from .surface.public import export_names as _offer

_offer(globals(), lazy={"surface.jax_core_names": """
    AbstractToken AbstractValue Atom ClosedJaxpr DebugInfo DropVar Effect Effects
    InconclusiveDimensionOperation Jaxpr JaxprEqn JaxprTypeError Literal ParamDict Primitive ShapedArray Token
    Trace TraceTag Tracer Value Var array_types check_jaxpr concrete_or_error ensure_compile_time_eval
    eval_context eval_jaxpr find_top_trace gensym get_aval get_opaque_trace_state jaxpr_as_fun
    jaxprs_in_params mapped_aval max_dim min_dim new_jaxpr_eqn no_effects nonempty_axis_env_DO_NOT_USE
    primal_dtype_to_tangent_dtype pytype_aval_mappings raise_to_shaped set_current_trace subjaxprs
    take_current_trace typeof unmapped_aval unsafe_am_i_under_a_jit_DO_NOT_USE
    unsafe_am_i_under_a_vmap_DO_NOT_USE unsafe_get_axis_names_DO_NOT_USE
    valid_jaxtype"""})

"""`sparsify`: functions of arrays as functions of sparse arrays.

A trace whose tracers represent sparse arrays: an operation on one is done by its rule in a table, to the
arrays that the sparse one is made of.  What would make a result dense has no rule.  The methods of BCOO are
functions of `hlotrace.numpy`, sparsified.
"""
import functools
import math

from ... import lax, numpy as jnp
from ...api.composite import composite
from ...core.avals import aval_of
from ...core.config import state
from ...core.jaxpr import eval_jaxpr
from ...core.jaxpr_trace import trace_to_jaxpr
from ...core.primitive import PassRules, Primitive
from ...core.pytrees import pytree
from ...core.surface.boundary import boundaries, boundary, filtered
from ...core.trace import Trace, Tracer, entering
from ...primitives.arrays import elementwise as e, transcendental as t
from ...primitives.arrays.contract import dot_general_p
from ...primitives.arrays.conv import conv_general_dilated_p
from ...primitives.arrays.dynamic_slice import dynamic_slice_p
from ...primitives.arrays.elementwise_rules import add_any_p
from ...primitives.arrays.gather import gather_p
from ...primitives.arrays.shape import (
    broadcast_in_dim_p, reduce_sum_p, reshape_p, same_axes, squeeze_p, transpose_p)
from ...primitives.arrays.slicing import concatenate_p, copy_p, rev_p, slice_p
from ...primitives.arrays.special import bessel_i1e_p, digamma_p, erfc_p, lgamma_p
from ...primitives.arrays.transcendental import cbrt_p, integer_pow_p
from ...primitives.programs.calls import custom_jvp_call_p, custom_vjp_call_p, jit_p
from ...primitives.programs.cond_while import cond_p, groups, while_p
from ...primitives.programs.remat import remat_p
from ...primitives.programs.scan import scan_p
from .bcoo import BCOO, bcoo_reduce_sum, bcoo_sum_duplicates, bcoo_transpose
from .bcoo_products import bcoo_conv_general_dilated, bcoo_dot_general, bcoo_multiply_sparse, beside
from .bcoo_shapes import (
    bcoo_broadcast_in_dim, bcoo_concatenate, bcoo_dynamic_slice, bcoo_gather, bcoo_reshape, bcoo_rev,
    bcoo_slice, bcoo_squeeze, reshaped)
from .bcsr import BCSR, bcsr_broadcast_in_dim, bcsr_concatenate, bcsr_dot_general
from .sparse_array import JAXSparse


class SparseTracer(Tracer):
    """Represents the sparse array `mat` where a sparsified function runs."""
    __slots__ = ("mat",)

    def __init__(self, trace, mat):
        self._trace, self.mat = trace, mat
        self.aval = aval_of(mat.data).update(shape=mat.shape)


class SparseTrace(Trace):
    """Applies the rules of sparse arrays."""
    __slots__ = ()
    what = "sparsify"

    def process(self, primitive, args, params):
        values = [self.split(a) for a in args]
        with entering(self.parent):
            if not any(isinstance(v, JAXSparse) for v in values):
                return primitive.bind(*args, **params)
            out = _rule(primitive, values)(primitive, *values, **params)
        if primitive.multiple_results:
            return [self.join(x) for x in out]
        return self.join(out)

    def join(self, value):
        return SparseTracer(self, value) if isinstance(value, JAXSparse) else value

    def split(self, value):
        """The sparse array behind a value, or the value itself."""
        return value.mat if type(value) is SparseTracer and value._trace is self else value


def _rule(primitive, values):
    kinds = {type(v) for v in values if isinstance(v, JAXSparse)}
    rules = RULES.get(kinds.pop()) if len(kinds) == 1 else None
    return rules.of(primitive) if rules else _refuse


def is_sparse(x):
    return isinstance(x, JAXSparse)


def sparsify_flat(fun, args):
    """`fun`, from flat lists to flat lists, on values some of which are sparse arrays."""
    trace = SparseTrace(state.trace)
    outs = trace.run(fun, *[trace.join(a) for a in args])
    return [trace.split(x) for x in outs]


def sparsify(f, use_tracer=False):
    """`f` as a function that also takes and returns BCOO and BCSR arrays, in the place of arrays.

    Args:
        use_tracer: run `f` itself each time, so that it may look at the numbers of dense arguments; otherwise
            its program is traced first.
    Raises:
        NotImplementedError: for an operation whose result would not be sparse.

    >>> mat = sparse.BCOO.fromdense(jnp.eye(3))
    >>> sparse.sparsify(lambda x, v: jnp.sin(x) @ (2 * v))(mat, jnp.zeros(3))
    Array([0., 0., 0.], dtype=float32)
    """
    @filtered
    @functools.wraps(f)
    def wrapped(*args, **kwargs):
        leaves, in_tree = pytree.tree_flatten((args, kwargs), is_leaf=is_sparse)
        out_tree = None

        def flat(*xs):
            nonlocal out_tree
            given, named = in_tree.unflatten(xs)
            outs, out_tree = pytree.tree_flatten(f(*given, **named), is_leaf=is_sparse)
            return outs
        run = flat if use_tracer else _program(flat, leaves)
        outs = sparsify_flat(run, [_named(x) if is_sparse(x) else x for x in leaves])
        return out_tree.unflatten(outs)
    return wrapped


def _named(mat):
    """A sparse array whose indices count as different from those of all others."""
    mat = mat._replace(mat.data)
    mat._places = object()
    return mat


def _program(flat, leaves):
    avals = [aval_of(x.data).update(shape=x.shape) if is_sparse(x) else aval_of(x) for x in leaves]
    jaxpr = trace_to_jaxpr(flat, avals, "sparsify")
    return lambda *xs: eval_jaxpr(jaxpr, jaxpr.consts, *xs)


def _todense_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return todense_p.bind(x), None if t is None else todense_p.bind(t)


todense_p = Primitive("todense", abstract_eval=lambda x: x, lower=lambda ctx, eqn, x: x, jvp=_todense_jvp,
                      transpose=lambda ct, x: [ct], axes=same_axes())


def todense(arr):
    """The array with all its numbers, of a sparse one, also inside of a sparsified function, or a dense one.

    >>> sparse.todense(sparse.eye(2))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return arr.todense() if isinstance(arr, JAXSparse) else todense_p.bind(jnp.asarray(arr))


# --- rules of what computes with the numbers: (primitive, *values, **params) -> value -------------

def _refuse(primitive, *values, because="", **_):
    formats = ", ".join(sorted({type(v).__name__ for v in values if isinstance(v, JAXSparse)}))
    raise NotImplementedError(f"sparse rule for {primitive} is not implemented{because}, for {formats}: use "
                              "sparse.todense() to convert your argument first.")


def _dense(primitive, *values, **_):
    """A function that is not 0 at 0."""
    _refuse(primitive, *values, because=" because it would result in dense output")


def _linear(primitive, mat, **params):
    return mat._replace(primitive.bind(mat.data, **params))


def _of_zero_zero(primitive, mat, **params):
    """A function with f(0) = 0 that is not linear: the numbers must be those of different places."""
    if not mat.unique_indices and isinstance(mat, BCOO):
        mat = bcoo_sum_duplicates(mat, nse=mat.nse)
    return mat._replace(primitive.bind(mat.data, **params))


def _integer_pow(primitive, mat, *, y):
    if y <= 0:
        raise NotImplementedError(f"sparse rule for integer_pow with non-positive exponent {y} is not "
                                  "implemented because it would result in dense output: use "
                                  "sparse.todense() to convert your argument first.")
    return _of_zero_zero(primitive, mat, y=y)


def _same_places(x, y):
    """Are the indices of both those of one argument?"""
    return x._places is not None and x._places is y._places


def _densified(shape, other):
    return NotImplementedError(
        f"Addition between a sparse array X of shape {shape} and a dense array Y of shape {other} is not "
        "implemented when the output shape is larger than Y.shape. This is to prevent silent densification "
        "of a large sparse array. If this is your intent, you can explicitly cast the sparse array to a "
        "dense matrix.")


def _sum(primitive, x, y):
    """x + y or x - y."""
    if not (is_sparse(x) and is_sparse(y)):
        mat, dense = (x, y) if is_sparse(x) else (y, x)
        if jnp.shape(dense) != mat.shape:
            raise _densified(mat.shape, jnp.shape(dense))
        return primitive.bind(*(v.todense() if is_sparse(v) else v for v in (x, y)))
    if x.shape != y.shape:
        raise NotImplementedError(f"Addition between sparse matrices of different shapes: {x.shape}, "
                                  f"{y.shape}.")
    if (x.n_batch, x.n_dense) != (y.n_batch, y.n_dense):
        raise NotImplementedError("Addition between sparse matrices with different batch/dense dimensions: "
                                  f"{x} and {y}: see update_layout.")
    if _same_places(x, y):
        return x._replace(primitive.bind(x.data, y.data))
    y = y._replace(-y.data) if primitive is e.sub_p else y
    n = x.n_batch
    wide = [v._replace(jnp.broadcast_to(v.data, x.shape[:n] + v.data.shape[n:])) for v in (x, y)]
    indices = [jnp.broadcast_to(v.indices, x.shape[:n] + v.indices.shape[n:]) for v in wide]
    return BCOO((jnp.concatenate([v.data for v in wide], n), jnp.concatenate(indices, n)), shape=x.shape)


def _mul(primitive, x, y):
    if is_sparse(x) and is_sparse(y):
        if _same_places(x, y) and x.unique_indices:
            return x._replace(x.data * y.data)
        return bcoo_multiply_sparse(x, y)
    mat, dense = (x, y) if is_sparse(x) else (y, x)
    return mat._replace(primitive.bind(mat.data, _aligned(mat, beside("mul", mat, dense))))


def _aligned(mat, v):
    """Numbers beside those of `mat`, with axes for the operation on `mat.data`."""
    return v if not jnp.ndim(v) else jnp.broadcast_to(v, jnp.broadcast_shapes(v.shape, mat.data.shape))


def _div(primitive, x, y):
    if is_sparse(y):
        raise NotImplementedError("Division by a sparse array is not implemented because it would result in "
                                  "dense output: use sparse.todense() to convert your arguments first.")
    return x._replace(primitive.bind(x.data, _aligned(x, beside("div", x, y, fill=1))))


# --- rules of what moves them: (primitive, *values, **params) -> value or values ------------------

def _by(function):
    """The rule that is a function of (*values, **params)."""
    return lambda primitive, *values, **params: function(*values, **params)


def _sum_axes(_, mat, *, axes, **__):
    out = bcoo_reduce_sum(mat, axes=axes)
    return out if out.shape else out.todense()


def _concatenate(_, *operands, dimension):
    if all(isinstance(x, BCSR) for x in operands):
        return bcsr_concatenate(operands, dimension=dimension)
    return bcoo_concatenate(operands, dimension=dimension)


def _dot_general(_, lhs, rhs, *, dimension_numbers, precision=None, preferred_element_type=None, **__):
    function = bcsr_dot_general if BCSR in (type(lhs), type(rhs)) else bcoo_dot_general
    return function(lhs, rhs, dimension_numbers=dimension_numbers, precision=precision,
                    preferred_element_type=preferred_element_type)


def _broadcast(_, mat, *, shape, broadcast_dimensions, **__):
    function = bcsr_broadcast_in_dim if isinstance(mat, BCSR) else bcoo_broadcast_in_dim
    return function(mat, shape=shape, broadcast_dimensions=broadcast_dimensions)


def _gather(_, mat, indices, *, dimension_numbers, slice_sizes, mode=None, fill_value=None, **__):
    return bcoo_gather(mat, indices, dimension_numbers, slice_sizes, mode=mode, fill_value=fill_value)


def _dynamic_slice(_, mat, *start, slice_sizes):
    return bcoo_dynamic_slice(mat, start, slice_sizes)


def _conv(_, lhs, rhs, *, dimension_numbers, precision=None, preferred_element_type=None, **params):
    if any(spec != (0, 1, 2) for spec in dimension_numbers):
        raise NotImplementedError(f"bcoo convolution with dimension_numbers={dimension_numbers}")
    return bcoo_conv_general_dilated(lhs, rhs, precision=precision,
                                     preferred_element_type=preferred_element_type, **params)


# --- programs within programs ---------------------------------------------------------------------

def _on_sparse(jaxpr):
    """A program as a function of values some of which are sparse arrays."""
    return lambda *xs: sparsify_flat(lambda *ys: eval_jaxpr(jaxpr, (), *ys), xs)


def _call(_, *args, jaxpr=None, fun=None, **__):
    return sparsify_flat(fun, args) if jaxpr is None else _on_sparse(jaxpr)(*args)


def _cond(_, index, *operands, branches, **__):
    index = lax.convert_element_type(index, jnp.int32)
    return lax.switch(index, [_on_sparse(b) for b in branches], *operands)


def _while(_, *args, cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts):
    of_cond, of_body, carry = groups(args, cond_nconsts, body_nconsts)
    goes_on, step = _on_sparse(cond_jaxpr), _on_sparse(body_jaxpr)
    return lax.while_loop(lambda c: goes_on(*of_cond, *c)[0], lambda c: step(*of_body, *c), list(carry))


def _scan(_, *args, jaxpr, num_consts, num_carry, length, reverse, unroll):
    consts, carry, xs = groups(args, num_consts, num_carry)
    step = _on_sparse(jaxpr)

    def body(carry, x):
        outs = step(*consts, *carry, *x)
        return outs[:num_carry], outs[num_carry:]
    carry, ys = lax.scan(body, list(carry), list(xs), length=length, reverse=reverse, unroll=unroll)
    return [*carry, *ys]


def _of_both(by_places):
    """{rule: primitives} of what either format has a rule for."""
    return {
        _linear: (copy_p, e.neg_p, e.real_p, e.imag_p), _integer_pow: (integer_pow_p,),
        _of_zero_zero: (e.abs_p, t.asin_p, t.asinh_p, t.atan_p, t.atanh_p, bessel_i1e_p, cbrt_p, e.conj_p,
                        e.convert_element_type_p, t.expm1_p, t.log1p_p, e.sign_p, t.sin_p, t.sinh_p, t.sqrt_p,
                        e.square_p, e.stop_gradient_p, t.tan_p, t.tanh_p),
        _dense: (t.acos_p, t.acosh_p, t.cos_p, t.cosh_p, digamma_p, e.eq_p, erfc_p, t.exp_p, t.exp2_p, e.ge_p,
                 e.gt_p, e.is_finite_p, e.le_p, lgamma_p, t.log_p, t.logistic_p, e.lt_p, e.ne_p, e.not_p,
                 t.rsqrt_p),
        _call: (jit_p, remat_p, custom_jvp_call_p, custom_vjp_call_p),
        _by(lambda mat: mat.todense()): (todense_p,),
        _concatenate: (concatenate_p,), _dot_general: (dot_general_p,), _broadcast: (broadcast_in_dim_p,),
        **by_places}


# What has no rule is an error with its name, so the default is right for all.
RULES = {
    BCSR: PassRules("sparsify of BCSR", _refuse, lambda p: True, _of_both({
        _by(lambda mat, *, new_sizes, **_:
            BCSR.from_bcoo(reshaped(mat.to_bcoo(), new_sizes))): (reshape_p,)})),
    BCOO: PassRules("sparsify of BCOO", _refuse, lambda p: True, _of_both({
        _sum: (e.add_p, add_any_p, e.sub_p), _mul: (e.mul_p,), _div: (e.div_p,), _sum_axes: (reduce_sum_p,),
        _gather: (gather_p,), _dynamic_slice: (dynamic_slice_p,), _conv: (conv_general_dilated_p,),
        _cond: (cond_p,), _while: (while_p,), _scan: (scan_p,), _by(bcoo_rev): (rev_p,),
        _by(lambda mat, *, new_sizes, **_: reshaped(mat, new_sizes)): (reshape_p,),
        _by(bcoo_slice): (slice_p,), _by(bcoo_squeeze): (squeeze_p,), _by(bcoo_transpose): (transpose_p,)}))}


# --- methods --------------------------------------------------------------------------------------

def _operator(function, name, reverse=False):
    """A binary operation that is a function of arrays, sparsified; on arrays it is one compiled program."""
    of_both = composite(functools.wraps(function)(lambda x, y: sparsify(function)(x, y)))

    def method(self, other):
        if not _is_operand(other):
            return NotImplemented
        dense = not isinstance(other, JAXSparse)
        if dense and function in (jnp.add, jnp.subtract) and jnp.shape(other) != self.shape:
            raise _densified(self.shape, jnp.shape(other))
        if not dense and function is jnp.multiply and other.shape != self.shape:
            return bcoo_multiply_sparse(*((other, self) if reverse else (self, other)))
        # a constant of the program: x ** 2 is a product
        if isinstance(other, (bool, int, float, complex)):
            return sparsify(lambda x: function(other, x) if reverse else function(x, other))(self)
        return of_both(*((other, self) if reverse else (self, other)))
    method.__name__, method.__doc__ = name, f"`{name}` of arrays, by `sparsify`."
    return boundary(method, name.strip("_"), method=True)


def _method(function, name):
    def method(self, *args, **kwargs):
        return sparsify(lambda x: function(x, *args, **kwargs))(self)
    method.__name__, method.__doc__ = name, f"`{name.strip('_')}` of arrays, by `sparsify`: a sparse array."
    return method


def _is_operand(x):
    return isinstance(x, JAXSparse) or hasattr(x, "dtype") or isinstance(x, (bool, int, float, complex))


def _reshape(self, *args, order="C"):
    """The BCOO with another shape: `bcoo_reshape`."""
    if order != "C":
        raise NotImplementedError(f"BCOO.reshape: order={order!r}: only 'C'")
    sizes = list(args[0] if len(args) == 1 and not hasattr(args[0], "__index__") else args)
    if sizes.count(-1) == 1:
        known = math.prod(s for s in sizes if s != -1)
        sizes[sizes.index(-1)] = self.size // known if known else 0
    return bcoo_reshape(self, new_sizes=sizes)


_BINARY = dict(add=jnp.add, sub=jnp.subtract, mul=jnp.multiply, truediv=jnp.true_divide, pow=jnp.power,
               matmul=jnp.matmul)
for _name, _function in _BINARY.items():
    for _kind in (BCOO, BCSR) if _name == "matmul" else (BCOO,):
        setattr(_kind, f"__{_name}__", _operator(_function, f"__{_name}__"))
        setattr(_kind, f"__r{_name}__", _operator(_function, f"__r{_name}__", reverse=True))
for _name, _function in dict(__neg__=jnp.negative, __abs__=jnp.abs, __pos__=jnp.positive, sum=jnp.sum,
                             astype=lambda x, *args, **kwargs: x.astype(*args, **kwargs)).items():
    setattr(BCOO, _name, _method(_function, _name))
BCOO.__getitem__ = BCSR.__getitem__ = lambda self, index: sparsify(lambda x: x[index])(self)
BCOO.reshape = _reshape
BCOO.__iter__ = lambda self: (self[i] for i in range(len(self)))
for _kind in (BCOO, BCSR):
    boundaries(_kind, but="tree_flatten")

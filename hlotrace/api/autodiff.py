"""Differentiation as users call it: grad, value_and_grad, jvp, vjp, linearize, linear_transpose, Jacobians."""
import functools
import operator

from ..core import dtypes, tree
from ..core.avals import aval_of, is_arraylike, not_an_array
from ..core.config import state
from ..core.jaxpr import eval_jaxpr
from ..core.linear import Linear
from ..core.trace import EVAL, trace_to_jaxpr
from ..primitives.common import instantiate, np, zeros_of
from ..primitives.elementwise import convert
from ..runtime.array import ArrayImpl, as_array
from ..transforms.jvp import jvp_flat
from ..transforms.linearize import linearize_flat
from ..transforms.transpose import backward_pass
from .flat import check_outputs
from .signatures import name_of
from .vmap import vmap

__all__ = ["grad", "value_and_grad", "jvp", "vjp", "linearize", "linear_transpose", "jacfwd", "jacrev", "jacobian",
           "hessian", "fwd_and_bwd"]


def _flat(fun, in_tree, found, has_aux=False):
    """A function of flat lists; the structure of its output is put into the dict `found`."""
    def flat(*leaves):
        result = fun(*in_tree.unflatten(leaves))
        if has_aux:
            if not isinstance(result, (tuple, list)) or len(result) != 2:
                raise TypeError(f"expected output of function {name_of(fun)} to be a pair (out, aux) because has_aux is "
                                f"True, got {type(result)}")
            result, aux = result
            found["aux"], found["aux_tree"] = tree.tree_flatten(aux)
        outs, found["tree"] = tree.tree_flatten(result)
        check_outputs(outs, found["tree"], name_of(fun))
        return [*outs, *found["aux"]] if has_aux else outs
    return flat


def _check_arrays(name, leaves, paths):
    for x, path in zip(leaves, paths):
        if not is_arraylike(x):
            raise TypeError(f"{name}: {not_an_array(x, path)}")


def _as_operand(x):
    """At top level a NumPy value or Python number becomes an array once, rather than in each operation."""
    return as_array(x) if state.trace is EVAL else x


def _as_array_operand(x):
    """A tangent or cotangent given by the user: rules may ask for its shape."""
    x = _as_operand(x)
    return convert(x, aval_of(x).dtype, True) if type(x) in dtypes.python_scalars else x


def _choose(fun, args, kwargs, argnums):
    """What is to be differentiated: (function of the chosen arguments, their values, was argnums an int?, leaf paths).

    TypeError for argument numbers that are not there.
    """
    try:
        single = not isinstance(argnums, (tuple, list))
        numbers = (operator.index(argnums),) if single else tuple(operator.index(n) for n in argnums)
    except TypeError:
        raise TypeError(f"argnums must be an int or a sequence of ints, got {argnums!r}") from None
    for n in numbers:
        if not -len(args) <= n < len(args):
            raise TypeError(f"differentiating with respect to argnums={argnums} requires at least "
                            f"{n + 1 if n >= 0 else -n} positional arguments to be passed by the caller, but got only "
                            f"{len(args)} positional arguments.")
    numbers = tuple(n % len(args) for n in numbers)

    def partial(*values):
        filled = list(args)
        for n, v in zip(numbers, values):
            filled[n] = v
        return fun(*filled, **kwargs)
    functools.update_wrapper(partial, fun, updated=())
    names = tree.arg_names(fun, len(args))[0]
    paths = [path for n in numbers for path in tree.leaf_paths(args[n], prefix=names[n])]
    return partial, tuple(args[n] for n in numbers), single, paths


def _check_input_dtype(name, leaves, paths, holomorphic, allow_int):
    for x, path in zip(leaves, paths):
        dtype = aval_of(x).dtype
        if holomorphic:
            if not dtypes.is_complex(dtype):
                raise TypeError(f"{name} with holomorphic=True requires inputs with complex dtype, but got {dtype.name} "
                                f"for {path}.")
        elif dtypes.is_complex(dtype) and name in ("jacfwd",):
            raise TypeError(f"{name} requires real-valued inputs (input dtype that is a sub-dtype of np.floating), but "
                            f"got {dtype.name} for {path}. For holomorphic differentiation, pass holomorphic=True.")
        elif dtypes.is_extended(dtype) or not dtypes.is_inexact(dtype) and not allow_int:
            raise TypeError(
                f"{name} requires real- or complex-valued inputs (input dtype that is a sub-dtype of np.inexact), but "
                f"got {dtypes.short_name(dtype)} for {path}. If you want to use Boolean- or integer-valued inputs, use "
                "vjp or set allow_int to True; a number becomes floating with x.astype(float) or by writing 1.0 for 1.")


def _check_scalar(name, out_leaves, out_tree, holomorphic):
    """TypeError unless the function to be differentiated gave one real scalar."""
    if out_tree.num_leaves != 1 or out_tree != tree.tree_structure(0):
        raise TypeError(f"Gradient only defined for scalar-output functions. Output was of structure {out_tree}; use "
                        "has_aux=True to return more than the loss.")
    aval = aval_of(out_leaves[0])
    if aval.shape:
        raise TypeError(f"Gradient only defined for scalar-output functions. Output had shape: {aval.shape}. Reduce it "
                        "with .sum() or .mean(), or use jacrev, jacfwd or vjp.")
    if holomorphic:
        if not dtypes.is_complex(aval.dtype):
            raise TypeError(f"{name} with holomorphic=True requires outputs with complex dtype, but got "
                            f"{aval.dtype.name}.")
    elif not dtypes.is_float(aval.dtype):
        hint = (" For holomorphic differentiation, pass holomorphic=True; for differentiation of non-holomorphic "
                "functions involving complex outputs, use vjp directly." if dtypes.is_complex(aval.dtype) else "")
        raise TypeError(f"{name} requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but "
                        f"got {aval.dtype.name}.{hint}")


class _Pullback:
    """The function that vjp returns: cotangents of the outputs to cotangents of the inputs.  A pytree."""

    def __init__(self, program, consts, primal_avals, out_avals, out_nonzero, in_tree, out_tree, marks):
        self.program, self.consts = program, consts
        self.primal_avals, self.out_avals, self.out_nonzero = primal_avals, out_avals, out_nonzero
        self.in_tree, self.out_tree, self.marks = in_tree, out_tree, marks

    def flat(self, cts):
        """Cotangents as flat lists; those of integer inputs are float0 zeros."""
        linear = [Linear(v.aval) for v in self.program.invars]
        live = [ct for ct, nz in zip(cts, self.out_nonzero) if nz]
        found = iter(backward_pass(self.program, self.consts, linear, live))
        return [_cotangent(next(found) if mark else None, a) for a, mark in zip(self.primal_avals, self.marks)]

    def __call__(self, ct):
        leaves, ct_tree = tree.tree_flatten(ct, is_leaf=_is_float0_leaf)
        if ct_tree != self.out_tree:
            raise ValueError("Tree structure of cotangent input to the vjp function differs from the structure of the "
                             "output of the function:\n" + tree.structure_mismatch(
                                 "cotangent", self.out_tree, ct_tree, ("the output", "the cotangent")))
        paths = tree.leaf_paths(self.out_tree)
        for x, a, path in zip(leaves, self.out_avals, paths):
            got, want = aval_of(x), a.tangent()
            if got.shape != want.shape:
                raise ValueError(f"Shape of cotangent input to vjp pullback function {path} {got.shape} must be the same "
                                 f"as the shape of corresponding primal output {want.shape}.")
            if got.dtype != want.dtype and want.dtype != dtypes.float0:
                raise ValueError(f"unexpected JAX type (dtype) of cotangent input {path} to vjp pullback function: got "
                                 f"{got.dtype.name}, expected {want.dtype.name}, the dtype of the output; cast it with "
                                 ".astype.")
        return self.in_tree.unflatten(self.flat([_as_array_operand(x) for x in leaves]))


tree.register_pytree_node(
    _Pullback, lambda p: (p.consts, (p.program, p.primal_avals, p.out_avals, p.out_nonzero, p.in_tree, p.out_tree,
                                     p.marks)),
    lambda aux, consts: _Pullback(aux[0], consts, *aux[1:]))


def _is_float0_leaf(x):
    return isinstance(x, np.ndarray) and x.dtype == dtypes.float0


def _cotangent(ct, aval):
    """A cotangent with the type of its primal: float0 for integers, weak for a weak one."""
    if not dtypes.is_inexact(aval.dtype):
        return np.zeros(aval.shape, dtypes.float0)
    ct = _as_operand(zeros_of(aval) if ct is None else ct)
    if aval_of(ct).weak_type == aval.weak_type:
        return ct
    return ArrayImpl(aval, ct._buf, ct._committed) if type(ct) is ArrayImpl else convert(ct, aval.dtype, aval.weak_type)


def _linearize(fun, primals, name, has_aux=False, marks=None):
    """(outs, out tree, pullback or program pieces) of a function at a point.  `primals` is a tuple of pytrees."""
    leaves, in_tree = tree.tree_flatten(primals)
    _check_arrays(name, leaves, tree.arg_paths(fun, primals))
    leaves = [_as_operand(x) for x in leaves]
    avals = [aval_of(x) for x in leaves]
    if marks is None:
        marks = [dtypes.is_inexact(a.dtype) for a in avals]
    found = {}
    outs, program, out_nonzero = linearize_flat(_flat(fun, in_tree, found, has_aux), leaves, marks)
    n = found["tree"].num_leaves
    if has_aux:
        # tangents of aux are not wanted
        program = program.replace(outvars=program.outvars[:sum(out_nonzero[:n])])
    aux = found["aux_tree"].unflatten(outs[n:]) if has_aux else None
    pieces = _Pullback(program, list(program.consts), avals, [aval_of(x) for x in outs[:n]], out_nonzero[:n], in_tree,
                       found["tree"], marks)
    return outs[:n], aux, pieces


def vjp(fun, *primals, has_aux=False, reduce_axes=()):
    """The value of `fun` at `primals` and the function from cotangents of its output to those of its inputs.

    Returns (out, pullback), or (out, pullback, aux) with `has_aux`.  Cotangents of integer and boolean inputs
    have dtype float0.
    """
    outs, aux, pullback = _linearize(fun, primals, "vjp", has_aux)
    out = pullback.out_tree.unflatten(outs)
    return (out, pullback, aux) if has_aux else (out, pullback)


def value_and_grad(fun, argnums=0, has_aux=False, holomorphic=False, allow_int=False, reduce_axes=()):
    """A function that gives the value of scalar-valued `fun` and its gradient.

    Args:
      argnums: the positional argument, or the arguments, to differentiate with respect to.
      has_aux: `fun` returns (value, aux); the result is then ((value, aux), gradient).
      holomorphic: `fun` is complex-differentiable; inputs and output are complex.
      allow_int: integer inputs are allowed, with gradients of dtype float0.
    Raises: TypeError where the output is not a real scalar or an input is not floating.
    """
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun!r}")

    @functools.wraps(fun)
    def value_and_grad_of(*args, **kwargs):
        partial, chosen, single, paths = _choose(fun, args, kwargs, argnums)
        leaves = tree.tree_leaves(chosen)
        _check_arrays("grad", leaves, paths)
        _check_input_dtype("grad", leaves, paths, holomorphic, allow_int)
        outs, aux, pullback = _linearize(partial, chosen, "grad", has_aux)
        _check_scalar("grad", outs, pullback.out_tree, holomorphic)
        aval = aval_of(outs[0])
        cotangents = pullback.in_tree.unflatten(pullback.flat([np.ones((), aval.dtype)]))
        gradient = cotangents[0] if single else cotangents
        return ((outs[0], aux), gradient) if has_aux else (outs[0], gradient)
    return value_and_grad_of


def grad(fun, argnums=0, has_aux=False, holomorphic=False, allow_int=False, reduce_axes=()):
    """A function that gives the gradient of scalar-valued `fun`; with `has_aux`, (gradient, aux).

    See `value_and_grad` for the arguments.
    """
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int)

    @functools.wraps(fun)
    def grad_of(*args, **kwargs):
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient
    return grad_of


def jvp(fun, primals, tangents, has_aux=False):
    """The value of `fun` at `primals` and its derivative along `tangents`; with `has_aux`, aux as third.

    Raises: TypeError where primals and tangents differ in structure, shape or dtype.
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError("primal and tangent arguments to jvp must be tuples or lists; found "
                        f"{type(primals).__name__} and {type(tangents).__name__}.")
    leaves, in_tree = tree.tree_flatten(tuple(primals))
    t_leaves, t_tree = tree.tree_flatten(tuple(tangents), is_leaf=_is_float0_leaf)
    if in_tree != t_tree:
        raise TypeError("primal and tangent arguments to jvp must have the same tree structure:\n"
                        + tree.structure_mismatch("jvp", tuple(primals), tuple(tangents), ("primals", "tangents")))
    paths = tree.arg_paths(fun, tuple(primals))
    _check_arrays("jvp", leaves, paths)
    leaves = [_as_operand(x) for x in leaves]
    checked = [_checked_tangent(x, t, path) for x, t, path in zip(leaves, t_leaves, paths)]
    found = {}
    outs, out_tangents = jvp_flat(_flat(fun, in_tree, found, has_aux), leaves, checked)
    n = found["tree"].num_leaves
    filled = [_as_operand(instantiate(t, aval_of(x))) for x, t in zip(outs[:n], out_tangents[:n])]
    results = found["tree"].unflatten(outs[:n]), found["tree"].unflatten(filled)
    return (*results, found["aux_tree"].unflatten(outs[n:])) if has_aux else results


def _checked_tangent(x, t, path):
    want, got = aval_of(x).tangent(), aval_of(t)
    if got.shape != want.shape:
        raise ValueError(f"jvp called with different primal and tangent shapes for {path}; got primal shape {want.shape} "
                         f"and tangent shape {got.shape}")
    if want.dtype == dtypes.float0:
        if got.dtype != dtypes.float0:
            raise TypeError(f"primal and tangent arguments to jvp do not match: {path} has dtype "
                            f"{aval_of(x).dtype.name}, whose tangents have dtype float0 "
                            "(np.zeros(shape, dtypes.float0)), got " + got.dtype.name)
        return None
    if got.dtype != want.dtype:
        raise TypeError(f"primal and tangent arguments to jvp do not match; dtypes must be equal, or in case of int/bool "
                        f"primal dtype the tangent dtype must be float0: {path} is {want.dtype.name}, its tangent "
                        f"{got.dtype.name}")
    return _as_array_operand(t)


def linearize(fun, *primals, has_aux=False):
    """The value of `fun` at `primals` and its derivative there as a function of tangents.

    The function is evaluated once; the derivative is a recorded linear program.
    """
    outs, aux, pieces = _linearize(fun, primals, "linearize", has_aux)

    def derivative(*tangents):
        leaves, t_tree = tree.tree_flatten(tuple(tangents), is_leaf=_is_float0_leaf)
        if t_tree != pieces.in_tree:
            raise TypeError("tangents of the linearized function must have the structure of its inputs:\n"
                            + tree.structure_mismatch("tangents", pieces.in_tree, t_tree, ("inputs", "tangents")))
        for x, a in zip(leaves, pieces.primal_avals):
            if (aval_of(x).shape, aval_of(x).dtype) != (a.shape, a.tangent().dtype):
                raise ValueError(f"linearized function called on tangent values inconsistent with the original primal "
                                 f"values: got {aval_of(x).str_short()} for {a.tangent().str_short()}")
        live = [_as_array_operand(x) for x, mark in zip(leaves, pieces.marks) if mark]
        results = iter(eval_jaxpr(pieces.program, pieces.consts, *live))
        filled = [_as_operand(instantiate(next(results) if nz else None, a))
                  for a, nz in zip(pieces.out_avals, pieces.out_nonzero)]
        return pieces.out_tree.unflatten(filled)
    out = pieces.out_tree.unflatten(outs)
    return (out, derivative, aux) if has_aux else (out, derivative)


def linear_transpose(fun, *primals, reduce_axes=()):
    """The transpose of a linear function; `primals` give shapes and dtypes (arrays or ShapeDtypeStructs).

    Returns a function from cotangents of the output to a tuple of cotangents of the inputs.
    """
    leaves, in_tree = tree.tree_flatten(primals)
    avals = [x.aval if hasattr(x, "aval") else aval_of(x) if is_arraylike(x) else _struct_aval(x) for x in leaves]
    for a in avals:
        if not dtypes.is_inexact(a.dtype) and not dtypes.is_integer(a.dtype):
            raise TypeError(f"linear_transpose only supports numeric inputs, got {a.str_short()}")
    found = {}
    program = trace_to_jaxpr(_flat(fun, in_tree, found), avals, name_of(fun))

    def transposed(ct):
        cts, ct_tree = tree.tree_flatten(ct)
        if ct_tree != found["tree"]:
            raise TypeError(f"cotangent tree does not match function output, expected {found['tree']} but got {ct_tree}")
        for x, a in zip(cts, program.out_avals):
            got = aval_of(x)
            if (got.shape, got.dtype) != (a.shape, a.dtype) and not (got.weak_type and got.shape == a.shape):
                raise TypeError(f"cotangent type does not match function output, expected {a.str_short()} but got "
                                f"{got.str_short()}")
        linear = [Linear(a) for a in avals]
        results = backward_pass(program, program.consts, linear, [_as_array_operand(x) for x in cts])
        return in_tree.unflatten([_as_operand(zeros_of(a) if r is None else r) for r, a in zip(results, avals)])
    return transposed


def _struct_aval(x):
    from ..core.avals import ShapedArray
    return ShapedArray(tuple(x.shape), dtypes.canonicalize(x.dtype))


def fwd_and_bwd(fun, argnums, has_aux=False, jitted=True):
    """(forward, backward): forward gives (out, residuals), backward maps (residuals, cotangent) to gradients."""
    from .jit import jit
    maybe = jit if jitted else (lambda f: f)

    def forward(*args, **kwargs):
        partial, chosen, _, _ = _choose(fun, args, kwargs, argnums)
        return vjp(partial, *chosen, has_aux=has_aux)

    def backward(pullback, ct):
        gradients = pullback(ct)
        return gradients if isinstance(argnums, (tuple, list)) else gradients[0]
    return maybe(forward), maybe(backward)


# --- Jacobians --------------------------------------------------------------------------------------------------

def _basis(avals):
    """All unit vectors of a list of avals: one stacked array for each, with a common leading axis."""
    sizes = [a.size for a in avals]
    total, start, stacked = sum(sizes), 0, []
    for a, n in zip(avals, sizes):
        block = np.zeros((total, n), a.dtype)
        block[start:start + n] = np.eye(n, dtype=a.dtype)
        stacked.append(block.reshape(total, *a.shape))
        start += n
    return stacked


def _unstack(x, axis, avals):
    """Cut the axis that ran over a basis into one block for each aval, shaped like it."""
    from ..primitives.shape import reshape, slice_p
    if aval_of(x).dtype == dtypes.float0:
        return [np.zeros((*x.shape[:axis], *a.shape, *x.shape[axis + 1:]), x.dtype) for a in avals]
    blocks, start = [], 0
    for a in avals:
        lo, hi = [0] * x.ndim, list(x.shape)
        lo[axis], hi[axis] = start, start + a.size
        part = slice_p.bind(x, start_indices=tuple(lo), limit_indices=tuple(hi), strides=None)
        blocks.append(reshape(part, (*x.shape[:axis], *a.shape, *x.shape[axis + 1:])))
        start += a.size
    return blocks


def _jacobian_wrapper(fun, argnums, has_aux, build):
    @functools.wraps(fun)
    def jacobian_of(*args, **kwargs):
        partial, chosen, single, paths = _choose(fun, args, kwargs, argnums)
        chosen = chosen[0] if single else chosen
        jac, aux = build(partial if single else (lambda values: partial(*values)), chosen, paths)
        return (jac, aux) if has_aux else jac
    return jacobian_of


def jacfwd(fun, argnums=0, has_aux=False, holomorphic=False):
    """The Jacobian of `fun`, column by column (forward mode): good for few inputs and many outputs.

    The result has the structure of the output with, for each leaf, the structure of the argument; a leaf has
    the output's shape followed by the input's.
    """
    def build(partial, x, paths):
        leaves, in_tree = tree.tree_flatten(x)
        _check_arrays("jacfwd", leaves, paths)
        _check_input_dtype("jacfwd", leaves, paths, holomorphic, False)
        leaves = [_as_operand(v) for v in leaves]
        avals = [aval_of(v) for v in leaves]
        found = {}

        def push(*tangents):
            flat = _flat(lambda v: partial(v), tree.tree_structure((x,)), found, has_aux)
            outs, moved = jvp_flat(flat, leaves, tangents)
            n = found["tree"].num_leaves
            return [instantiate(t, aval_of(o)) for o, t in zip(outs[:n], moved[:n])], outs[n:]
        columns, aux = vmap(push, out_axes=(-1, None))(*_basis([a.tangent() for a in avals]))
        if holomorphic:
            _check_complex_outputs("jacfwd", columns)
        jac = found["tree"].unflatten([in_tree.unflatten(_unstack(c, c.ndim - 1, avals)) for c in columns])
        return jac, found["aux_tree"].unflatten(aux) if has_aux else None
    return _jacobian_wrapper(fun, argnums, has_aux, build)


def _check_complex_outputs(name, outs):
    for o in outs:
        if not dtypes.is_complex(aval_of(o).dtype):
            raise TypeError(f"{name} with holomorphic=True requires outputs with complex dtype, but got "
                            f"{aval_of(o).dtype.name}.")


def jacrev(fun, argnums=0, has_aux=False, holomorphic=False, allow_int=False):
    """The Jacobian of `fun`, row by row (reverse mode): good for many inputs and few outputs.

    The result is structured as that of `jacfwd`.
    """
    def build(partial, x, paths):
        leaves = tree.tree_leaves(x)
        _check_arrays("jacrev", leaves, paths)
        _check_input_dtype("jacrev", leaves, paths, holomorphic, allow_int)
        outs, aux, pullback = _linearize(partial, (x,), "jacrev", has_aux)
        avals = [aval_of(o) for o in outs]
        for a in avals:
            if holomorphic and not dtypes.is_complex(a.dtype) or not holomorphic and not dtypes.is_float(a.dtype):
                wanted = "complex" if holomorphic else "real"
                raise TypeError(f"jacrev{' with holomorphic=True' if holomorphic else ''} requires {wanted}-valued "
                                f"outputs, but got {a.dtype.name}.")
        rows = vmap(lambda *cts: pullback.in_tree.unflatten(pullback.flat(list(cts))))(*_basis(avals))[0]
        row_leaves, row_tree = tree.tree_flatten(rows)
        blocks = [_unstack(r, 0, avals) for r in row_leaves]     # one list over outputs for each input leaf
        jac = pullback.out_tree.unflatten([row_tree.unflatten([b[i] for b in blocks]) for i in range(len(avals))])
        return jac, aux
    return _jacobian_wrapper(fun, argnums, has_aux, build)


jacobian = jacrev


def hessian(fun, argnums=0, has_aux=False, holomorphic=False):
    """The matrix of second derivatives of a scalar function: forward over reverse."""
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)



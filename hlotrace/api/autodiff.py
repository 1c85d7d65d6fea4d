"""Differentiation for users: grad, value_and_grad, jvp, vjp, linearize, linear_transpose."""
from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec, TypeVar

from ..core import dtypes
from ..core.avals import ShapedArray, aval_of
from ..core.config import state
from ..core.errors import check_callable
from ..core.jaxpr import Jaxpr, eval_jaxpr
from ..core.jaxpr_trace import trace_to_jaxpr
from ..core.pytrees import pytree
from ..core.surface.boundary import boundaries, filtered
from ..core.symbolic_zeros import UndefinedPrimal
from ..core.trace import EVAL
from ..primitives.arrays.elementwise import convert
from ..primitives.arrays.shape import in_memory_of, instantiate, zeros_of
from ..primitives.common import np, scalar
from ..runtime.array_impl import ArrayImpl, own
from ..runtime.devices import transfer
from ..transforms import residuals  # noqa: F401  it provides programs.linearize_steps
from ..transforms.jvp import jvp_flat
from ..transforms.linearize import linearize_flat
from ..transforms.transpose import backward_pass
from . import adapters
from .adapters import flatten
from .flat import FlatFunction, abstract
from .jit import jit
from .refs import delivered
from .signatures import name_of, split_statics, wraps

__all__ = ["grad", "value_and_grad", "jvp", "vjp", "linearize", "linear_transpose", "fwd_and_bwd"]

_LEAF = pytree.tree_structure(0)
_P = ParamSpec("_P")
_R = TypeVar("_R")


def as_operands(leaves: list[Any]) -> list[Any]:
    """At top level a NumPy value or Python number becomes an array once, rather than in each operation."""
    if state.trace is not EVAL:
        return leaves
    return [x if _is_float0_leaf(x) else own(x) for x in leaves]


def _as_given(values: Sequence[Any], operands: Sequence[Any], leaves: Sequence[Any],
              others: Sequence[Any] | None = None) -> list[Any]:
    """What the user gave in place of each value that is the operand made of it; `others` in place of the
    rest, or the values themselves."""
    given = {id(o): x for o, x in zip(operands, leaves) if o is not x}
    return [given.get(id(v), other) for v, other in zip(values, values if others is None else others)]


def _as_array_operands(leaves: list[Any]) -> list[Any]:
    """Tangents or cotangents given by the user: rules may ask for their shapes."""
    return [convert(x, aval_of(x).dtype, True) if type(x) in dtypes.python_scalars else x
            for x in as_operands(leaves)]


def _no_reduce_axes(what: str, reduce_axes: Any) -> None:
    if reduce_axes:
        raise NotImplementedError(f"{what}: reduce_axes={reduce_axes!r} is not supported: sum the result "
                                  "with lax.psum")


def checked_argnums(fun: Callable[..., Any], argnums: Any) -> int | tuple[int, ...]:
    """`argnums` as an int or a tuple of int, for a function to be differentiated."""
    check_callable(fun)
    try:
        several = isinstance(argnums, Iterable) and getattr(argnums, "ndim", 1) != 0
        return tuple(map(operator.index, argnums)) if several else operator.index(argnums)
    except TypeError:
        raise TypeError(f"argnums must be an int or a sequence of ints, got {argnums!r}") from None


def chosen_arguments(fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any],
            argnums: int | tuple[int, ...], what: str, has_aux: bool) -> tuple[FlatFunction, Any]:
    """(a FlatFunction of the arguments `argnums`, in the order of the signature; an order for `picked`)."""
    n, single = len(args), isinstance(argnums, int)
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    for k in numbers:
        if not -n <= k < n:
            forward = k >= 0 and not what.startswith("jac")
            raise (TypeError if forward else ValueError)(
                f"differentiating with respect to argnums={argnums} requires at least "
                f"{k + 1 if k >= 0 else -k} positional arguments to be passed by the caller, but {what} of "
                f"{name_of(fun)} got only {n} positional arguments."
                + f" Positional argument indices must have value greater than or equal to -len(args) and "
                f"less than len(args), but got value {k} for len(args) == {n}." * (not forward))
    places = [k % n for k in numbers]
    chosen = sorted({*places})
    dynamic, named, statics = split_statics(args, kwargs, [i for i in range(n) if i not in chosen], kwargs)
    leaves, structure, taken = adapters.flatten_by_value((dynamic, named))
    flat = FlatFunction(fun, leaves, structure, what, statics, has_aux)
    if taken:
        raise TypeError(f"{flat} cannot differentiate with respect to an argument that is a Ref: leave it "
                        "out of argnums, or pass ref[...]")
    if single:
        return flat, 0
    return flat, None if places == chosen else tuple([chosen.index(k) for k in places])


def picked(values: Any, order: Any) -> Any:
    """Values for the chosen arguments as the user requested them: one, all, or all in another order."""
    if order is None:
        return values
    return values[0] if order == 0 else tuple([values[i] for i in order])


def check_input_dtype(flat: FlatFunction, avals: Sequence[ShapedArray], holomorphic: bool = False,
                       allow_int: bool = False) -> None:
    of_values = adapters.of_values(flat.in_tree)
    for i, aval in enumerate(avals):
        dtype, name = aval.dtype, flat.what
        if i in of_values:
            continue        # their type says what they have for a tangent
        if holomorphic:
            if not dtypes.is_complex(dtype):
                raise TypeError(f"{name} with holomorphic=True requires inputs with complex dtype, but got "
                                f"{dtype.name} for {flat.path(i)} of {flat.name}.")
        elif name == "jacfwd" and not dtypes.is_float(dtype):
            raise TypeError(f"{name} requires real-valued inputs (input dtype that is a sub-dtype of "
                            f"np.floating), but got {dtype.name} for {flat.path(i)} of {flat.name}. For "
                            "holomorphic differentiation, pass holomorphic=True. For differentiation of "
                            "non-holomorphic functions involving complex inputs or integer inputs, use jvp, "
                            "or convert with x.astype(float).")
        elif not dtypes.is_inexact(dtype) and not allow_int:
            raise TypeError(
                f"{name} requires real- or complex-valued inputs (input dtype that is a sub-dtype of "
                f"np.inexact), but got {dtype.name} for {flat.path(i)} of {flat.name}. If you want to use "
                "Boolean- or integer-valued inputs, use vjp or set allow_int to True; a number becomes "
                "floating with x.astype(float) or by writing 1.0 for 1, and argnums chooses other arguments.")


def _check_scalar(flat: FlatFunction, outs: Sequence[Any], holomorphic: bool) -> None:
    """TypeError unless the function to be differentiated gave one real scalar."""
    if flat.out_tree != _LEAF:
        said = (f"Output was of structure {flat.out_tree}; return the loss alone, or (loss, others) with "
                "has_aux=True")
        if flat.out_tree == pytree.tree_structure(None):
            said = f"Output was None. (Does {flat.name} lack a `return`?)"
        raise TypeError(f"{flat}: Gradient only defined for scalar-output functions. {said}")
    aval = aval_of(outs[0])
    if aval.shape:
        raise TypeError(f"{flat}: Gradient only defined for scalar-output functions. Output had shape: "
                        f"{aval.shape}. Reduce it with .sum() or .mean(), or use jacrev, jacfwd or vjp.")
    check_output_dtype(flat, [aval], holomorphic)


def check_output_dtype(flat: FlatFunction, avals: Iterable[ShapedArray], holomorphic: bool) -> None:
    for aval in avals:
        if holomorphic and not dtypes.is_complex(aval.dtype):
            raise TypeError(f"{flat.what} with holomorphic=True requires outputs with complex dtype, but "
                            f"{flat.name} gave {aval.dtype.name}.")
        if not holomorphic and not dtypes.is_float(aval.dtype):
            hint = (" For holomorphic differentiation, pass holomorphic=True; for differentiation of "
                    "non-holomorphic functions involving complex outputs, use vjp directly."
                    if dtypes.is_complex(aval.dtype)
                    else " What is rounded or counted has no slope: return the value that it is made of, or "
                    "one converted with .astype(float).")
            raise TypeError(f"{flat.what} requires real-valued outputs (output dtype that is a sub-dtype of "
                            f"np.floating), but {flat.name} gave {aval.dtype.name}.{hint}")


@boundaries(called="vjp")
@dataclasses.dataclass(eq=False)
class VJP:
    """The function that vjp returns: cotangents of the outputs to cotangents of the inputs.  A pytree."""

    program: Jaxpr
    consts: list[Any]
    primal_avals: Sequence[ShapedArray]
    out_avals: Sequence[ShapedArray]
    out_nonzero: Sequence[bool]
    in_tree: pytree.PyTreeDef
    out_tree: pytree.PyTreeDef
    marks: Sequence[bool]
    order: Any = None
    # around the function that was linearized
    scopes: str = dataclasses.field(default_factory=lambda: state.name_stack)

    def flat(self, cts: Sequence[Any], leaves: Sequence[Any] = ()) -> list[Any]:
        """Cotangents as flat lists; those of integer inputs are float0 zeros.

        `leaves` are what the user gave for `cts`, of which one that comes back as it is is given back.
        """
        linear = [UndefinedPrimal(v.aval) for v in self.program.invars]
        live = [ct if a.explicit is None or not a.explicit.spec.partial else _divided(ct, a)
                for ct, a, nz in zip(cts, self.out_avals, self.out_nonzero) if nz]
        moved = iter(backward_pass(self.program, self.consts, linear, live, self.scopes))
        found = [next(moved) if mark else None for mark in self.marks]
        cts = _as_given(found, cts, leaves, [*map(_cotangent, found, self.primal_avals)])
        if any([type(ct) is ArrayImpl and len(ct.sharding._devices) > 1 for ct in cts]):
            return _over_explicit_axes(cts, self.consts)
        return cts

    def structured(self, cotangents: Sequence[Any]) -> Any:
        """Cotangents of the leaves of the inputs in their structure."""
        return adapters.unflatten_tangents(self.in_tree, cotangents, self.primal_avals)

    def __call__(self, ct: Any, *more: Any) -> Any:
        if more:
            raise TypeError(f"the function was called with {1 + len(more)} arguments, but functions returned "
                            "by vjp must be called with a single argument corresponding to the single value "
                            "returned by the function being differentiated: for a tuple with a tuple, as in "
                            "pullback((ct1, ct2))")
        leaves = self._checked(ct)
        return picked(self.structured(self.flat(_as_array_operands(leaves), leaves)), self.order)

    def with_refs(self, *wishes: Any) -> Callable[[Any], Any]:
        """The same function, with cotangents added to Refs.

        Args:
            wishes: for each argument a pytree of its structure: a Ref, to which the cotangent is added, in
                whose place ad.GradRef() is returned; ad.GradValue() for the cotangent itself; or
                ad.DontWant(), for ad.DidntWant().
        Returns:
            The function, from cotangents of the outputs.
        Raises:
            TypeError: for another structure than that of the arguments.
            ShapeError: by the function, for a Ref of another type than the cotangent.

        >>> total = jax.new_ref(jnp.zeros(2))
        >>> for x in jnp.eye(2):
        ...     _, pullback = jax.vjp(lambda w, x: w @ x, jnp.ones(2), x)
        ...     found = pullback.with_refs(total, jax.ad.DontWant())(2.)
        >>> found, total[...]
        ((GradRef(), DidntWant()), Array([2., 2.], dtype=float32))
        """
        leaves, tree = pytree.tree_flatten(wishes)
        if tree != self.in_tree:
            raise TypeError("with_refs takes a Ref, ad.GradValue() or ad.DontWant() for each array among the "
                            "arguments:\n" + pytree.structure_mismatch(
                                "with_refs", self.in_tree, tree, ("the arguments", "what was given")))
        paths = pytree.leaf_paths(tree)

        @filtered
        def adding(ct: Any) -> Any:
            found = map(delivered, self.flat(_as_array_operands(self._checked(ct))), leaves, paths)
            return picked(self.in_tree.unflatten(list(found)), self.order)
        return adding

    @property
    def jaxpr(self) -> Jaxpr:
        """The linear program that is transposed: of the tangents of the inputs."""
        return self.program

    def _checked(self, ct: Any) -> list[Any]:
        """The leaves of the cotangent of the output."""
        leaves, ct_tree = adapters.flatten_tangents(self.out_tree, ct, self.out_avals, _is_float0_leaf)
        if ct_tree != self.out_tree:
            differences = pytree.structure_differences(
                "* out{path} was {a} in the original output, but {b} here, so {why}.", self.out_tree,
                ct_tree, ("the output", "the cotangent"))
            raise ValueError("unexpected tree structure.\nThe argument to a VJP function returned by "
                             "`jax.vjp` must match the pytree\nstructure of the differentiated function.\n"
                             + pytree.report("But the tree structures differ", differences))
        for i, (x, a) in enumerate(zip(leaves, self.out_avals)):
            got, want = aval_of(x), a.tangent()
            if (got.shape != want.shape or got.dtype != want.dtype and want.dtype != dtypes.float0
                    or got.memory is not want.memory or not got.goes_as(want)):
                path = pytree.leaf_paths(self.out_tree)[i]
                raise ValueError("unexpected JAX type (e.g. shape/dtype) for argument to VJP function: got "
                                 f"{got.str_short()}, but expected {want.str_short()} because the "
                                 f"corresponding output{path} of the differentiated function had JAX type "
                                 f"{a.str_short()}")
        return leaves


pytree.register_pytree_node(
    VJP, lambda p: (p.consts, (p.program, p.primal_avals, p.out_avals, p.out_nonzero, p.in_tree,
                                     p.out_tree, p.marks, p.order)),
    lambda aux, consts: VJP(aux[0], consts, *aux[1:]))


def _is_float0_leaf(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype == dtypes.float0


def _cotangent(ct: Any, aval: ShapedArray) -> Any:
    """A cotangent with the type of its primal: float0 for integers, weak for a weak real one.

    That of a weak complex one is as weak as it was computed.
    """
    if not dtypes.is_inexact(aval.dtype):
        return np.zeros(aval.shape, dtypes.float0)
    computed = ct is not None
    (ct,) = as_operands([ct if computed else zeros_of(aval)])
    ct = _divided(ct, aval)
    as_it_is = computed and aval.weak_type and dtypes.is_complex(aval.dtype)
    return ct if as_it_is else giving_way(ct, aval.weak_type)


def _divided(ct: Any, aval: ShapedArray) -> Any:
    """A cotangent split over Explicit mesh axes as its primal is; unreduced where that is reduced."""
    aval, found = aval.cotangent(), aval_of(ct)
    mesh = aval.mesh or state.meshes and aval.sharding.mesh
    alike = found.explicit == aval.explicit     # Auto axes say nothing of those that vmap maps
    if alike and (not mesh or not mesh.explicit_axes or found.mesh == mesh):
        return ct
    from ..primitives.parallel.sharding import as_type, reshard  # few programs are over Explicit axes
    return reshard(ct, sharding=aval.sharding) if alike else as_type(ct, aval)


def _over_explicit_axes(cts: list[Any], consts: Sequence[Any]) -> list[Any]:
    """Arrays, of which those over Auto axes that are Explicit ones of constants are whole over these."""
    mesh = next((a.explicit.mesh for a in map(aval_of, consts) if a.explicit is not None), None)
    if mesh is None:
        return cts

    def over(ct: Any) -> Any:
        sharding: Any = getattr(ct, "sharding", None)
        found = getattr(sharding, "mesh", None)
        if type(ct) is not ArrayImpl or found is None or found.axis_types == mesh.axis_types or (
                found.shape_tuple != mesh.shape_tuple):
            return ct
        whole = sharding.spec.update(partitions=(None,) * ct.ndim)
        explicit = found.update(axis_types=mesh.axis_types)
        return transfer.move(ct, sharding.update(mesh=explicit, spec=whole))
    return [*map(over, cts)]


def giving_way(x: Any, weak: bool) -> Any:
    """An array with or without a weak type."""
    aval = aval_of(x)
    if aval.weak_type == weak:
        return x
    if type(x) is ArrayImpl:
        return ArrayImpl(aval.update(weak_type=weak), x._buf, x._committed)
    return convert(x, aval.dtype, weak)


def linearize_call(flat: FlatFunction, avals: Sequence[ShapedArray],
               order: Any = None) -> tuple[list[Any], Any, VJP]:
    """(outs, aux, pullback) of a FlatFunction at its leaves, which are of these types."""
    marks = adapters.perturbed(flat.in_tree, avals)
    primals = as_operands(flat.leaves)
    outs, program, out_nonzero = linearize_flat(flat, primals, marks, scope="jvp()")
    n = flat.out_tree.num_leaves
    if flat.has_aux:        # tangents of aux are not wanted
        program = program.replace(outvars=program.outvars[:sum(out_nonzero[:n])])
    outs, aux = flat.split(_as_given(outs, primals, flat.leaves))
    in_tree = adapters.without_held(flat.arg_tree)
    return outs, aux, VJP(program, list(program.consts), avals, [aval_of(x) for x in outs],
                                out_nonzero[:n], in_tree, flat.out_tree, marks, order)


def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False,
        reduce_axes: Any = ()) -> tuple[Any, ...]:
    """The value of `fun` at `primals` and the function from cotangents of its output to those of its inputs.

    Args:
        has_aux: `fun` returns (value, aux); only value is differentiated.
        reduce_axes: must be empty.
    Returns:
        (out, pullback), or (out, pullback, aux) with `has_aux`.  Cotangents of integer and boolean inputs
        have dtype float0.
    Raises:
        ValueError: by the pullback, for cotangents of another structure, shape or dtype than the output.

    >>> y, pullback = jax.vjp(lambda x, w: jnp.sin(x) @ w, jnp.zeros(2), jnp.array([3., 4.]))
    >>> y, pullback(1.)
    (Array(0., dtype=float32), (Array([3., 4.], dtype=float32), Array([0., 0.], dtype=float32)))
    """
    _no_reduce_axes("vjp", reduce_axes)
    check_callable(fun)
    return _vjp(FlatFunction(fun, *flatten((primals, {})), "vjp", has_aux=has_aux))


def _vjp(flat: FlatFunction, order: Any = None) -> tuple[Any, ...]:
    outs, aux, pullback = linearize_call(flat, flat.avals(), order)
    out = flat.out_tree.unflatten(outs)
    return (out, pullback, aux) if flat.has_aux else (out, pullback)


def value_and_grad(fun: Callable[_P, _R], argnums: Any = 0, has_aux: bool = False, holomorphic: bool = False,
                   allow_int: bool = False, reduce_axes: Any = ()) -> Callable[_P, tuple[_R, Any]]:
    """A function that gives the value of scalar-valued `fun` and its gradient.

    Keyword arguments are passed on and not differentiated.  The gradient has the structure, shapes and dtypes
    of the argument.

    Args:
        argnums: the positional argument, or the arguments, to differentiate with respect to.
        has_aux: `fun` returns (value, aux); the result is then ((value, aux), gradient).
        holomorphic: `fun` is complex-differentiable; inputs and output are complex.
        allow_int: integer inputs are allowed, with gradients of dtype float0.
        reduce_axes: must be empty.
    Raises:
        TypeError: where the output is not a real scalar or an input is not floating.

    >>> def loss(params, x, y):
    ...     return jnp.mean((params["w"] * x + params["b"] - y) ** 2)
    >>> x, y = jnp.array([0., 1., 2.]), jnp.array([2., 3., 4.])
    >>> value, slope = jax.value_and_grad(loss)({"w": 1., "b": 0.}, x, y)
    >>> value, slope["b"]
    (Array(4., dtype=float32), Array(-4., dtype=float32, weak_type=True))
    """
    _no_reduce_axes("grad", reduce_axes)
    argnums = checked_argnums(fun, argnums)

    @filtered
    @wraps(fun, f"Value and gradient of {name_of(fun)} with respect to positional argument(s) {argnums}.")
    def value_and_grad_of(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        flat, order = chosen_arguments(fun, args, kwargs, argnums, "grad", has_aux)
        avals = flat.avals()
        check_input_dtype(flat, avals, holomorphic, allow_int)
        outs, aux, pullback = linearize_call(flat, avals)
        _check_scalar(flat, outs, holomorphic)
        aval = aval_of(outs[0])
        one = scalar(1, aval.dtype)
        if aval.weak_type and aval_of(one.item()).dtype == aval.dtype:
            one = one.item()
        cotangents = pullback.structured(pullback.flat([in_memory_of(aval, one)]))
        gradient = picked(cotangents, order)
        return ((outs[0], aux), gradient) if has_aux else (outs[0], gradient)
    return value_and_grad_of


def grad(fun: Callable[_P, Any], argnums: Any = 0, has_aux: bool = False, holomorphic: bool = False,
         allow_int: bool = False, reduce_axes: Any = ()) -> Callable[_P, Any]:
    """A function that gives the gradient of scalar-valued `fun`; with `has_aux`, (gradient, aux).

    See `value_and_grad` for the arguments.

    Applied again, it gives higher derivatives; `vmap` of it, a gradient for each of a batch.

    >>> jax.grad(lambda x: x**3)(2.), jax.grad(jax.grad(lambda x: x**3))(2.)
    (Array(12., dtype=float32, weak_type=True), Array(12., dtype=float32, weak_type=True))
    >>> jax.grad(lambda x, y: x * y**2, argnums=(0, 1))(3., 2.)
    (Array(4., dtype=float32, weak_type=True), Array(12., dtype=float32, weak_type=True))
    >>> jax.vmap(jax.grad(jnp.tanh))(jnp.array([0., 100.]))
    Array([1., 0.], dtype=float32)
    >>> jax.grad(jnp.sin)(jnp.zeros(3))
    Traceback (most recent call last):
        ...
    TypeError: grad of sin: Gradient only defined for scalar-output functions. Output had shape: (3,). Reduce
    ...
    """
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)

    @filtered
    @wraps(fun, f"Gradient of {name_of(fun)} with respect to positional argument(s) {argnums}.")
    def grad_of(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient
    return grad_of


def jvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any],
        has_aux: bool = False) -> tuple[Any, ...]:
    """The value of `fun` at `primals` and its derivative along `tangents`; with `has_aux`, aux as third.

    Args:
        primals: a tuple of its positional arguments.
        tangents: a tuple of the same structure, shapes and dtypes; for integers of dtype float0.
        has_aux: `fun` returns (value, aux); only value is differentiated.
    Raises:
        TypeError: where primals and tangents differ in structure or dtype.
        ValueError: where they differ in shape.

    >>> y, slope = jax.jvp(lambda x, y: x * jnp.exp(y), (2., 0.), (1., 10.))
    >>> y, slope
    (Array(2., dtype=float32, weak_type=True), Array(21., dtype=float32, weak_type=True))
    """
    check_callable(fun)
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError("primal and tangent arguments to jax.jvp must be tuples or lists; found "
                        f"{type(primals).__name__} and {type(tangents).__name__}.")
    if isinstance(primals, tuple) is not isinstance(tangents, tuple):
        raise TypeError("primal and tangent arguments to jax.jvp must have the same tree structure: one is a "
                        f"{type(primals).__name__}, the other a {type(tangents).__name__}")
    flat = FlatFunction(fun, *flatten((tuple(primals), {})), "jvp", has_aux=has_aux)
    avals = flat.avals()
    tangent_leaves, tangent_tree = adapters.flatten_tangents(flat.in_tree, (tuple(tangents), {}), avals,
                                                             _is_float0_leaf)
    if flat.in_tree != tangent_tree:
        raise TypeError("primal and tangent arguments to jax.jvp must have the same tree structure; primals "
                        f"have tree structure {flat.arg_tree} whereas tangents have tree structure "
                        f"{tangent_tree.children()[0]}.\n" +
                        pytree.structure_mismatch("jvp", tuple(primals), tuple(tangents),
                                                  ("primals", "tangents")))
    marks = adapters.perturbed(flat.in_tree, avals)
    checked = [_checked_tangent(flat, i, a, t) for i, (a, t) in enumerate(zip(avals, tangent_leaves))]
    checked = [t if mark else None for t, mark in zip(checked, marks)]
    operands = as_operands(flat.leaves)
    outs, out_tangents = jvp_flat(flat, operands, checked, "jvp()")
    found = _as_given(outs, operands, flat.leaves)
    unchanged = [x is not o for x, o in zip(found, outs)]
    outs, aux = flat.split(found)
    types = [aval_of(x).tangent() for x in outs]
    filled = [giving_way(t, a.weak_type) if a.dtype != dtypes.float0 else t for t, a in zip(
        as_operands([instantiate(t, a) for t, a in zip(out_tangents, types)]), types)]
    given = _as_given(out_tangents, checked, tangent_leaves, filled)
    filled = [t if same else f for t, f, same in zip(given, filled, unchanged)]
    moved = adapters.unflatten_tangents(flat.out_tree, filled, list(map(aval_of, outs)))
    results = flat.out_tree.unflatten(outs), moved
    return (*results, aux) if has_aux else results


def _checked_tangent(flat: FlatFunction, i: int, aval: ShapedArray, t: Any) -> Any:
    want, got = aval.tangent(), aval_of(t)
    if got.shape != want.shape:
        raise ValueError(f"jvp called with different primal and tangent shapes;Got primal shape {want.shape} "
                         f"and tangent shape as {got.shape} for {flat.path(i)} of {flat.name}")
    if got.dtype != want.dtype:
        raise TypeError("primal and tangent arguments to jax.jvp do not match; dtypes must be equal, or in "
                        "case of int/bool primal dtype the tangent dtype must be float0 (np.zeros(shape, "
                        f"dtypes.float0)).Got primal dtype {aval.dtype} and so expected tangent dtype "
                        f"{want.dtype}, but got tangent dtype {got.dtype} instead, for {flat.path(i)} of "
                        f"{flat.name}")
    if want.dtype == dtypes.float0:
        return None
    return _as_array_operands([t])[0]


def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of `fun` at `primals` and its derivative there as a function of tangents.

    The function is evaluated once; the derivative is a recorded linear program.

    >>> y, along = jax.linearize(lambda x: x**2, jnp.array([1., 3.]))
    >>> y, along(jnp.array([1., 0.])), along(jnp.array([0., 1.]))
    (Array([1., 9.], dtype=float32), Array([2., 0.], dtype=float32), Array([0., 6.], dtype=float32))
    """
    flat = FlatFunction(fun, *flatten((primals, {})), "linearize", has_aux=has_aux)
    outs, aux, pieces = linearize_call(flat, flat.avals())
    out, derivative = pieces.out_tree.unflatten(outs), pytree.Partial(_Along(pieces), pieces.consts)
    return (out, derivative, aux) if has_aux else (out, derivative)


class _Along:
    """The function of (what was kept, *tangents) behind the result of linearize."""

    def __init__(self, pieces: VJP) -> None:
        self.pieces = dataclasses.replace(pieces, consts=[])

    @filtered
    def __call__(self, consts: list[Any], *tangents: Any) -> Any:
        pieces = self.pieces
        leaves, t_tree = adapters.flatten_tangents(pieces.in_tree, tuple(tangents), pieces.primal_avals,
                                                   _is_float0_leaf)
        if t_tree != pieces.in_tree:
            raise TypeError(f"expected {pieces.in_tree}, got {t_tree}: tangents of the linearized function "
                            "must have the structure of its inputs:\n" +
                            pytree.structure_mismatch("tangents", pieces.in_tree, t_tree,
                                                      ("inputs", "tangents")))
        for i, (x, a) in enumerate(zip(leaves, pieces.primal_avals)):
            if (aval_of(x).shape, aval_of(x).dtype) != (a.shape, a.tangent().dtype):
                raise ValueError("linearized function called on tangent values inconsistent with the "
                                 f"original primal values:\nGot tangent aval {aval_of(x).str_short()} "
                                 f"for primal aval {a.str_short()} but expected {a.tangent().str_short()} at "
                                 f"tangents{pytree.leaf_paths(pieces.in_tree)[i]}")
        given = [x for x, mark in zip(leaves, pieces.marks) if mark]
        live = _as_array_operands(given)
        moved = iter(eval_jaxpr(pieces.program, consts, *live))
        results = [next(moved) if nz else None for nz in pieces.out_nonzero]
        filled = as_operands([*map(instantiate, results, pieces.out_avals)])
        filled = [giving_way(x, a.weak_type) if r is None and dtypes.is_inexact(a.dtype) else x
                  for r, x, a in zip(results, filled, pieces.out_avals)]
        filled = _as_given(results, live, given, filled)
        return adapters.unflatten_tangents(pieces.out_tree, filled, pieces.out_avals)


def linear_transpose(fun: Callable[..., Any], *primals: Any, reduce_axes: Any = ()) -> Callable[..., Any]:
    """The transpose of a linear function; `primals` give shapes and dtypes (arrays or ShapeDtypeStructs).

    Returns:
        A function from cotangents of the output to a tuple of cotangents of the inputs.
    Raises:
        TypeError: for inputs that are not numbers, and cotangents of another type than the output.
        NotImplementedError: for a function that is not linear, when it is transposed.

    >>> A = jnp.array([[1., 2.], [3., 4.], [5., 6.]])
    >>> transposed = jax.linear_transpose(lambda x: A @ x, jax.ShapeDtypeStruct((2,), "float32"))
    >>> transposed(jnp.array([1., 0., 0.]))
    (Array([1., 2.], dtype=float32),)
    """
    _no_reduce_axes("linear_transpose", reduce_axes)
    flat = FlatFunction(fun, *flatten((primals, {})), "linear_transpose")
    avals = flat.avals(abstract)
    for i, a in enumerate(avals):
        if not dtypes.is_inexact(a.dtype) and not dtypes.is_integer(a.dtype):
            raise TypeError(f"linear_transpose only supports numeric inputs, got {a.str_short()} for "
                            f"{flat.path(i)} of {flat.name}")
    program = trace_to_jaxpr(flat, avals, flat.name)
    kinds = [{dtypes.is_inexact(a.dtype) for a in side} for side in (avals, program.out_avals)]
    if len(kinds[0] | kinds[1]) > 1:
        raise TypeError("linear_transpose only supports [float or complex] -> [float or complex], and "
                        f"integer -> integer functions, but got {[a.dtype for a in avals]} -> "
                        f"{[a.dtype for a in program.out_avals]}.")
    in_tree, out_tree = flat.arg_tree, flat.out_tree      # `flat` itself would keep the primals alive

    @filtered
    def transposed(ct: Any) -> Any:
        cts, ct_tree = pytree.tree_flatten(ct)
        if ct_tree != out_tree:
            raise TypeError(f"cotangent tree does not match function output, expected {out_tree} but got "
                            f"{ct_tree}")
        for i, (x, a) in enumerate(zip(cts, program.out_avals)):
            got = aval_of(x)
            if (got.shape, got.dtype) != (a.shape, a.dtype) and not (
                    got.weak_type and got.shape == a.shape and got.dtype.kind == a.dtype.kind):
                raise TypeError(f"cotangent type does not match function output, expected {a.str_short()} "
                                f"but got {got.str_short()} at cotangent{pytree.leaf_paths(out_tree)[i]}")
        linear, operands = [UndefinedPrimal(a) for a in avals], _as_array_operands(cts)
        try:
            results = backward_pass(program, program.consts, linear, operands, state.name_stack)
        except NotImplementedError as error:
            raise NotImplementedError(f"linear_transpose of {program.name}: {error}; a function can be "
                                      "transposed only if it is linear in its arguments") from None
        found = as_operands([zeros_of(a) if r is None else r for r, a in zip(results, avals)])
        found = [giving_way(_divided(r, a), a.weak_type) for r, a in zip(found, avals)]
        return in_tree.unflatten(_as_given(results, operands, cts, found))
    return pytree.Partial(transposed)


def fwd_and_bwd(fun: Callable[..., Any], argnums: Any, has_aux: bool = False,
                jitted: bool = True) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """(forward, backward): forward gives (out, residuals), backward maps (residuals, cotangent) to gradients.

    `argnums` as for `grad`; with `has_aux` forward gives (out, residuals, aux).  Both are jitted unless
    `jitted` is False.

    >>> forward, backward = jax.fwd_and_bwd(lambda x, w: jnp.sum(x * w), argnums=(0, 1))
    >>> out, residuals = forward(jnp.array([1., 2.]), jnp.array([3., 4.]))
    >>> out, backward(residuals, 1.)
    (Array(11., dtype=float32), (Array([3., 4.], dtype=float32), Array([1., 2.], dtype=float32)))
    """
    argnums = checked_argnums(fun, argnums)

    @filtered
    def forward(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        return _vjp(*chosen_arguments(fun, args, kwargs, argnums, "fwd_and_bwd", has_aux))

    @filtered
    def backward(pullback: VJP, ct: Any) -> Any:
        return pullback(ct)
    return (jit(forward), jit(backward)) if jitted else (forward, backward)

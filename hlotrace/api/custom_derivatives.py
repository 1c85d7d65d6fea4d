"""custom_jvp and custom_vjp: functions whose derivatives the user gives; closure_convert."""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from inspect import Parameter
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.array import Array
from ..core.avals import ShapedArray, aval_of, is_arraylike
from ..core.config import config, state
from ..core.errors import ShapeError, UnexpectedTracerError
from ..core.jaxpr import Var, close, eval_jaxpr
from ..core.jaxpr_trace import trace_to_jaxpr
from ..core.pytrees import pytree
from ..core.surface.boundary import boundaries, filtered
from ..core.trace import Tracer
from ..primitives.arrays.elementwise import convert
from ..primitives.arrays.shape import instantiate, zeros_of
from ..primitives.arrays.slicing import copy_p
from ..primitives.parallel.collectives import match
from ..primitives.programs.calls import custom_jvp_call_p, custom_vjp_call_p, remat_opt_p
from ..primitives.programs.linear_call import linear_call_p
from ..runtime.array_impl import own
from . import adapters
from .adapters import flatten
from .flat import FlatFunction, abstract
from .signatures import name_of, numbers_and_names, signature_of, split_statics, take_names


class SymbolicZero:
    """A tangent or cotangent that is known to be zero, of type `aval`; see `symbolic_zeros` of the rules.

    >>> @jax.custom_jvp
    ... def f(x, y): return x * y
    >>> def rule(primals, tangents):
    ...     print([type(t) is jax.custom_derivatives.SymbolicZero for t in tangents])
    ...     return f(*primals), tangents[0] * primals[1]
    >>> _ = f.defjvp(rule, symbolic_zeros=True)
    >>> jax.jvp(lambda x: f(x, 3.), (2.,), (1.,))[1]
    [False, True]
    Array(3., dtype=float32, weak_type=True)
    """

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def __getattr__(self, name: str) -> Any:
        return getattr(self.aval, name)

    def __repr__(self) -> str:
        return "SymbolicZero"

    @staticmethod
    def from_primal_value(value: Any) -> SymbolicZero:
        """The zero tangent of a value."""
        return SymbolicZero(aval_of(value).tangent())


class CustomVJPPrimal:
    """What a forward rule with `symbolic_zeros` gets for a leaf: its `value`, and whether it is `perturbed`.

    A leaf is perturbed where the function is differentiated with respect to it.

    >>> f = jax.custom_vjp(lambda x, y: x * y)
    >>> def forward(x, y):
    ...     print(x.perturbed, y.perturbed)
    ...     return x.value * y.value, y.value
    >>> f.defvjp(forward, lambda y, g: (g * y, None), symbolic_zeros=True)
    >>> jax.grad(f)(2., 3.)
    True False
    Array(3., dtype=float32, weak_type=True)
    """

    def __init__(self, value: Any, perturbed: bool) -> None:
        self.value, self.perturbed = value, perturbed

    def __repr__(self) -> str:
        return f"CustomVJPPrimal(value={self.value!r}, perturbed={self.perturbed})"


def custom_vjp_primal_tree_values(primals: Any) -> Any:
    """The pytree with each CustomVJPPrimal replaced by its value.

    With `symbolic_zeros`, the forward rule of a `custom_vjp` is given CustomVJPPrimals, which have `value`
    and `perturbed`.

    >>> from hlotrace.custom_derivatives import custom_vjp_primal_tree_values
    >>> double = jax.custom_vjp(lambda x: 2 * x)
    >>> forward = lambda x: (2 * custom_vjp_primal_tree_values(x), None)
    >>> double.defvjp(forward, lambda _, g: (20 * g,), symbolic_zeros=True)
    >>> jax.grad(double)(3.)
    Array(20., dtype=float32, weak_type=True)
    """
    return pytree.tree_map(lambda x: x.value, primals)


def _zeros(values: Iterable[Any], avals: Iterable[Any], symbolic: bool) -> list[Any]:
    """Tangents or cotangents of values of these types, as the user's rule gets them; None is zero."""
    return [SymbolicZero(a.tangent()) if t is None and symbolic else _array(instantiate(t, a))
            for t, a in zip(values, avals)]


def _instantiated(t: Any) -> Any:
    return _array(zeros_of(t.aval)) if type(t) is SymbolicZero else t


def _array(x: Any) -> Any:
    """A constant that a transformation made, which is a NumPy array, as an Array, which users expect."""
    if isinstance(x, Array) or aval_of(x).dtype == dtypes.float0:
        return x
    return copy_p.bind(x) if state.trace.staging else own(x)


class Positional:
    """A function with rules, which get all arguments by position."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun
        self.signature = signature_of(fun)
        take_names(self, fun)

    def __getattr__(self, name: str) -> Any:
        if name in ("defjvp", "defjvps", "defvjp", "def_vmap") and "fun" in vars(self):
            return getattr(self.fun, name)      # a function with rules of two kinds
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def __get__(self, instance: object, owner: type | None = None) -> Callable[..., Any]:
        called: Any = self      # the classes below have __call__
        return called if instance is None else functools.partial(called, instance)

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by position, defaults filled in, where the signature allows it."""
        if self.signature is None:
            if kwargs:
                raise TypeError(f"{name_of(self.fun)}: keyword arguments need a function whose signature "
                                "Python can tell")
            return args
        try:
            bound = self.signature.bind(*args, **kwargs)
            only = [name for name in bound.arguments if self.signature.parameters[name].kind in (
                Parameter.KEYWORD_ONLY, Parameter.VAR_KEYWORD)]
            if only:
                raise TypeError(f"the keyword-only arguments {only} have no positions: make them positional")
        except TypeError as error:
            raise TypeError(f"The input arguments to the {type(self).__name__}-decorated function "
                            f"{name_of(self.fun)} could not be resolved to positional-only arguments. "
                            f"Binding failed with the error:\n{error}") from None
        bound.apply_defaults()
        return bound.args


class _Custom(Positional):
    """What the two kinds of derivatives share."""
    symbolic_zeros = False

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: Any = (),
                 nondiff_argnames: Any = ()) -> None:
        super().__init__(fun)
        self.nondiff_argnums, _ = numbers_and_names(fun, None if nondiff_argnums == () else nondiff_argnums,
                                                    None if nondiff_argnames == () else nondiff_argnames,
                                                    "nondiff")

    def _flat(self, args: tuple[Any, ...],
              nondiff: Sequence[int]) -> tuple[FlatFunction, list[Any], list[Any]]:
        """The call as (a FlatFunction, its leaves, the values of the arguments `nondiff`)."""
        args, _, statics = split_statics(args, {}, nondiff)
        flat = FlatFunction(self.fun, *flatten((args, {})), type(self).__name__, statics)
        # programs hold the rules and outlive this call, so the rules hold the types, not the values
        leaves, flat.leaves = flat.leaves, flat.avals()
        return flat, leaves, [value for _, value in statics]


@boundaries
class custom_jvp(_Custom):
    """A function whose derivative is given by `defjvp`.

        @custom_jvp
        def f(x, y): ...
        @f.defjvp
        def f_jvp(primals, tangents): ... return f(*primals), tangent_out

    `nondiff_argnums` and `nondiff_argnames` are positions and names of arguments that are not differentiated;
    the rule gets them first.

    >>> @jax.custom_jvp
    ... def log1pexp(x):
    ...     return jnp.log1p(jnp.exp(x))
    >>> @log1pexp.defjvp
    ... def rule(primals, tangents):
    ...     (x,), (x_dot,) = primals, tangents
    ...     return log1pexp(x), jax.nn.sigmoid(x) * x_dot      # exact where exp(x) overflows
    >>> jax.grad(log1pexp)(100.), jax.vmap(jax.grad(log1pexp))(jnp.array([-1., 0.]))
    (Array(1., dtype=float32, weak_type=True), Array([0.26894143, 0.5       ], dtype=float32))
    """
    rule: Any = None
    jvp = property(lambda self: self.rule)      # under JAX's name

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Set the rule: (*nondiff, primals, tangents) -> (out, tangent_out).

        Args:
            symbolic_zeros: tangents that are known to be zero are given to it as `SymbolicZero`s.
        Returns:
            `jvp`.
        """
        self.rule, self.symbolic_zeros = jvp, symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Any) -> None:
        """Set one rule for each argument: (tangent, out, *primals) -> tangent_out; None for no dependence."""
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``.")

        def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
            if len(jvps) != len(tangents):
                raise ValueError(f"defjvps of {name_of(self.fun)} has {len(jvps)} rules, one for each "
                                 f"argument, but there are {len(tangents)} arguments")
            out = self(*primals)
            # a rule that has no derivative itself is not in the way of those with respect to other arguments
            terms = [f(pytree.tree_map(_instantiated, t), out, *primals) for f, t in zip(jvps, tangents)
                     if f and not all(type(x) is SymbolicZero for x in pytree.tree_leaves(t))]
            if not terms:
                return out, pytree.tree_map(lambda x: zeros_of(aval_of(x).tangent()), out)
            total = terms[0]
            for term in terms[1:]:
                total = pytree.tree_map(lambda a, b: a + b, total, term)
            return out, total
        self.defjvp(rule, symbolic_zeros=True)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = name_of(self.fun)
        if self.rule is None:
            raise AttributeError(f"No JVP defined for custom_jvp function {name} using defjvp: "
                                 f"decorate its rule with @{name}.defjvp")
        args = self._positional(args, kwargs)
        nondiff = [n for n in self.nondiff_argnums if n < len(args)]
        # a tracer that a rule closed over would outlive its trace: it is an operand whose tangent is dropped
        fixed = [n for n in nondiff if not isinstance(args[n], Tracer)]
        places = [i for i in range(len(args)) if i not in fixed]
        flat, leaves, static = self._flat(args, fixed)

        def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            avals = list(map(aval_of, primals))
            tangents = _zeros(tangents, avals, self.symbolic_zeros)
            values = dict(zip(places, flat.arg_tree.unflatten(primals)))
            dots = dict(zip(places, adapters.unflatten_tangents(flat.arg_tree, tangents, avals)))
            first = {**dict(zip(fixed, static)), **values}
            result = self.rule(*[first[n] for n in nondiff],
                               tuple([x for i, x in values.items() if i not in nondiff]),
                               tuple([t for i, t in dots.items() if i not in nondiff]))
            if not isinstance(result, (tuple, list)) or len(result) != 2:
                raise TypeError(f"Custom JVP rule {name_of(self.rule)} for function {name} must produce a "
                                "pair (list or tuple of length two) representing primal and tangent "
                                f"outputs, but got {result!r:.80}.")
            outs, flat.out_tree = flatten(result[0])
            out_tangents, t_tree = adapters.flatten_tangents(flat.out_tree, result[1],
                                                             list(map(aval_of, outs)))
            if t_tree != flat.out_tree:
                raise TypeError(f"Custom JVP rule {name_of(self.rule)} for function {name} must produce "
                                "primal and tangent outputs with equal container (pytree) structures, but "
                                f"got {flat.out_tree} and {t_tree} respectively.\n" +
                                pytree.structure_mismatch(
                                    "outputs", flat.out_tree, t_tree, ("primal out", "tangent out")))
            for i, (o, t) in enumerate(zip(outs, out_tangents)):
                want, got = aval_of(o).tangent(), t.aval if type(t) is SymbolicZero else aval_of(t)
                if (want.shape, want.dtype) != (got.shape, got.dtype):
                    raise TypeError("Custom JVP rule must produce primal and tangent outputs with "
                                    f"corresponding shapes and dtypes. Expected {want.str_short()} (tangent "
                                    f"type of {aval_of(o).str_short()}) but got {got.str_short()}: "
                                    f"{flat.out_path(i)} of rule {name_of(self.rule)} of function {name}.")
            return outs, [cast_tangent(t, aval_of(o)) for o, t in zip(outs, out_tangents)]
        rule.__name__, rule.__dict__["symbolic_zeros"] = name_of(self.rule), self.symbolic_zeros
        outs = custom_jvp_call_p.bind(*leaves, fun=flat, rule=rule, name=name)
        return flat.out_tree.unflatten(outs)


def cast_tangent(t: Any, aval: ShapedArray) -> Any:
    want = aval.tangent().dtype
    if want == dtypes.float0 or t is None or type(t) is SymbolicZero:
        return None
    return t if aval_of(t).dtype == want else convert(t, want)


@boundaries
class custom_vjp(_Custom):
    """A function whose reverse-mode derivative is given by `defvjp`.

        @custom_vjp
        def f(x, y): ...
        def f_fwd(x, y): ... return out, residuals
        def f_bwd(residuals, ct): ... return ct_x, ct_y
        f.defvjp(f_fwd, f_bwd)

    `nondiff_argnums` and `nondiff_argnames` are positions and names of arguments that are not differentiated;
    `f_bwd` gets them first.

    >>> @jax.custom_vjp
    ... def clip_gradient(x):
    ...     return x
    >>> clip_gradient.defvjp(lambda x: (x, None), lambda residuals, g: (jnp.clip(g, -1, 1),))
    >>> jax.grad(lambda x: clip_gradient(x) ** 3)(5.)
    Array(1., dtype=float32, weak_type=True)
    """
    fwd: Any = None
    bwd: Any = None
    optimize_remat = False

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any], symbolic_zeros: bool = False,
               optimize_remat: bool = False) -> None:
        """Set the forward and the backward function.

        Args:
            fwd: gives (out, residuals).
            bwd: (*nondiff, residuals, cotangent) -> a tuple with a cotangent for each argument.
            symbolic_zeros: `fwd` gets a `CustomVJPPrimal` for each leaf, and `bwd` a `SymbolicZero` for each
                cotangent that is known to be zero.
            optimize_remat: the forward pass of `checkpoint` runs the function itself instead of `fwd` where
                it keeps none of its residuals.
        """
        for function in (fwd, bwd):
            if not callable(function):
                raise TypeError(f"defvjp of {name_of(self.fun)}: expected two functions, got {function!r}")
        self.fwd, self.bwd = fwd, bwd
        self.symbolic_zeros, self.optimize_remat = symbolic_zeros, optimize_remat

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = name_of(self.fun)
        if self.fwd is None or self.bwd is None:
            raise AttributeError(f"No VJP defined for custom_vjp function {name} using defvjp: "
                                 f"call {name}.defvjp(fwd, bwd) first")
        args = self._positional(args, kwargs)
        fixed = pytree.tree_leaves([args[n:n + 1] for n in self.nondiff_argnums])
        if any([isinstance(x, Tracer) for x in fixed]):
            raise UnexpectedTracerError(
                f"Found a JAX Tracer object passed as an argument to a custom_vjp function, {name}, in a "
                "position indicated by nondiff_argnums as non-differentiable. Tracers cannot be passed as "
                "non-differentiable arguments to custom_vjp functions; instead, nondiff_argnums should only "
                "be used for arguments that can't be or contain JAX tracers, e.g. function-valued arguments: "
                "let bwd return None for an array that has no derivative.")
        flat, leaves, static = self._flat(args, self.nondiff_argnums)

        def fwd(primals: Sequence[Any],
                perturbed: Sequence[bool]) -> tuple[list[Any], list[Any], Callable[..., Any]]:
            if self.symbolic_zeros:
                primals = list(map(CustomVJPPrimal, primals, perturbed))
            result = self.fwd(*flat.arguments(primals)[0])
            if not isinstance(result, (tuple, list)) or len(result) != 2:
                raise TypeError(f"Custom VJP fwd rule {name_of(self.fwd)} for function {name} must produce a "
                                "pair (list or tuple of length two) where the first element represents the "
                                f"primal output (equal to those of the custom_vjp-decorated function {name}) "
                                "and the second element represents residuals (i.e. values stored from the "
                                "forward pass for use on the backward pass), but instead of a pair the fwd "
                                f"rule {name_of(self.fwd)} produced {result!r:.80}.")
            outs, out_tree = flatten(result[0])
            flat.out_tree, out_avals = out_tree, list(map(aval_of, outs))
            leaves, structure = flatten(result[1])
            # what is not an array stays; a NumPy array may be rewritten before the backward rule gets it
            kept = [None if is_arraylike(r) else r for r in leaves]
            residuals = [r.copy() if isinstance(r, np.ndarray) else r for r in leaves if is_arraylike(r)]

            def bwd(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
                values = iter(residuals)
                full = [next(values) if k is None else k for k in kept]
                cts = _zeros(cts, out_avals, self.symbolic_zeros)
                cts = adapters.unflatten_tangents(out_tree, cts, out_avals)
                return self._cotangents(self.bwd(*static, structure.unflatten(full), cts), flat, name)
            bwd.__name__, bwd.__dict__["symbolic_zeros"] = name_of(self.bwd), self.symbolic_zeros
            return outs, residuals, bwd
        fwd.__name__, fwd.__dict__["bwd"] = name_of(self.fwd), self.bwd
        fwd.__dict__["symbolic_zeros"] = self.symbolic_zeros
        outs = custom_vjp_call_p.bind(*leaves, fun=flat, name=name,
                                      fwd=_optimized(fwd, flat, name) if self.optimize_remat else fwd)
        return flat.out_tree.unflatten(outs)

    def _cotangents(self, result: Any, flat: FlatFunction, name: str) -> list[Any]:
        """The user's cotangents as a flat list; None for zeros."""
        rule, in_tree, avals = name_of(self.bwd), flat.arg_tree, flat.leaves
        n = len(in_tree.children())
        if isinstance(result, list):
            result = tuple(result)
        said = ("Custom VJP bwd rule must produce an output with the same container (pytree) structure as "
                "the args tuple of the primal function, and in particular must produce a tuple of length "
                "equal to the number of arguments to the primal function, but got bwd output structure "
                f"{pytree.tree_structure(result)} for primal input structure {in_tree}")
        if not isinstance(result, tuple) or len(result) != n:
            raise TypeError(f"{said}. Rule {rule} of function {name} gave {result!r:.80}; None is for an "
                            "argument whose cotangent is zero.")
        try:
            found = adapters.flatten_prefix("custom_vjp bwd", in_tree, result)
        except ValueError:
            raise TypeError(pytree.structure_mismatch(
                f"{said}. Of rule {rule} of function {name}", in_tree, result,
                ("arguments", "cotangents"))) from None
        found = [None if type(ct) is SymbolicZero else ct for ct in found]
        checking = not config.jax_disable_bwd_checks
        for i, (ct, aval) in enumerate(zip(found, avals)):
            want = aval.tangent()
            if not checking or ct is None or want.dtype == dtypes.float0:
                continue
            got = aval_of(ct)
            differ = next((what for what, same in (
                ("shapes", got.shape == want.shape), ("memory spaces", got.memory is want.memory),
                ("shardings", got.goes_as(want))) if not same), None)
            if differ:
                raise ValueError("Custom VJP bwd rule must produce an output with the same type as the args "
                                 "tuple of the primal function, but at output"
                                 f"{pytree.leaf_paths(in_tree)[i]} the bwd rule produced an output of type "
                                 f"{got.str_short()} corresponding to an input of type {aval.str_short()}, "
                                 f"so the {differ} do not match: input {flat.path(i)}, rule {rule} of "
                                 f"function {name}")
        return [None if ct is None or a.tangent().dtype == dtypes.float0
                else match(cast_tangent(ct, a), a.vma) for ct, a in zip(found, avals)]


def _optimized(fwd: Callable[..., Any], fun: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A forward rule, on flat lists, as one operation that is `fun` where only its outputs are used."""
    def optimized(primals: Sequence[Any],
                  perturbed: Sequence[bool]) -> tuple[list[Any], list[Any], Callable[..., Any]]:
        num_outs, bwd = 0, fwd      # of the program, when it is traced

        def forward(*xs: Any) -> list[Any]:
            nonlocal num_outs, bwd
            outs, residuals, bwd = fwd(list(xs), perturbed)
            num_outs = len(outs)
            return [*outs, *residuals]
        avals = [aval_of(x) for x in primals]
        pairs = [close(trace_to_jaxpr(f, avals, name)) for f in (forward, lambda *xs: fun(*xs))]
        consts = [c for _, own in pairs for c in own]
        (jaxpr, own), (primal, _) = pairs
        spare = [Var(aval_of(c)) for c in consts]       # each program takes the constants of both
        n = len(own)
        both = [jaxpr.replace(invars=[*jaxpr.invars[:n], *spare[n:], *jaxpr.invars[n:]], arg_names=None),
                primal.replace(invars=[*spare[:n], *primal.invars], arg_names=None)]
        results = remat_opt_p.bind(*consts, *primals, jaxpr=both[0], primal=both[1], num_outs=num_outs)
        return results[:num_outs], results[num_outs:], bwd
    return optimized


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """The zero tangent of each array in a pytree: zeros (float0 for integers), or SymbolicZeros.

    >>> zeros = jax.custom_derivatives.zero_from_primal({"x": jnp.ones(2), "n": jnp.arange(2)})
    >>> zeros["x"], zeros["n"].dtype == jax.dtypes.float0
    (Array([0., 0.], dtype=float32), True)
    """
    return pytree.tree_map(lambda x: SymbolicZero.from_primal_value(x) if symbolic_zeros else _array(
        zeros_of(aval_of(x).tangent())), val)


def linear_call(fun: Callable[..., Any], fun_transpose: Callable[..., Any], residual_args: Any,
                linear_args: Any) -> Any:
    """`fun(residual_args, linear_args)`, linear in `linear_args`, transposed as the user says.

    Args:
        fun: (residuals, linear arguments) -> pytree of arrays.
        fun_transpose: (residuals, cotangents of the output) -> cotangents of the linear arguments, in their
            structure.
        residual_args: a pytree of arrays, on which `fun` may depend in any way.
    Raises:
        TypeError: when it is transposed, where `fun_transpose` returns another structure.
        ShapeError: when it is transposed, where `fun_transpose` returns other shapes.

    >>> from hlotrace.custom_derivatives import linear_call
    >>> divide = lambda x, by: linear_call(lambda by, x: x / by, lambda by, g: g / by, by, x)
    >>> divide(6., 3.), jax.linear_transpose(lambda x: divide(x, 4.), 1.)(8.)
    (Array(2., dtype=float32, weak_type=True), (Array(2., dtype=float32, weak_type=True),))
    """
    for what, given in (("fun", fun), ("fun_transpose", fun_transpose)):
        if not callable(given):
            raise TypeError(f"linear_call: {what} must be a function, got {given!r:.80}")
    flat = FlatFunction(fun, *pytree.tree_flatten(((residual_args, linear_args), {})), "linear_call")
    avals = flat.avals()
    traced = flat.kept(fun, "linear_call", avals)
    res_tree, linear_tree = flat.arg_tree.children()
    n, shift = res_tree.num_leaves, len(traced.consts)
    linear_avals = avals[n:]

    def transpose(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        found = fun_transpose(res_tree.unflatten(residuals[shift:]), traced.out_tree.unflatten(cts))
        leaves, out_tree = pytree.tree_flatten(found)
        if out_tree != linear_tree:
            raise TypeError(pytree.structure_mismatch(
                f"linear_call: the output of the transpose {name_of(fun_transpose)} must have the structure "
                "of linear_args", linear_tree, out_tree, ("linear_args", "the output")))
        for path, x, aval in zip(pytree.leaf_paths(linear_tree), leaves, linear_avals):
            if aval_of(x).shape != aval.shape:
                raise ShapeError(f"linear_call: the output{path} of the transpose {name_of(fun_transpose)} "
                                 f"has shape {aval_of(x).shape}, and linear_args{path} has shape "
                                 f"{aval.shape}: they must be equal")
        return [cast_tangent(x, aval) for x, aval in zip(leaves, linear_avals)]
    outs = linear_call_p.bind(*traced.consts, *flat.leaves, jaxpr=traced.closed, num_res=shift + n,
                              transpose=transpose)
    return traced.out_tree.unflatten(outs)


def custom_gradient(fun: Callable[..., Any]) -> custom_vjp:
    """A function that returns (value, vjp function), as one with a custom derivative.

    Only for reverse mode; the vjp function gives one cotangent, or a tuple with one for each argument.

    >>> @jax.custom_gradient
    ... def clipped(x):
    ...     return x**2, lambda g: jnp.clip(g * 2 * x, -1, 1)
    >>> clipped(3.), jax.grad(clipped)(3.)
    (9.0, Array(1., dtype=float32, weak_type=True))
    """
    @custom_vjp
    @filtered
    def wrapped(*args: Any) -> Any:
        return fun(*args)[0]

    def forward(*args: Any) -> tuple[Any, Any]:
        out, pullback = fun(*args)
        traced, consts = closure_convert(pullback, out)
        return out, (consts, traced, args)

    def backward(residuals: Any, ct: Any) -> tuple[Any, ...]:
        consts, traced, args = residuals
        found = traced(ct, *consts)
        return found if len(args) > 1 or isinstance(found, tuple) else (found,)
    wrapped.defvjp(forward, backward)
    return wrapped


def closure_convert(fun: Callable[..., Any], *example_args: Any) -> tuple[Callable[..., Any], list[Any]]:
    """(converted, consts): `converted(*args, *consts)` is `fun(*args)`, which closes over tracers `consts`.

    Only values that may be differentiated (traced, inexact) are hoisted.  It is for functions with a
    `custom_vjp` that take functions: a rule cannot return cotangents of what it closes over.

    >>> def f(scale):
    ...     converted, consts = jax.closure_convert(lambda x: x * scale, 1.)
    ...     return converted(3., *consts) * len(consts)
    >>> jax.grad(f)(2.)
    Array(3., dtype=float32, weak_type=True)
    """
    flat = FlatFunction(fun, *flatten((example_args, {})), "closure_convert")
    traced, in_tree = flat.trace(flat.avals(abstract)), flat.in_tree
    closed, consts = close(traced.jaxpr)
    hoisted = [isinstance(c, Tracer) and dtypes.is_inexact(c.aval.dtype) for c in consts]

    @filtered
    def converted(*args: Any) -> Any:
        n = len(args) - sum(hoisted)
        tree = pytree.tree_structure((args[:n], {}))
        if tree != in_tree:
            raise TypeError("The inputs to the closure produced by closure_convert must have the same Pytree "
                            "structure as the example arguments passed when closure_convert was called. "
                            f"Expected {in_tree.children()[0]}, but got {tree.children()[0]}")
        given = iter(args[n:])
        values = [next(given) if h else c for c, h in zip(consts, hoisted)]
        outs = eval_jaxpr(closed, (), *values, *pytree.tree_leaves((args[:n], {})))
        return traced.out_tree.unflatten(outs)
    return converted, [c for c, h in zip(consts, hoisted) if h]

"""custom_jvp and custom_vjp: functions whose derivatives the user gives; closure_convert."""
import functools

from ..core import dtypes, tree
from ..core.avals import aval_of, is_arraylike
from ..core.jaxpr import close, eval_jaxpr
from ..core.trace import Tracer
from ..primitives.calls import custom_jvp_call_p, custom_vjp_call_p
from ..primitives.collectives import match
from ..primitives.common import zeros_of
from ..primitives.elementwise import convert
from .flat import check_outputs, trace_call
from .signatures import name_of, numbers_and_names, signature_of


def _positional(fun, args, kwargs):
    """All arguments by position, defaults filled in, where the signature allows it."""
    signature = signature_of(fun)
    if signature is None:
        if kwargs:
            raise TypeError(f"{name_of(fun)}: keyword arguments need a function whose signature Python can tell")
        return args
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(f"custom derivative rules of {name_of(fun)} could not resolve the keyword-only arguments "
                        f"{sorted(bound.kwargs)}: make them positional")
    return bound.args


class _Custom:
    """What the two kinds share: argument handling."""

    def __init__(self, fun, nondiff_argnums=(), nondiff_argnames=()):
        functools.update_wrapper(self, fun, updated=())
        self.fun = fun
        self.nondiff_argnums, _ = numbers_and_names(fun, nondiff_argnums or None, nondiff_argnames or None, "nondiff")

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def _prepare(self, args, kwargs):
        """(leaves, structure, a function that rebuilds all arguments from the leaves, the nondiff values)"""
        args = _positional(self.fun, args, kwargs)
        static = {i: args[i] for i in self.nondiff_argnums if i < len(args)}
        leaves, in_tree = tree.tree_flatten(tuple(a for i, a in enumerate(args) if i not in static))
        for x, path in zip(leaves, tree.leaf_paths(in_tree)):
            if not is_arraylike(x):
                raise TypeError(f"{name_of(self.fun)}: argument {path} of type {type(x)} is not a valid JAX type; "
                                "arguments that are not arrays are named in nondiff_argnums")

        def rebuild(values):
            values = iter(in_tree.unflatten(values))
            return [static[i] if i in static else next(values) for i in range(len(args))]
        return leaves, in_tree, rebuild, [static[i] for i in sorted(static)]

    def _flat_fun(self, rebuild, found):
        def fun(*values):
            outs, found["tree"] = tree.tree_flatten(self.fun(*rebuild(values)))
            check_outputs(outs, found["tree"], name_of(self.fun))
            return outs
        return fun


class custom_jvp(_Custom):
    """A function whose derivative is given by `defjvp`.

        @custom_jvp
        def f(x, y): ...
        @f.defjvp
        def f_jvp(primals, tangents): ... return f(*primals), tangent_out

    `nondiff_argnums` name arguments that are not differentiated; the rule gets them first.
    """
    rule = None

    def defjvp(self, jvp, symbolic_zeros=False):
        """Set the rule: (*nondiff, primals, tangents) -> (out, tangent_out).  Returns `jvp`."""
        self.rule = jvp
        return jvp

    def defjvps(self, *jvps):
        """Set one rule for each argument: (tangent, out, *primals) -> tangent_out; None for no dependence."""
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``.")

        def rule(primals, tangents):
            out = self(*primals)
            terms = [f(t, out, *primals) for f, t in zip(jvps, tangents) if f is not None]
            if not terms:
                return out, tree.tree_map(lambda x: zeros_of(aval_of(x).tangent()), out)
            total = terms[0]
            for term in terms[1:]:
                total = tree.tree_map(lambda a, b: a + b, total, term)
            return out, total
        self.rule = rule

    def __call__(self, *args, **kwargs):
        name = name_of(self.fun)
        if self.rule is None:
            raise AttributeError(f"No JVP defined for custom_jvp function {name} using defjvp.")
        leaves, in_tree, rebuild, static = self._prepare(args, kwargs)
        found = {}

        def rule(primals, tangents):
            result = self.rule(*static, in_tree.unflatten(primals), in_tree.unflatten(tangents))
            if not isinstance(result, (tuple, list)) or len(result) != 2:
                raise TypeError(f"Custom JVP rule {name_of(self.rule)} for function {name} must produce a pair (list or "
                                f"tuple of length two) representing primal and tangent outputs, but got {result!r:.80}.")
            outs, found["tree"] = tree.tree_flatten(result[0])
            out_tangents, t_tree = tree.tree_flatten(result[1])
            if t_tree != found["tree"]:
                raise TypeError(f"Custom JVP rule {name_of(self.rule)} for function {name} must produce primal and "
                                "tangent outputs with equal structures:\n" + tree.structure_mismatch(
                                    "outputs", found["tree"], t_tree, ("primal out", "tangent out")))
            for o, t, path in zip(outs, out_tangents, tree.leaf_paths(found["tree"])):
                want, got = aval_of(o).tangent(), aval_of(t)
                if (want.shape, want.dtype) != (got.shape, got.dtype) and not (
                        got.weak_type and got.shape == want.shape) and want.dtype != dtypes.float0:
                    raise TypeError(f"Custom JVP rule {name_of(self.rule)} for function {name} must produce primal and "
                                    f"tangent outputs with equal shapes and dtypes, but output{path} is "
                                    f"{aval_of(o).str_short()} with tangent {got.str_short()}.")
            return outs, [_cast_tangent(t, aval_of(o)) for o, t in zip(outs, out_tangents)]
        outs = custom_jvp_call_p.bind(*leaves, fun=self._flat_fun(rebuild, found), rule=rule, name=name)
        return found["tree"].unflatten(outs)


def _cast_tangent(t, aval):
    want = aval.tangent().dtype
    if want == dtypes.float0:
        return None
    return t if aval_of(t).dtype == want else convert(t, want)


class custom_vjp(_Custom):
    """A function whose reverse-mode derivative is given by `defvjp`.

        @custom_vjp
        def f(x, y): ...
        def f_fwd(x, y): ... return out, residuals
        def f_bwd(residuals, ct): ... return ct_x, ct_y
        f.defvjp(f_fwd, f_bwd)

    `nondiff_argnums` name arguments that are not differentiated; `f_bwd` gets them first.
    """
    fwd = bwd = None

    def defvjp(self, fwd, bwd, symbolic_zeros=False, optimize_remat=False):
        """Set the forward function (gives out, residuals) and the backward one (gives a cotangent per argument)."""
        self.fwd, self.bwd = fwd, bwd

    def __call__(self, *args, **kwargs):
        name = name_of(self.fun)
        if self.fwd is None or self.bwd is None:
            raise AttributeError(f"No VJP defined for custom_vjp function {name} using defvjp.")
        leaves, in_tree, rebuild, static = self._prepare(args, kwargs)
        found = {}

        def fwd(primals):
            result = self.fwd(*rebuild(primals))
            if not isinstance(result, (tuple, list)) or len(result) != 2:
                raise TypeError(f"Custom VJP fwd rule {name_of(self.fwd)} for function {name} must produce a pair (list or "
                                "tuple of length two) where the first element represents the primal output and the "
                                f"second the residuals, but got {result!r:.80}.")
            outs, found["tree"] = tree.tree_flatten(result[0])
            residuals, found["residuals"] = tree.tree_flatten(result[1])
            dynamic = [is_arraylike(r) for r in residuals]
            found["static"] = [None if d else r for r, d in zip(residuals, dynamic)], dynamic
            return outs, [r for r, d in zip(residuals, dynamic) if d]

        def bwd(residuals, cts):
            values = iter(residuals)
            full = [next(values) if d else s for s, d in zip(*found["static"])]
            result = self.bwd(*static, found["residuals"].unflatten(full), found["tree"].unflatten(cts))
            return self._cotangents(result, in_tree, avals, name)
        avals = [aval_of(x) for x in leaves]
        outs = custom_vjp_call_p.bind(*leaves, fun=self._flat_fun(rebuild, found), fwd=fwd, bwd=bwd, name=name)
        return found["tree"].unflatten(outs)

    def _cotangents(self, result, in_tree, avals, name):
        """The user's cotangents as a flat list; None stands for zeros."""
        rule = name_of(self.bwd)
        n = len(in_tree.children())
        if isinstance(result, list):
            result = tuple(result)
        if not isinstance(result, tuple) or len(result) != n:
            raise TypeError(f"Custom VJP bwd rule {rule} for function {name} must produce a tuple with one cotangent for "
                            f"each of the {n} differentiated arguments, but got {result!r:.80}.")
        try:
            found = tree.flatten_axes("custom_vjp bwd", in_tree, result)
        except ValueError:
            raise TypeError(f"Custom VJP bwd rule {rule} for function {name} must produce cotangents with the structure "
                            "of the arguments:\n" + tree.structure_mismatch(
                                "cotangents", in_tree, result, ("arguments", "cotangents"))) from None
        for ct, aval, path in zip(found, avals, tree.leaf_paths(in_tree)):
            want = aval.tangent()
            if ct is not None and want.dtype != dtypes.float0 and aval_of(ct).shape != want.shape:
                raise ValueError(f"Custom VJP bwd rule {rule} for function {name}: cotangent {path} has shape "
                                 f"{aval_of(ct).shape}, but the argument has shape {want.shape}.")
        return [None if ct is None or a.tangent().dtype == dtypes.float0 else match(_cast_tangent(ct, a), a.vma)
                for ct, a in zip(found, avals)]


def custom_gradient(fun):
    """A function that returns (value, vjp function), as one with a custom derivative."""
    @custom_vjp
    def wrapped(*args):
        return fun(*args)[0]

    def forward(*args):
        out, pullback = fun(*args)
        traced, consts = closure_convert(pullback, out)
        return out, (consts, traced, args)

    def backward(residuals, ct):
        consts, traced, args = residuals
        found = traced(ct, *consts)
        return found if len(args) > 1 or isinstance(found, tuple) else (found,)
    wrapped.defvjp(forward, backward)
    return wrapped


def closure_convert(fun, *example_args):
    """(converted, consts): `converted(*args, *consts)` is `fun(*args)` with the traced values it closes over given.

    Only values that may be differentiated (traced, inexact) are hoisted.
    """
    leaves, in_tree = tree.tree_flatten((example_args, {}))
    traced = trace_call(fun, in_tree, [aval_of(x) for x in leaves], (), name_of(fun))
    closed, consts = close(traced.jaxpr)
    hoisted = [isinstance(c, Tracer) and dtypes.is_inexact(c.aval.dtype) for c in consts]

    def converted(*args):
        n = len(args) - sum(hoisted)
        given = iter(args[n:])
        values = [next(given) if h else c for c, h in zip(consts, hoisted)]
        outs = eval_jaxpr(closed, (), *values, *tree.tree_leaves((args[:n], {})))
        return traced.out_tree.unflatten(outs)
    return converted, [c for c, h in zip(consts, hoisted) if h]

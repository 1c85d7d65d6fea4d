"""custom_jvp and custom_vjp: functions whose derivatives the user gives; closure_convert."""
import functools

from ..core import dtypes, tree
from ..core.avals import aval_of, is_arraylike
from ..core.jaxpr import close, eval_jaxpr
from ..core.trace import Tracer
from ..primitives.calls import custom_jvp_call_p, custom_vjp_call_p
from ..primitives.collectives import match
from ..primitives.elementwise import convert
from ..primitives.shape import instantiate, zeros_of
from .flat import FlatFunction
from .signatures import name_of, numbers_and_names, signature_of, split_statics


class SymbolicZero:
    """A tangent or cotangent that is known to be zero, of type `aval`; see `symbolic_zeros` of the custom rules."""

    def __init__(self, aval):
        self.aval = aval

    def __getattr__(self, name):
        return getattr(self.aval, name)

    def __repr__(self):
        return "SymbolicZero"

    @staticmethod
    def from_primal_value(value):
        """The zero tangent of a value."""
        return SymbolicZero(aval_of(value).tangent())


class CustomVJPPrimal:
    """What a forward rule with `symbolic_zeros` gets for a leaf: its `value`, and whether it is `perturbed`, that is
    differentiated with respect to."""

    def __init__(self, value, perturbed):
        self.value, self.perturbed = value, perturbed

    def __repr__(self):
        return f"CustomVJPPrimal(value={self.value!r}, perturbed={self.perturbed})"


def custom_vjp_primal_tree_values(primals):
    """The pytree with each CustomVJPPrimal replaced by its value."""
    return tree.tree_map(lambda x: x.value, primals)


def _zeros(values, avals, symbolic):
    """Tangents or cotangents of values of these types, as the user's rule gets them; those that are None are zero."""
    if symbolic:
        return [SymbolicZero(a.tangent()) if t is None else t for t, a in zip(values, avals)]
    return [instantiate(t, a) for t, a in zip(values, avals)]


class _Custom:
    """What the two kinds share: argument handling."""
    symbolic_zeros = False

    def __init__(self, fun, nondiff_argnums=(), nondiff_argnames=()):
        functools.update_wrapper(self, fun, updated=())
        self.fun = fun
        self.signature = signature_of(fun)
        self.nondiff_argnums, _ = numbers_and_names(fun, nondiff_argnums or None, nondiff_argnames or None, "nondiff")

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def _positional(self, args, kwargs):
        """All arguments by position, defaults filled in, where the signature allows it."""
        if self.signature is None:
            if kwargs:
                raise TypeError(f"{name_of(self.fun)}: keyword arguments need a function whose signature Python can tell")
            return args
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(f"custom derivative rules of {name_of(self.fun)} could not resolve the keyword-only arguments "
                            f"{sorted(bound.kwargs)}: make them positional")
        return bound.args

    def _flat(self, args, kwargs):
        """(the call as a FlatFunction, its leaves, the nondiff values)"""
        args, _, statics = split_statics(self._positional(args, kwargs), {}, self.nondiff_argnums)
        flat = FlatFunction(self.fun, *tree.tree_flatten((args, {})), type(self).__name__, statics)
        # the rules stand in programs that outlive this call: they hold the types, not the values
        leaves, flat.leaves = flat.leaves, flat.avals()
        return flat, leaves, [value for _, value in statics]


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
        """Set the rule: (*nondiff, primals, tangents) -> (out, tangent_out).  Returns `jvp`.

        With `symbolic_zeros`, tangents that are known to be zero are given as `SymbolicZero`s.
        """
        self.rule, self.symbolic_zeros = jvp, symbolic_zeros
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
        self.defjvp(rule)

    def __call__(self, *args, **kwargs):
        name = name_of(self.fun)
        if self.rule is None:
            raise AttributeError(f"No JVP defined for custom_jvp function {name} using defjvp.")
        flat, leaves, static = self._flat(args, kwargs)

        def rule(primals, tangents):
            tangents = _zeros(tangents, map(aval_of, primals), self.symbolic_zeros)
            result = self.rule(*static, flat.arg_tree.unflatten(primals), flat.arg_tree.unflatten(tangents))
            if not isinstance(result, (tuple, list)) or len(result) != 2:
                raise TypeError(f"Custom JVP rule {name_of(self.rule)} for function {name} must produce a pair (list or "
                                f"tuple of length two) representing primal and tangent outputs, but got {result!r:.80}.")
            outs, flat.out_tree = tree.tree_flatten(result[0])
            out_tangents, t_tree = tree.tree_flatten(result[1])
            if t_tree != flat.out_tree:
                raise TypeError(f"Custom JVP rule {name_of(self.rule)} for function {name} must produce primal and "
                                "tangent outputs with equal structures:\n" + tree.structure_mismatch(
                                    "outputs", flat.out_tree, t_tree, ("primal out", "tangent out")))
            for i, (o, t) in enumerate(zip(outs, out_tangents)):
                want, got = aval_of(o).tangent(), t.aval if type(t) is SymbolicZero else aval_of(t)
                if (want.shape, want.dtype) != (got.shape, got.dtype) and not (
                        got.weak_type and got.shape == want.shape) and want.dtype != dtypes.float0:
                    raise TypeError(f"Custom JVP rule {name_of(self.rule)} for function {name} must produce primal and "
                                    f"tangent outputs with equal shapes and dtypes, but {flat.out_path(i)} is "
                                    f"{aval_of(o).str_short()} with tangent {got.str_short()}.")
            return outs, [_cast_tangent(t, aval_of(o)) for o, t in zip(outs, out_tangents)]
        outs = custom_jvp_call_p.bind(*leaves, fun=flat, rule=rule, name=name)
        return flat.out_tree.unflatten(outs)


def _cast_tangent(t, aval):
    want = aval.tangent().dtype
    if want == dtypes.float0 or t is None or type(t) is SymbolicZero:
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
        """Set the forward function (gives out, residuals) and the backward one (gives a cotangent per argument).

        With `symbolic_zeros`, `fwd` gets a `CustomVJPPrimal` for each leaf, and `bwd` a `SymbolicZero` for each cotangent
        that is known to be zero.
        """
        if optimize_remat:
            raise NotImplementedError("custom_vjp.defvjp: optimize_remat=True is not supported; under checkpoint the "
                                      "forward function is run again whole")
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros

    def __call__(self, *args, **kwargs):
        name = name_of(self.fun)
        if self.fwd is None or self.bwd is None:
            raise AttributeError(f"No VJP defined for custom_vjp function {name} using defvjp.")
        flat, leaves, static = self._flat(args, kwargs)
        found = {}

        def fwd(primals, perturbed):
            if self.symbolic_zeros:
                primals = list(map(CustomVJPPrimal, primals, perturbed))
            result = self.fwd(*flat.arguments(primals)[0])
            if not isinstance(result, (tuple, list)) or len(result) != 2:
                raise TypeError(f"Custom VJP fwd rule {name_of(self.fwd)} for function {name} must produce a pair (list or "
                                "tuple of length two) where the first element represents the primal output and the "
                                f"second the residuals, but got {result!r:.80}.")
            outs, flat.out_tree = tree.tree_flatten(result[0])
            residuals, found["residuals"] = tree.tree_flatten(result[1])
            dynamic = [is_arraylike(r) for r in residuals]
            found["static"], found["outs"] = [None if d else r for r, d in zip(residuals, dynamic)], list(map(aval_of, outs))
            found["dynamic"] = dynamic
            return outs, [r for r, d in zip(residuals, dynamic) if d]

        def bwd(residuals, cts):
            values = iter(residuals)
            full = [next(values) if d else s for s, d in zip(found["static"], found["dynamic"])]
            cts = flat.out_tree.unflatten(_zeros(cts, found["outs"], self.symbolic_zeros))
            return self._cotangents(self.bwd(*static, found["residuals"].unflatten(full), cts), flat, name)
        outs = custom_vjp_call_p.bind(*leaves, fun=flat, fwd=fwd, bwd=bwd, name=name)
        return flat.out_tree.unflatten(outs)

    def _cotangents(self, result, flat, name):
        """The user's cotangents as a flat list; None stands for zeros."""
        rule, in_tree, avals = name_of(self.bwd), flat.arg_tree, flat.leaves
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
        found = [None if type(ct) is SymbolicZero else ct for ct in found]
        for i, (ct, aval) in enumerate(zip(found, avals)):
            want = aval.tangent()
            if ct is not None and want.dtype != dtypes.float0 and aval_of(ct).shape != want.shape:
                raise ValueError(f"Custom VJP bwd rule {rule} for function {name}: cotangent of {flat.path(i)} has shape "
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
    flat = FlatFunction(fun, *tree.tree_flatten((example_args, {})), "closure_convert")
    traced = flat.trace(flat.avals())
    closed, consts = close(traced.jaxpr)
    hoisted = [isinstance(c, Tracer) and dtypes.is_inexact(c.aval.dtype) for c in consts]

    def converted(*args):
        n = len(args) - sum(hoisted)
        given = iter(args[n:])
        values = [next(given) if h else c for c, h in zip(consts, hoisted)]
        outs = eval_jaxpr(closed, (), *values, *tree.tree_leaves((args[:n], {})))
        return traced.out_tree.unflatten(outs)
    return converted, [c for c, h in zip(consts, hoisted) if h]

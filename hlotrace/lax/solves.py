"""Equations solved by the user's function, with derivatives of the equation itself."""
from ..api.autodiff import linearize
from ..api.flat import FlatFunction
from ..api.signatures import name_of
from ..core import dtypes, errors, programs
from ..core.avals import aval_of
from ..core.jaxpr import eval_jaxpr
from ..core.pytrees import pytree
from ..core.symbolic_zeros import drop_zeros, fill_zeros, nonzero_mask
from ..primitives.arrays.elementwise import neg_p
from ..primitives.arrays.shape import instantiate
from ..primitives.programs.calls import custom_jvp_call_p
from ..primitives.programs.linear_solve import linear_solve_p
from .control_flow_errors import shown

__all__ = ["custom_root", "custom_linear_solve"]


class _Unknown:
    """What is solved for: a pytree, its leaves and their types; functions that map such to such, traced."""

    def __init__(self, what, name, value):
        self.what, self.name, self.value = what, name, value
        self.leaves, self.tree = pytree.tree_flatten(value)
        self.avals = FlatFunction(lambda x: x, *pytree.tree_flatten(((value,), {})), what).avals()

    def trace(self, fun, role, owner, kind=None, has_aux=False):
        """`fun` traced for such a value; the result, but for what is auxiliary, must be such a value too."""
        for given, name in ((fun, role), (owner, role)):
            if not callable(given):
                raise TypeError(f"{self.what}: {name} must be a function, got {shown(given)}")
        flat = FlatFunction(fun, *pytree.tree_flatten(((self.value,), {})), self.what)
        traced = flat.kept(owner, (role, kind), self.avals)
        found = traced.out_tree
        if has_aux:
            kind, children = (found.node_data() or (None,))[0], found.children()
            if kind not in (tuple, list) or len(children) != 2:
                raise TypeError(f"{self.what}: {role} {name_of(owner)} must return a pair (solution, aux) "
                                f"because has_aux is True, but it returned {pytree.described(found)}")
            found = children[0]
        self.check(f"{role} {name_of(owner)}", found, traced.closed.out_avals)
        return traced

    def check(self, who, found, avals):
        """ShapeError unless a result has the structure and the shapes of the unknown."""
        if found != self.tree:
            role = who.partition(" ")[0]
            raise errors.ShapeError(pytree.structure_mismatch(
                f"{self.what}: {role}() output pytree structure must match {self.name}, got {found} and "
                f"{self.tree}: {who}", self.tree, found, (self.name, "the result")))
        for path, want, got in zip(pytree.leaf_paths(self.tree), self.avals, avals):
            if (want.shape, want.dtype) != (got.shape, got.dtype):
                raise errors.ShapeError(f"{self.what}: {who.partition(' ')[0]}() output shapes must match "
                                        f"{self.name}, and dtypes, but of {who} {self.name}{path} is "
                                        f"{want.str_short()}, the result{path} {got.str_short()}")


def custom_linear_solve(matvec, b, solve, transpose_solve=None, symmetric=False, has_aux=False):
    """x with `matvec(x) = b`, as `solve(matvec, b)` finds it.

    Derivatives come from the system, by `solve` and `transpose_solve`: how these work is not differentiated.

    Args:
        matvec: linear function of pytrees like `b` to such; may close over what is differentiated.
        b: pytree of arrays.
        solve: (matvec, b) -> x; with `has_aux`, (x, aux), where aux has no derivative.
        transpose_solve: (vecmat, b) -> the solution of the transposed system; needed by reverse mode.  With
            `has_aux` it gives a pair as `solve` does.
        symmetric: the transposed system is the same; `solve` solves it.
        has_aux: `solve` gives (x, aux).
    Returns:
        x like `b`, or (x, aux).
    Raises:
        ShapeError: where a function gives another structure or shape.

    >>> a = jnp.array([2., 4.])
    >>> lax.custom_linear_solve(lambda x: a * x, jnp.array([2., 2.]), lambda matvec, b: b / a, symmetric=True)
    Array([1. , 0.5], dtype=float32)
    """
    unknown = _Unknown("lax.custom_linear_solve", "b", b)
    product = unknown.trace(matvec, "matvec", matvec)
    solving = unknown.trace(lambda b: solve(matvec, b), "solve", solve, matvec, has_aux)
    vecmat, transposed = None, None
    consts = [product.consts, (), solving.consts, ()]
    if symmetric:
        vecmat, consts[1], transposed = product.closed, product.consts, solving
    elif transpose_solve is not None:
        vecmat, consts[1] = _transposed(product.closed, len(product.consts)), product.consts

        def apply(x):
            return unknown.tree.unflatten(eval_jaxpr(vecmat, (), *product.consts, *pytree.tree_leaves(x)))
        transposed = unknown.trace(lambda b: transpose_solve(apply, b), "transpose_solve", transpose_solve,
                                   product, has_aux)
    if transposed is not None:
        consts[3] = transposed.consts
    outs = linear_solve_p.bind(
        *[c for part in consts for c in part], *unknown.leaves, matvec=product.closed, vecmat=vecmat,
        solve=solving.closed, transpose_solve=transposed and transposed.closed, sizes=tuple(map(len, consts)))
    return solving.out_tree.unflatten(outs)


@programs.cached
def _transposed(jaxpr, num_consts):
    """The program of a linear function, transposed; the constants stay in front."""
    n = len(jaxpr.outvars)
    program, marks = programs.transpose(jaxpr, (False,) * num_consts + (True,) * n, (True,) * n)

    def fun(*args):
        found = fill_zeros(eval_jaxpr(program, (), *args), marks)
        return [instantiate(x, v.aval) for x, v in zip(found, jaxpr.invars[num_consts:])]
    return programs.trace_closed(fun, [*jaxpr.in_avals[:num_consts], *jaxpr.out_avals],
                                 f"transposed_{jaxpr.name}")


def custom_root(f, initial_guess, solve, tangent_solve, has_aux=False):
    """x with `f(x) = 0`, as `solve(f, initial_guess)` finds it; differentiated by what `f` closes over.

    By the implicit function theorem: where F(x, a) = 0, dx = -(dF/dx)^-1 (dF/da) da.

    Args:
        f: function from pytrees like `initial_guess` to such.
        initial_guess: pytree of floating or complex arrays; the root does not depend on it.
        solve: (f, initial_guess) -> x; with `has_aux`, (x, aux), where aux has no derivative.
        tangent_solve: (g, y) -> the x with `g(x) = y`, `g` being `f` linearized at the root; linear in y.
            For scalars it is `lambda g, y: y / g(1.0)`.
        has_aux: `solve` gives (x, aux).
    Returns:
        x like `initial_guess`, or (x, aux).
    Raises:
        TypeError: where a function gives another structure or other dtypes.
        ShapeError: where a function gives another shape.

    >>> def newton(f, x):
    ...     return lax.fori_loop(0, 10, lambda _, x: x - f(x) / jax.grad(f)(x), x)
    >>> root = lambda a: lax.custom_root(lambda x: x * x - a, 1.0, newton, lambda g, y: y / g(1.0))
    >>> jax.grad(root)(4.0).item()
    0.25
    """
    unknown = _Unknown("lax.custom_root", "initial_guess", initial_guess)
    for path, aval in zip(pytree.leaf_paths(unknown.tree), unknown.avals):
        if not dtypes.is_inexact(aval.dtype):
            raise TypeError(f"lax.custom_root: initial_guess{path} must be floating or complex, as a root "
                            f"is, got {aval.str_short()}: convert it with .astype(float), or write 1.0 for 1")
    if not callable(tangent_solve):
        raise TypeError(f"lax.custom_root: tangent_solve must be a function, got {shown(tangent_solve)}")
    function = unknown.trace(f, "f", f)
    solving = unknown.trace(lambda x: solve(f, x), "solve", solve, f, has_aux)
    n, sizes = len(unknown.leaves), (len(function.consts), len(solving.consts))

    def run(*args):
        return eval_jaxpr(solving.closed, (), *args[sizes[0]:])

    def rule(primals, tangents):
        outs = custom_jvp_call_p.bind(*primals, fun=run, rule=rule, name="custom_root")
        consts, moving = primals[:sizes[0]], tangents[:sizes[0]]
        program, marks = programs.jvp(function.closed, (*nonzero_mask(moving), *[False] * n))
        moved = fill_zeros(eval_jaxpr(program, (), *consts, *outs[:n], *drop_zeros(moving))[n:], marks)
        if not any(nonzero_mask(moved)):
            return outs, [None] * len(outs)
        rhs = [neg_p.bind(instantiate(m, a)) for m, a in zip(moved, unknown.avals)]

        def at(x):
            return unknown.tree.unflatten(eval_jaxpr(function.closed, (), *consts, *pytree.tree_leaves(x)))
        _, linear = linearize(at, unknown.tree.unflatten(outs[:n]))
        dx, found = pytree.tree_flatten(tangent_solve(linear, unknown.tree.unflatten(rhs)))
        unknown.check(f"tangent_solve {name_of(tangent_solve)}", found, [aval_of(x) for x in dx])
        return outs, [*dx, *[None] * (len(outs) - n)]
    outs = custom_jvp_call_p.bind(*function.consts, *solving.consts, *unknown.leaves, fun=run, rule=rule,
                                  name="custom_root")
    return solving.out_tree.unflatten(outs)

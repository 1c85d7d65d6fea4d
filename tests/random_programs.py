"""Random programs: operations in loops, branches, custom rules and transformations within each other.

`Maker(jax, seed)` makes the same program of hlotrace and of JAX, whichever is given: a function of float
arrays to a list of them.  Python functions close over values of those around them, as programs of users do.
"""
import itertools
import random

import numpy

SHAPES = [(), (2,), (3,), (2, 3), (3, 2), (3, 3), (2, 2, 3)]


def unary(jax):
    """Functions of one array to an array of its shape, defined everywhere."""
    np, lax, nn = jax.numpy, jax.lax, jax.nn

    def of_axes(f):
        return lambda x: f(x) if x.ndim else x
    return {
        "sin": np.sin, "tanh": np.tanh, "exp": lambda x: np.exp(np.sin(x)), "negative": lambda x: -x,
        "square": lambda x: np.tanh(x) ** 2, "log": lambda x: np.log1p(np.abs(x)),
        "erf": lax.erf, "abs": np.abs,
        "relu": nn.relu, "softplus": nn.softplus, "sigmoid": nn.sigmoid, "softmax": of_axes(nn.softmax),
        "where": lambda x: np.where(x > 0.1, x, 0.5 * np.sin(x)), "clip": lambda x: np.clip(x, -0.5, 0.7),
        "reciprocal": lambda x: 1 / (1.5 + np.sin(x)), "integers": lambda x: x.astype(np.int32) * 0.25 + x,
        "stopped": lambda x: x * lax.stop_gradient(np.cos(x)), "barrier": lax.optimization_barrier,
        "sort": of_axes(np.sort), "flip": np.flip, "roll": lambda x: np.roll(x, 1),
        "cummax": of_axes(lax.cummax), "cumsum": of_axes(lambda x: lax.cumsum(x, reverse=True)),
        "cumprod": of_axes(lambda x: np.cumprod(np.cos(x), 0)),
        "ranked": of_axes(lambda x: np.take_along_axis(x, np.argsort(x), -1)),
        "one hot": of_axes(lambda x: nn.one_hot(np.argmax(x, -1), x.shape[-1]) * x),
        "select": lambda x: lax.select_n((x * 3).astype(np.int32) % 3, x, x * 2, np.sin(x)),
        "window": of_axes(lambda x: lax.reduce_window(x, 0.0, lax.add, (2,) + (1,) * (x.ndim - 1),
                                                      (1,) * x.ndim, "SAME")),
        "prefixes": of_axes(lambda x: lax.associative_scan(np.maximum, x)),
        "root": lambda x: lax.custom_root(lambda y: y + 0.3 * np.sin(y) - x, np.zeros_like(x), lambda f, y: (
            lax.fori_loop(0, 50, lambda _, y: y - f(y) / 1.3, y)), lambda g, y: y / g(np.ones_like(y))),
    }


def binary(jax):
    """Functions of two arrays of one shape."""
    np, lax = jax.numpy, jax.lax

    def at(x, y):
        return lax.stop_gradient(np.abs(np.sum(y)) * 7).astype(np.int32) % max(x.shape[:1] or (1,))

    def indexed(f):
        return lambda x, y: f(x, y, at(x, y)) if x.ndim else x
    return {
        "add": np.add, "subtract": np.subtract, "multiply": lambda x, y: np.tanh(x) * y,
        "maximum": np.maximum,
        "divide": lambda x, y: x / (1.5 + np.cos(y)),
        "power": lambda x, y: (1.1 + np.sin(x) ** 2) ** np.tanh(y),
        "logaddexp": np.logaddexp, "hypot": lambda x, y: np.hypot(x + 3, y),
        "compare": lambda x, y: np.where(x < y, np.sin(x) * y, y),
        "concatenate": lambda x, y: np.concatenate([x, y])[1:x.shape[0] + 1] if x.ndim else x * y,
        "product": lambda x, y: np.tanh(x) @ np.sin(y).T @ x if x.ndim == 2 else np.sin(x) * y,
        "solve": lambda x, y: np.linalg.solve(np.tanh(x) + 3 * np.eye(3), y) if x.shape == (3, 3) else x + y,
        "row": indexed(lambda x, y, i: x + y[i]),
        "row from the end": indexed(lambda x, y, i: x * np.sin(x[i - x.shape[0]])),
        "set": indexed(lambda x, y, i: x.at[i].set(y[0])),
        "add at": indexed(lambda x, y, i: x.at[i].add(y[0])),
        "max at": indexed(lambda x, y, i: x.at[i].max(y[0])),
        "slice": indexed(lambda x, y, i: lax.dynamic_update_slice_in_dim(x, y[:1], i + 1, 0)),
    }


def fitted(jax, x, shape):
    """The numbers of an array, repeated or left out, in another shape."""
    return jax.numpy.resize(x, shape)


def holders(jax, factor):
    """{name: (f, g, shapes of results) -> a function that runs f, and perhaps g, in that way}.

    All are functions of arrays to lists of arrays of these shapes.  Custom rules give `factor` times the
    derivative: where a rule is used, and where not, shows in numbers.
    """
    np, lax, policies = jax.numpy, jax.lax, jax.checkpoint_policies

    def stacked(xs):
        return [np.stack([x, np.sin(x), -x]) for x in xs]

    def summed(ys):
        return [y.sum(0) for y in ys]

    def moved(outs, tangents):
        return [x + t for x, t in zip(outs, tangents)]

    def custom_jvp(f, g, shapes):
        own = jax.custom_jvp(lambda *xs: f(*xs))

        @own.defjvp
        def rule(primals, tangents):
            outs, moved = jax.jvp(f, primals, tangents)
            return outs, [factor * t for t in moved]
        return own

    def custom_vjp(f, g, shapes):
        own = jax.custom_vjp(lambda *xs: f(*xs))
        own.defvjp(lambda *xs: (f(*xs), xs),
                   lambda xs, cts: tuple(factor * c for c in jax.vjp(f, *xs)[1](cts)))
        return own

    def custom_gradient(f, g, shapes):
        return jax.custom_gradient(lambda *xs: (f(*xs), lambda cts: tuple(
            factor * c for c in jax.vjp(f, *xs)[1](cts))))

    def scan(f, g, shapes, loop=lax.scan, wrap=lambda step: step):
        @wrap
        def step(carry, t):
            outs = f(*carry)
            return [np.tanh(c + fitted(jax, outs[0], c.shape) * t) for c in carry], [y.sum() for y in outs]

        def run(*xs):
            carry, ys = loop(step, list(xs), np.arange(1.0, 4.0))
            return [fitted(jax, carry[0], s) + y.sum() for s, y in zip(shapes, ys)]
        return run

    def fori_loop(f, g, shapes):
        def run(*xs):
            carry = lax.fori_loop(0, 2, lambda i, c: [
                np.sin(x + fitted(jax, f(*c)[0], x.shape) + i) for x in c], list(xs))
            return [fitted(jax, carry[0], s) for s in shapes]
        return run

    def ref(f, g, shapes):
        def run(*xs):
            state = jax.new_ref(np.zeros_like(xs[0]))

            def step(c, _):
                state[...] += np.sin(c)
                return np.tanh(c + state[...].sum() + f(c, *xs[1:])[0].sum()), None
            last, _ = lax.scan(step, xs[0], None, length=2)
            return [fitted(jax, last, s) + state[...].sum() for s in shapes]
        return run

    def shard_map(f, g, shapes):
        mesh, spec = jax.sharding.Mesh(jax.devices()[:2], ("d",)), jax.sharding.PartitionSpec
        run = jax.shard_map(lambda *xs: [lax.psum(y, "d") for y in f(*[x[0] for x in xs])], mesh=mesh,
                            in_specs=spec("d"), out_specs=spec())
        return lambda *xs: run(*[np.stack([x, 0.5 * x]) for x in xs])

    def vjp(f, g, shapes):
        def run(*xs):
            outs, pull = jax.vjp(f, *xs)
            return [y + pull([np.cos(z) for z in outs])[0].sum() for y in outs]
        return run

    def grad(f, g, shapes):
        def run(*xs):
            found = jax.grad(lambda *xs: sum(y.sum() for y in f(*xs)))(*xs)
            return [fitted(jax, found, s) for s in shapes]
        return run

    def linearize(f, g, shapes):
        def run(*xs):
            outs, linear = jax.linearize(f, *xs)
            return moved(outs, linear(*map(np.cos, xs)))
        return run

    def by_axis(f, g, shapes):
        def each(*xs):
            return [lax.psum(y, "i") * 0.5 + y * lax.axis_index("i") for y in f(*xs)]
        return lambda *xs: summed(jax.vmap(each, axis_name="i")(*stacked(xs)))

    def batched_cond(f, g, shapes):
        return lambda *xs: summed(jax.vmap(lambda *xs: lax.cond(xs[0].sum() > 0.1, f, g, *xs))(*stacked(xs)))
    reverse = {"custom_vjp": custom_vjp, "custom_gradient": custom_gradient}
    forward = {"jvp": lambda f, g, shapes: lambda *xs: moved(*jax.jvp(f, xs, (*map(np.cos, xs),))),
               "linearize": linearize, "custom_jvp": custom_jvp}
    return reverse, forward, {
        "jit": lambda f, g, shapes: jax.jit(f), "jit inline": lambda f, g, shapes: jax.jit(f, inline=True),
        "checkpoint": lambda f, g, shapes: jax.checkpoint(f),
        "checkpoint of products": lambda f, g, shapes: jax.checkpoint(f, policy=policies.dots_saveable),
        "checkpoint of all": lambda f, g, shapes: jax.checkpoint(f, policy=policies.everything_saveable),
        "scan": scan, "fori_loop": fori_loop, "ref": ref, "shard_map": shard_map,
        "scan backwards": lambda f, g, shapes: scan(
            f, g, shapes, lambda *args: lax.scan(*args, reverse=True)),
        "scan of checkpoint": lambda f, g, shapes: scan(f, g, shapes, wrap=jax.checkpoint),
        "scan unrolled": lambda f, g, shapes: scan(f, g, shapes, lambda *args: lax.scan(*args, unroll=2)),
        "vmap": lambda f, g, shapes: lambda *xs: summed(jax.vmap(f)(*stacked(xs))),
        "vmap with an axis": by_axis,
        "map": lambda f, g, shapes: lambda *xs: summed(lax.map(lambda xs: f(*xs), stacked(xs), batch_size=2)),
        "vjp": vjp, "grad": grad, "cond of vmap": batched_cond,
        "cond": lambda f, g, shapes: lambda *xs: lax.cond(xs[0].sum() > 0, f, g, *xs),
        "switch": lambda f, g, shapes: lambda *xs: lax.switch(xs[0].sum().astype(np.int32), [f, g, f], *xs),
    }


CHANGES_NOTHING = ("custom", "checkpoint", "jit")       # beginnings of names of holders


class Maker:
    """Makes one program: `shapes` of its arguments, `program` of them.

    Args:
        factor: what custom rules multiply derivatives by.
        forward: may it be differentiated in forward mode, and be so inside?  Else it may have backward rules.
        plain: without what changes no number where `factor` is 1.
    """

    def __init__(self, jax, seed, factor=1, forward=True, plain=False):
        self.plain = plain
        self.jax, self.draw, self.fresh = jax, random.Random(seed), itertools.count()
        self.unary, self.binary = unary(jax), binary(jax)
        backward_rules, forward_modes, rest = holders(jax, factor)
        self.holders = {**rest, **(forward_modes if forward else backward_rules)}
        self.shapes = self.draw.choices(SHAPES, k=self.draw.randint(1, 3))
        body = self.block(self.shapes, {}, 3, self.draw.choices(SHAPES, k=2))
        self.program = lambda *xs: body({}, *xs)

    def block(self, shapes, outer, depth, results):
        """(values around, arguments) -> results, of random steps; `outer` has shapes of the values around."""
        draw, steps, inputs = self.draw, [], [next(self.fresh) for _ in shapes]
        own = dict(zip(inputs, shapes))

        def one():
            if draw.random() < 0.6:
                return draw.choice(list(own)[-4:])      # so that most of what is computed is used
            return draw.choice([*outer, *own])

        def shape_of(name):
            return own[name] if name in own else outer[name]

        def step(run, operands, shapes):
            names = [next(self.fresh) for _ in shapes]
            steps.append((run, operands, names))
            own.update(zip(names, shapes))

        def of_shape(shape):
            step(lambda _, x: [fitted(self.jax, x, shape)], [one()], [shape])
            return next(reversed(own))
        for _ in range(draw.randint(2, 5)):
            kind, x = draw.random(), one()
            if kind < 0.35:
                f = self.unary[draw.choice(list(self.unary))]
                step(lambda _, x, f=f: [f(x)], [x], [shape_of(x)])
            elif kind < 0.65 or not depth:
                f = self.binary[draw.choice(list(self.binary))]
                step(lambda _, x, y, f=f: [f(x, y)], [x, of_shape(shape_of(x))], [shape_of(x)])
            else:
                operands = [x, *[one() for _ in range(draw.randint(0, 2))]]
                self.held(step, operands, shape_of, {**outer, **own}, depth - 1)
        outputs = [of_shape(s) for s in results]

        def run(values, *xs):
            values = {**values, **dict(zip(inputs, xs))}
            for f, operands, names in steps:
                values.update(zip(names, f(values, *[values[x] for x in operands]), strict=True))
            return [values[x] for x in outputs]
        return run

    def held(self, step, operands, shape_of, outer, depth):
        """A step that holds two programs.  What has a rule of its own closes over nothing."""
        rules = [name for name in self.holders if name.startswith("custom")]
        name = self.draw.choice(rules if self.draw.random() < 0.25 else list(self.holders))
        shapes = self.draw.choices(SHAPES, k=self.draw.randint(1, 2))
        outer = {} if name.startswith("custom") else outer
        f, g = (self.block([shape_of(x) for x in operands], outer, depth, shapes) for _ in range(2))
        holder = self.holders[name]
        if self.plain and name.startswith(CHANGES_NOTHING):
            def holder(f, g, shapes):
                return f
        step(lambda values, *xs: holder(lambda *xs: f(values, *xs), lambda *xs: g(values, *xs), shapes)(*xs),
             operands, shapes)


def results(jax, seed, factor=1, forward=True, plain=False):
    """Arrays: what a random program gives, its gradient, and the derivative of that in reverse and, with
    `forward`, in forward mode."""
    made, rng = Maker(jax, seed, factor, forward, plain), numpy.random.default_rng(seed)
    xs, ts = ([rng.normal(size=s) for s in made.shapes] for _ in range(2))

    def loss(xs):
        return sum(jax.numpy.sin(y).sum() for y in made.program(*xs))

    def along(xs):
        return sum((g * t).sum() for g, t in zip(jax.grad(loss)(xs), ts))

    @jax.jit
    def all_of_it(xs):
        second = [jax.jvp(along, (xs,), (ts,))[1]] if forward else []
        return made.program(*xs), jax.grad(loss)(xs), jax.grad(along)(xs), second
    return [numpy.asarray(x) for x in jax.tree_util.tree_leaves(all_of_it(xs))]

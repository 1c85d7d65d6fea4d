"""What a kernel that is compiled reads and writes: its Refs are places in memory, each access an equation.

`load` and `store` have the Ref as a parameter and the traced parts of the index as operands, followed by what
is written, a mask and what is there where it is False.  They are lowered with the kernel that has them.
"""
from ....core.avals import ShapedArray
from ....core.primitive import Primitive
from ....core.refs import Access, Memory, Ref
from ....numpy.arrays.creation import asarray
from ....numpy.arrays.shaping import broadcast_to
from ....numpy.indexing.refs import layout_of, part_of
from ....primitives.arrays.elementwise import add
from ....primitives.programs.refs import addupdate_p, get_p, set_p, swap_p


def _refuse(what):
    def rule(*_args, **_params):
        raise NotImplementedError(
            f"{what} of what a compiled Pallas kernel reads or writes: differentiate or "
            "map the function that calls the kernel, with jax.custom_vjp and jax.vmap"
        )
    return rule


def _alone(_ctx, eqn, *_names):
    raise NotImplementedError(f"{eqn.primitive}: a part of a compiled Pallas kernel is lowered with it")


def _shown(eqn):
    named = {name: value._value if type(value) is Ref else value for name, value in eqn.params.items()}
    return {name: value for name, value in named.items() if name not in ("out", "core")}


def kernel_part(name, **rules):
    """A primitive that kernels alone have, and that is lowered with them."""
    return Primitive(name, lower=_alone, jvp=_refuse("a derivative"), batching=_refuse("vmap"), shown=_shown,
                     **rules)


def _writes(params):
    return Access(ref=params["ref"], writes=True),


# ref: the Ref; layout: the static part of the index; masked: are a mask, and what there is without it, last?
load_p = kernel_part("load", abstract_eval=lambda *avals, ref, layout, masked, out: out,
               effects=lambda params: (Access(ref=params["ref"]),))
# how: None writes; an Operation such as ATOMIC_ADD combines what is there and the value in one step, and
# gives what was there
store_p = kernel_part("store", multiple_results=True, effects=_writes,
                abstract_eval=lambda *avals, ref, layout, masked, how, out: [] if how is None else [out])
cas_p = kernel_part("compare_and_swap", effects=_writes,
              abstract_eval=lambda *avals, ref, layout, out: out)
program_id_p = kernel_part("program_id", abstract_eval=lambda *, axis: ShapedArray((), "int32"))


class KernelMemory(Memory):
    """The memory of a Ref of a compiled kernel.

    `number` is that of the kernel's argument, of the array type `array`; `blocks` says what part of it the
    Ref is, or is None for all; `space` is the kind of memory, None for the usual one.
    """

    def __init__(self, aval, number, array, blocks=None, space=None):
        self.aval, self.number, self.array, self.blocks, self.space = aval, number, array, blocks, space
        # of a core: how often memory began in it, and does it meet others?
        self.scoped, self.barrier = 0, False

    def __repr__(self):
        return f"Ref {self.number}{{{self.aval.str_short()}}}"

    def access(self, primitive, ref, steps, values):
        """Do get_p, set_p, swap_p or addupdate_p to what the steps of a view select."""
        if primitive is get_p:
            return self.load(ref, steps)
        value, = values
        before = None if primitive is set_p else self.load(ref, steps)
        self.store(ref, steps, add(before, value) if primitive is addupdate_p else value)
        return before if primitive is swap_p else None

    def load(self, ref, steps, mask=None, other=None):
        """The elements that the steps select; where the mask is False they are `other`, or anything."""
        layout, operands, part = self._selected(ref, steps)
        if mask is None:
            return load_p.bind(*operands, ref=ref, layout=layout, masked=False, out=part)
        other = asarray(0 if other is None else other, dtype=part.dtype)
        return load_p.bind(*operands, *[broadcast_to(x, part.shape) for x in (mask, other)], ref=ref,
                           layout=layout, masked=True, out=part)

    def store(self, ref, steps, value, mask=None, how=None):
        """Write, or combine with what is there, which is given back; where a mask is False nothing happens.
        """
        layout, operands, part = self._selected(ref, steps)
        given = [asarray(value, dtype=part.dtype), *([] if mask is None else [mask])]
        found = store_p.bind(*operands, *[broadcast_to(x, part.shape) for x in given], ref=ref, layout=layout,
                             masked=mask is not None, how=how, out=part)
        return found[0] if found else None

    def compare_and_swap(self, ref, steps, old, new):
        """Write `new` where there is `old`, in one step; what was there."""
        layout, operands, part = self._selected(ref, steps)
        given = [broadcast_to(asarray(x, dtype=part.dtype), part.shape) for x in (old, new)]
        return cas_p.bind(*operands, *given, ref=ref, layout=layout, out=part)

    def _selected(self, ref, steps):
        layout, operands = layout_of(steps)
        return layout, operands, part_of(ref.inner_aval, layout, operands)


def kernel_ref(*memory):
    """The Ref of a KernelMemory, for the kernel that is traced inside of the current trace."""
    return Ref(KernelMemory(*memory))


def memory_of(ref):
    """(The Ref, the steps from it, its memory) of a Ref or a view in a compiled kernel; None elsewhere."""
    of, steps = (ref, ()) if type(ref) is Ref else (ref.ref, ref.steps)
    return (of, steps, of._value) if isinstance(of._value, KernelMemory) else None

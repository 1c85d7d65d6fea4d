"""Plant faults in a copy of the library, one at a time, and see whether the nearest tests catch them.

    python tools/plant_faults.py [--only=core,numpy/fft.py,argmax-tie] [--list] [--limit=240]

A row of FAULTS replaces a text that occurs once in a file of the library.  The tree is copied to a temporary folder, the
fault is planted there, and the nearest tests run: the file of tests that mirrors the changed file (tests/core/test_jaxpr.py
for hlotrace/core/jaxpr.py), those that the row names instead or besides, until one fails.  That test is run again without
the fault, and must pass.  What is printed is a table: each fault, the test that caught it or SURVIVED, seconds; and
how many of each folder were caught.  The exit status is 1 where one survived.

Programs that tests compiled before are read from a copy of .pytest_cache/programs: what a fault compiles stays in the copy.
tests/tools/test_plant_faults.py checks that all rows still apply.  To be run by hand: a quarter of an hour for all.
"""
import ast
import dataclasses
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_list("only", [], "names of faults, folders or files; all by default")
flags.DEFINE_bool("list", False, "list the faults and the tests nearest to them, and run nothing")
flags.DEFINE_integer("limit", 240, "seconds after which the tests of a fault are stopped, which counts as caught")

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("hlotrace", "tests", "tools", "examples", "docs", "pyproject.toml", "README.md")


@dataclasses.dataclass(frozen=True)
class Fault:
    """One fault: `old`, which is once in `file` (below hlotrace/), becomes `new`.

    `breaks` says what is wrong then.  `near` are files of tests (below tests/) in place of the mirrored one, `also` more
    of them; `tests` chooses among their tests as pytest's -k does.
    """
    name: str
    file: str
    old: str
    new: str
    breaks: str
    near: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    tests: str = ""

    @property
    def folder(self) -> str:
        return self.file.partition("/")[0]

    @property
    def path(self) -> str:
        return f"hlotrace/{self.file}"

    def nearest(self) -> list[str]:
        """The files of tests, from the root of the tree."""
        folder, _, name = self.file.rpartition("/")
        return [f"tests/{file}" for file in (*(self.near or (f"{folder}/test_{name}",)), *self.also)]

    def planted(self, text: str) -> str:
        """The text of the file with the fault.

        Raises:
            ValueError: where the old text is not there once, or what becomes of it is no Python.
        """
        if (count := text.count(self.old)) != 1:
            raise ValueError(f"{self.name}: {self.path} has {self.old!r} {count} times, and a row of FAULTS needs it once")
        changed = text.replace(self.old, self.new)
        if not _differ(text, changed, text[:text.index(self.old)].count("\n") + 1):
            raise ValueError(f"{self.name}: {self.new!r} is the same program as {self.old!r}")
        return changed


def _differ(text: str, changed: str, line: int) -> bool:
    """Whether two texts, which are alike above a line, are different programs."""
    bodies = [[part for part in ast.parse(each).body if part.end_lineno >= line] for each in (text, changed)]
    return len(bodies[0]) != len(bodies[1]) or any(ast.dump(a) != ast.dump(b) for a, b in zip(*bodies))


FAULTS = (
    # --- core
    Fault("numpy-64-bits", "core/avals.py", "dtype if state.x64 else dtypes.canonicalize(dtype))", "dtype)",
          "NumPy values of 64 bits are not narrowed where these are off"),
    Fault("pickled-vma", "core/avals.py", "return ShapedArray, (self.shape, self.dtype, self.weak_type, self.vma,",
          "return ShapedArray, (self.shape, self.dtype, self.weak_type, frozenset(),", "a pickled type forgets its manual axes"),
    Fault("tangent-vma", "core/avals.py", "dtypes.tangent_dtype(self.dtype), self.weak_type, self.vma,",
          "dtypes.tangent_dtype(self.dtype), self.weak_type, frozenset(),", "the type of tangents forgets the manual axes"),
    Fault("most-elements", "core/avals.py", "math.prod(filter(None, shape)) >= MOST", "math.prod(shape) >= MOST",
          "a shape with a 0 and huge sizes reaches jaxlib, which ends the process"),
    Fault("tangent-sharding", "core/avals.py", "self.weak_type, self.vma,\n                           self.explicit)",
          "self.weak_type, self.vma)", "the type of tangents forgets what Explicit mesh axes split",
          near=("sharding/test_explicit.py", "core/test_avals.py")),
    Fault("without-axis", "sharding/named.py", "*entries[:dim], *entries[dim + 1:]", "*entries[:dim], *entries[dim:-1]",
          "a slice is split as the axis that it lacks", near=("sharding/test_explicit.py",)),
    Fault("explicit-only", "sharding/named.py", "if name in names)", "if name)", "Auto axes are in types",
          near=("sharding/test_explicit.py",)),
    Fault("conflict", "sharding/explicit.py", "if known != split:", "if known != split and not split:",
          "operands that are split otherwise meet without an error"),
    Fault("used-twice", "sharding/explicit.py", "if used.count(name) > 1:", "if used.count(name) > 2:",
          "one mesh axis splits two dimensions of a type"),
    Fault("contracted", "sharding/explicit.py", "label not in (None, *in_results) and first != number", "False",
          "a sum over split dimensions says nothing of where its result is"),
    Fault("refused", "sharding/explicit.py", 'if label is None and computed == "refused":', "if False:",
          "what is computed along a split dimension is split along it"),
    Fault("cotangent-type", "transforms/transpose.py", "as_type(ct, v.aval.cotangent()) if ct", "ct if ct",
          "a cotangent is not split as its primal is", near=("sharding/test_explicit.py",
                                                            "sharding/test_programs_twice.py")),
    Fault("integer-limits", "core/dtypes.py", "info.min <= value <= info.max", "info.min <= value < info.max",
          "the greatest integer of a dtype is taken for too large"),
    Fault("weak-join", "core/dtypes.py", "return dtypes[0], all(weak for", "return dtypes[0], any(weak for",
          "a strong value beside a weak one of its dtype gives a weak result"),
    Fault("lattice-uint32", "core/dtypes.py", "uint32: [int64, uint64]", "uint32: [uint64]",
          "uint32 and a signed dtype promote to a float"),
    Fault("promotion-x64", "core/dtypes.py", 'jax_numpy_dtype_promotion == "strict", state.x64)',
          'jax_numpy_dtype_promotion == "strict", True)', "the cache of promotions forgets whether 64 bits are on"),
    Fault("output-literal", "core/jaxpr.py", "return [literal_value(v) if type(v)", "return [v.val if type(v)",
          "an output that is a literal loses its dtype"),
    Fault("dce-effects", "core/jaxpr.py", "if eqn.effects or not live.isdisjoint(eqn.outvars):",
          "if not live.isdisjoint(eqn.outvars):", "dead code includes what has effects"),
    Fault("dce-names", "core/jaxpr.py", "arg_names=jaxpr.arg_names if keep_invars or not jaxpr.arg_names else [",
          "arg_names=jaxpr.arg_names if True else [", "inputs that are left have the names of those that went"),
    Fault("typecheck-dtype", "core/jaxpr.py", "if v.aval.shape != aval.shape or v.aval.dtype != aval.dtype:",
          "if v.aval.shape != aval.shape:", "check_jaxpr does not see a wrong dtype"),
    Fault("constant-key", "core/programs.py", "    if kind in (bool, int, float):\n        return kind, value",
          "    if kind in (bool, int, float):\n        return float, value",
          "a cached program forgets the type of its constant: 1, 1.0 and True are one", also=("core/test_cache_keys.py",),
          tests="constant or test_programs"),
    Fault("remat-first", "core/programs.py", "next(outs) in saved and i >= first", "next(outs) in saved",
          "an output that must not be used as a saved value is"),
    Fault("late-option", "core/trace.py", "                sync()", "                pass",
          "an option that another thread set while this one traced is never picked up"),
    Fault("inner-buffers", "core/trace.py", "if self.buffers or self.inner:", "if self.buffers:",
          "a NumPy array that only an inner function has seen may change unnoticed"),
    Fault("user-context-type", "core/config.py", "options += [(key, type(value), value)", "options += [(key, value)",
          "1, 1.0 and True in a context of the user's are one trace key", also=("core/test_cache_keys.py",),
          tests="test_config or context"),
    Fault("seed-offset", "core/config.py", '"jax_random_seed_offset": (0, _int, True)',
          '"jax_random_seed_offset": (0, _int, False)', "what was traced with another seed offset is used again",
          also=("core/surface/test_all_options.py",), tests="test_config or seed"),
    Fault("source-column", "core/source_info.py", "column = 0 if line is None else (column or 0) + 1",
          "column = 0 if line is None else (column or 0)", "columns of locations are one too small"),
    Fault("cache-limit", "core/caches.py", "            with _lock:\n                while len(entries) > self.limit:",
          "            with _lock:\n                while len(entries) > 2 * self.limit:",
          "a bounded cache holds twice its limit"),
    Fault("symbolic-power", "core/symbolic/dimension.py", "powers[atom] = powers.get(atom, 0) + power",
          "powers[atom] = power", "a symbolic size times itself is itself"),
    Fault("ref-lent", "core/refs.py", "(self._shared or state.check_floats or state.check_bounds)",
          "(self._shared or state.check_floats)", "a Ref whose index is checked loses its value to the call that fails",
          also=("numpy/indexing/test_refs.py",)),
    Fault("ref-poisoned", "core/refs.py", "POISONED if not isinstance(value, Tracer) and value.is_deleted() else value", "value",
          "a Ref whose memory a failed call has taken holds a deleted array", also=("numpy/indexing/test_refs.py",)),
    Fault("symbolic-solve", "core/symbolic/scope.py", "if key in d.terms and variable not in variables(rest):", "if key in d.terms:",
          "a variable is solved for from a size in which it is twice"),
    Fault("symbolic-parentheses", "core/symbolic/scope.py", "return i == len(text) - 1", "return i <= len(text) - 1",
          "the parentheses of a first and a last size are taken for those of the shape"),
    Fault("rest-names", "core/pytrees/key_paths.py", "{rest}[{i - taken}]", "{rest}[{i}]",
          "arguments of *rest are counted from the first of all", near=("core/pytrees/test_key_paths.py",)),
    Fault("prefix-lengths", "core/pytrees/pytree.py", "len(inner) == len(outer)\n            and all", "all",
          "a prefix with fewer entries than the value passes"),
    Fault("renumbered-axes", "core/axes.py", "return axes + (axes >= at) if", "return axes + (axes > at) if",
          "an axis parameter is not moved on by a new axis in its place"),
    Fault("debug-infs", "core/config.py", 'values["jax_debug_nans"] or values["jax_debug_infs"]', 'values["jax_debug_nans"]',
          "debug_infs alone looks at nothing"),
    Fault("leak-cycles", "core/leaks.py", "gc.collect()        # what", "pass        # what", "what only a cycle holds is a leak"),
    # --- runtime
    Fault("memory-efforts", "runtime/executables/compilation.py",
          "tuple(sorted(compiler_options.items())), efforts)", "tuple(sorted(compiler_options.items())))",
          "executables in memory serve other levels of effort", near=("core/test_cache_keys.py",)),
    Fault("disk-platform-version", "runtime/executables/disk_cache.py",
          "device.device_kind.encode(), device.client.platform_version.encode(),", "device.device_kind.encode(),",
          "programs on disk serve another version of the platform", near=("core/test_cache_keys.py",)),
    Fault("disk-results", "runtime/executables/disk_cache.py", "found != (takes, gives)", "found[0] != takes",
          "a file with the code of a program of other results is taken"),
    Fault("disk-eviction", "runtime/executables/disk_cache.py", "return sorted(found)",
          "return sorted(found, reverse=True)", "the programs used last are evicted first"),
    Fault("disk-pieces", "runtime/executables/disk_cache.py", "if seconds * pieces <", "if seconds <",
          "pieces of a program that takes long are not stored"),
    Fault("shared-callbacks", "runtime/executables/compilation.py",
          "once = bool(lowered.callbacks or lowered.inspections)", "once = bool(lowered.inspections)",
          "a program with a callback runs that of another with the same text",
          also=("api/external/test_callbacks.py",)),
    Fault("donated-twice", "runtime/executables/executable.py", "if held.count(held[i]) > 1:", "if held.count(held[i]) > 2:",
          "a buffer that is donated and passed a second time is read after it was freed",
          also=("lowering/test_donation.py",)),
    Fault("run-donated", "runtime/evaluate.py", "key = jaxpr, where, donated", "key = jaxpr, where",
          "a program that donates serves where nothing is to be donated"),
    Fault("run-pruned-ins", "runtime/evaluate.py", "where.ins[i] for i in kept", "where.ins[i] for i, _ in enumerate(kept)",
          "shardings of inputs are off where an input before them is not used"),
    Fault("block-donated-twice", "runtime/executables/blocks.py", "if times[id(buffers[i])] == 1}",
          "if times[id(buffers[i])] >= 1}", "a program in pieces frees a donated buffer that it got twice"),
    Fault("block-outputs", "runtime/executables/blocks.py", "if type(v) is Literal or v in seen:", "if type(v) is Literal:",
          "two results of a program in pieces are one buffer"),
    Fault("spec-of-tiles", "runtime/executables/spmd.py", "where[dim] // (inner // size) % size, at[axis])",
          "where[dim] // (inner // size), at[axis])", "an axis that is split over two mesh axes is not said as a spec"),
    Fault("result-words", "runtime/executables/spmd.py", "if a.ndim == ndim and type(s) is NamedSharding\n", "if type(s) is NamedSharding\n",
          "a result takes the sharding of an argument of another rank"),
    Fault("replica-ids", "runtime/devices/shards.py", "copies.get(where, -1) + 1", "copies.get(where, 0) + 1",
          "replica_id counts from 1"),
    Fault("relayout-piece", "runtime/devices/relayout.py", "both = [(max(a, c), min(b, d))", "both = [(max(a, c), b)",
          "parts of an array that moves to another sharding are cut too long"),
    Fault("zero-sign", "runtime/array_impl.py", "value if value and kind is not complex else repr(value)", "value",
          "0.0 and -0.0 are one buffer"),
    Fault("same-bits", "runtime/array_impl.py", "for i in range(0, a.size, step))", "for i in range(0, min(a.size, step), step))",
          "a large NumPy array that is rewritten at its end is taken for unchanged"),
    Fault("guard-explicit", "runtime/devices/transfer_guards.py", 'if level.endswith("_explicit") or level',
          "if level", "disallow_explicit lets device_put between devices pass"),
    Fault("process-index", "runtime/devices/client.py", "if not 0 <= index < process_count", "if not 0 <= index <= process_count",
          "the devices of a process that is not there are an empty list"),
    Fault("platform-names", "runtime/devices/client.py", 'map(str.strip, (option or "").split(","))', '(option or "").split(",")',
          "a blank after the comma of jax_platforms makes an unknown platform"),
    Fault("thread-guard", "runtime/devices/transfer_guards.py", "            _guardian = saved", "            _guardian = None",
          "a thread guard inside of another one ends both", also=("core/surface/test_all_options.py",), tests="guard"),
    Fault("bounds-kind", "runtime/executables/runtime_checks.py", "if found and found[0].kind is OOBError:", "if found:",
          "a NaN in a program with checks is an index out of bounds"),
    Fault("kernel-again", "runtime/executables/kernels.py", "_registered.discard(key)", "_registered.add(key)",
          "a kernel of the user's is never told to jaxlib"),
    Fault("device-order", "runtime/executables/spmd.py", "elif s._devices != devices:", "elif set(s._devices) != set(devices):",
          "arrays over the same devices in another order are taken for alike"),
    Fault("own-scalar", "runtime/array_impl.py", "                 or isinstance(value, np.ndarray) and not value.ndim)", "                 )",
          "a NumPy array of rank 0 that is donated takes the cached scalar with it", also=("lowering/test_donation.py",)),
    Fault("relative-cache", "runtime/executables/disk_cache.py", "return os.path.abspath(chosen)", "return chosen",
          "a relative directory of programs is another one after chdir"),
    # --- lowering
    Fault("manual-axes", "lowering/module.py", "key = jaxpr, self.manual", "key = jaxpr",
          "a function that is called inside shard_map and outside is written once", near=("core/test_cache_keys.py",),
          tests="manual"),
    Fault("outline-barrier", "lowering/outline.py", "        if eqn.effects:\n            tokens",
          "        if not eqn.primitive:\n            tokens", "effects are no barrier to outlining"),
    Fault("outline-results", "lowering/outline.py", "if any(used.get(v, -1) >= s + length", "if any(used.get(v, -1) > s + length",
          "a block does not give what only the next equation uses"),
    Fault("outline-wiring", "lowering/outline.py", "groups.setdefault(wires, [])", "groups.setdefault(len(wires), [])",
          "stretches with the same equations and another dataflow are one function"),
    Fault("structure-literals", "lowering/outline.py", "literal.key = literal.aval, key", "literal.key = literal.aval, None",
          "constants of equal types are one constant to outlining"),
    Fault("location-scope", "lowering/module.py", "key = (source, path)", "key = source",
          "operations of one line have the scope of the first"),
    Fault("constant-shape", "lowering/module.py", "key = (aval, value.tobytes())", "key = (aval.dtype, value.tobytes())",
          "zeros of two shapes are one constant"),
    Fault("region-constants", "lowering/module.py", "{} if isolated else dict(self.constants)",
          "{} if isolated else self.constants", "a constant that is written in a region is used after it"),
    Fault("one-device-call", "lowering/module.py", "return not self.manual[1] and self.partition", "return self.partition",
          "a kernel inside shard_map is called by one device"),
    Fault("donor-attribute", "lowering/module.py", '["jax.buffer_donor = true" if i in donated else ""',
          '["jax.buffer_donor = true" if not donated else ""', "programs over devices do not reuse donated memory"),
    Fault("noinline", "lowering/module.py", "if self.platform.keeps_calls and jaxpr in", "if jaxpr in",
          "calls are kept from inlining on platforms that cannot call"),
    Fault("donated-result", "lowering/donation.py", "            if j not in taken:", "            if j >= 0:",
          "two donated inputs are given one result"),
    Fault("donated-kind", "lowering/donation.py", "return physical(aval).shape, physical(aval).dtype",
          "return physical(aval).shape", "a result takes the memory of an input of another dtype"),
    Fault("layout-default", "lowering/custom_calls.py", "order = range(aval.ndim - 1, -1, -1)", "order = range(aval.ndim)",
          "the layout of an operand that has none is column-major"),
    Fault("quoted-del", "lowering/custom_calls.py", "if 32 <= b < 127 and", "if 32 <= b <= 127 and",
          "the character 127 is written into a string as it is"),
    Fault("factor-names", "lowering/custom_calls.py", 'f"z_{factor - 17}"', 'f"z_{factor - 18}"',
          "the 19th factor of a sharding rule has a name that Shardy does not know"),
    Fault("splat-zero", "lowering/constants.py", "return bool((data == data[0]).all())", "return bool((flat == flat[0]).all())",
          "a constant of 0.0 and -0.0 is written as one number"),
    Fault("symbolic-floor", "lowering/symbolic_shapes.py", 'self.compare("NE", *(super', 'self.compare("EQ", *(super',
          "quotients of symbolic sizes are rounded the wrong way", also=("core/symbolic/test_dimension.py",)),
    Fault("symbolic-constraint", "lowering/symbolic_shapes.py", '"EQ" if equal else "GE"', '"GE" if equal else "EQ"',
          "exported programs assert the wrong constraints", also=("core/symbolic/test_dimension.py",)),
    Fault("outline-integers", "lowering/outline.py", "for v in column}) == 1):", "for v in column}) >= 1):",
          "integers that differ between blocks are those of the first"),
    Fault("alias-dtype", "lowering/donation.py", "alike = kind(jaxpr.invars[i].aval) == kind(outs[j])", "alike = True",
          "a donated input is aliased to a result of another dtype and the same size"),
    Fault("donated-size", "lowering/donation.py", "for fit in (kind, size):", "for fit in (kind,):",
          "a donated input that only fits a result of another dtype is not reused"),
    Fault("symbolic-least", "lowering/symbolic_shapes.py", 'self.compare("GE", value, self.size(1))', 'self.compare("GT", value, self.size(1))',
          "a symbolic size of 1 is refused", also=("core/symbolic/test_dimension.py",)),
    Fault("symbolic-square", "lowering/symbolic_shapes.py", "[self.atom(atom)] * power]", "[self.atom(atom)]]",
          "the square of a symbolic size is computed as the size", also=("core/symbolic/test_dimension.py",)),
    Fault("replicated-mesh", "lowering/module.py", "for mesh, name in self.meshes.items() if mesh is not None), None)",
          "for mesh, name in self.meshes.items()), None)", "what all devices hold is said over the mesh of one device"),
    Fault("call-dialect", "lowering/module.py", 'call = "func.call" if self.module.manual[1] else "call"', 'call = "call"',
          "a function called within shard_map is looked for in Shardy's dialect"),
    Fault("kept-targets", "lowering/module.py", "self.module.targets.setdefault(target)", "target",
          "kernels that a program calls are not registered"),
    # --- numpy
    Fault("half-sums", "numpy/reductions/reductions.py", "dtype.itemsize < 4 else dtype", "dtype.itemsize < 2 else dtype",
          "half floats are summed in half", also=("numpy/reductions/test_statistics.py",), tests="half or narrow or bfloat16"),
    Fault("falling-slices", "numpy/indexing/indexing.py", "len(how) == 1 or how[2] > 0 for", "len(how) == 1 or how[2] for",
          "scatters claim sorted positions for falling slices", near=("numpy/indexing/test_index_claims.py",)),
    Fault("weight-of-nan", "numpy/reductions/statistics.py", "weights = select(missing, 0.0, as_rows(cast(weights, dtype_of(rows))))",
          "weights = as_rows(cast(weights, dtype_of(rows)))", "weighted nanquantile counts the weights of NaN"),
    Fault("minmax-initial", "numpy/reductions/reductions.py", "    low, high = initial if", "    high, low = initial if",
          "the pair of initial values of minmax is swapped"),
    Fault("average-axes", "numpy/reductions/statistics.py", "order = sorted(range(len(axes)), key=axes.__getitem__)",
          "order = list(range(len(axes)))", "weights along axes out of order are not transposed"),
    Fault("variance-count", "numpy/reductions/statistics.py", "select(gt(count, 0), div(total, count)",
          "select(ge(count, 0), div(total, count)", "the variance of n values with ddof=n is infinite"),
    Fault("unique-columns", "numpy/reductions/sets.py", "num_keys=width)", "num_keys=1)",
          "distinct rows are sorted by their first column alone"),
    Fault("argsort-stable", "numpy/reductions/sorting.py", "(rev_p.bind(x, dimensions=(axis,)) for x in (a, places))",
          "(x for x in (a, places))", "equal elements are reversed by a descending argsort"),
    Fault("bisection-steps", "numpy/reductions/sorting.py", "n.bit_length(), step", "(n - 1).bit_length(), step",
          "searchsorted by bisection stops a step early"),
    Fault("last-bin", "numpy/reductions/sorting.py", "place = select(on_last_edge, n - 1, searchsorted(edges, a, \"right\"))",
          "place = searchsorted(edges, a, \"right\")", "the last bin of a histogram leaves out its right edge"),
    Fault("moveaxis-order", "numpy/arrays/shaping.py", "in sorted(zip(destination, source)):", "in zip(destination, source):",
          "several axes are moved to wrong places"),
    Fault("bucket-rest", "numpy/indexing/segments.py", "(-(-ids.shape[0] // bucket_size),)", "(ids.shape[0] // bucket_size,)",
          "rows of the last bucket are lost where it is not full"),
    Fault("window-flip", "numpy/indexing/indexing.py", "start + (size - 1) * step, -step", "start + size * step, -step",
          "falling slices begin one too early"),
    Fault("interp-last", "numpy/calculus.py", "1, xp.shape[0] - 1)", "0, xp.shape[0] - 1)",
          "interp before the first point extrapolates along the wrong points"),
    Fault("unwrap-half", "numpy/calculus.py", "where((wrapped == -half) & (jump > 0), half, wrapped)", "wrapped",
          "unwrap turns a jump of exactly half a period round"),
    Fault("covariance-weights", "numpy/reductions/statistics.py", "div(sum_(mul(weights, much)), total)", "div(sum_(weights), total)",
          "the divisor of a covariance with aweights is wrong"),
    Fault("einsum-ones", "numpy/contraction.py", "if sizes.setdefault(c, n) in (1, n):", "if sizes.setdefault(c, n) == 1:",
          "einsum refuses a label of equal sizes"),
    Fault("einsum-implicit", "numpy/contraction.py", "if used.count(c) == 1)", "if used.count(c))",
          "einsum without an arrow keeps the letters that are summed over"),
    Fault("kron-order", "numpy/contraction.py", 'map("".join, zip(rows, columns))', 'map("".join, zip(columns, rows))',
          "the Kronecker product of b and a"),
    Fault("mirrored-norm", "numpy/fft.py", "_transformed(\"ihfft\", FftType.RFFT, a, None if n is None else (n,), (axis,),\n"
          "                                  _mirrored(norm))", "_transformed(\"ihfft\", FftType.RFFT, a, None if n is None else (n,),"
          " (axis,), norm)", "ihfft is scaled as hfft"),
    Fault("frequencies-odd", "numpy/fft.py", "lambda n: (n + 1) // 2)", "lambda n: n // 2)",
          "frequencies of an odd number of samples lack one"),
    Fault("polyint-constants", "numpy/polynomials.py", "return concatenate([p, k]) / _column", "return concatenate([p, k[::-1]]) / _column",
          "constants of integration are used in the other order"),
    Fault("nonzero-fill", "numpy/indexing/conditions.py", "e.select(lt(place, 0), filling, coordinate)", "e.select(lt(place, 1), filling, coordinate)",
          "nonzero gives its fill value for the first element"),
    Fault("select-order", "numpy/indexing/conditions.py", "zip(reversed(conditions), reversed(choices))", "zip(conditions, choices)",
          "select takes the last condition that holds"),
    Fault("choose-wrap", "numpy/indexing/selection.py", "a = remainder(a, n) if wrap else", "a = clip(a, 0, n) if wrap else",
          "choose with wrap does not count around"),
    Fault("place-turn", "numpy/indexing/selection.py", "remainder(cumsum(mask) - 1, vals.size)", "remainder(cumsum(mask), vals.size)",
          "place begins with the second value"),
    Fault("norm-lines", "numpy/linalg.py", "(rows, columns) if ord in (1, -1) else", "(rows, columns) if ord in (1, np.inf) else",
          "the infinity norm of a matrix sums columns"),
    Fault("solve-transposed", "numpy/linalg.py", "unit_diagonal=True)[argsort(order)]", "unit_diagonal=True)[order]",
          "the derivative of solve permutes rows the wrong way"),
    # --- transforms, primitives, api, export, scipy
    Fault("scan-stacked-keys", "transforms/key_reuse.py", 'carried = outs[:params["num_carry"]]', "carried = outs",
          "what scan stacks is taken for its carry in the search for keys used twice"),
    Fault("saved-effects", "transforms/partial_eval.py", "if choice and not eqn.effects:", "if choice:",
          "a checkpoint policy saves what has effects, which then does not happen again", near=("api/test_checkpoint_policies.py",)),
    Fault("argmax-tie", "primitives/arrays/reduce.py", "and_p.bind(eq(x, y), lt(i, j))", "and_p.bind(eq(x, y), lt(j, i))",
          "argmax of a tie off the CPU is the last", near=("lowering/test_other_platforms.py",), tests="extreme"),
    Fault("unaligned-vectors", "export/flatbuffers.py", "self.align(max(step, 4), 4)", "self.align(4, 4)",
          "vectors of 8-byte numbers in a FlatBuffer are not aligned"),
    Fault("mapped-zeros", "transforms/vmap.py", "[d is not None or f for d, f", "[d is not None for d, f",
          "outputs that are to be batched are not", near=("api/test_vmap.py", "lax/test_control_flow.py")),
    Fault("named-axis-unmapped", "transforms/vmap.py", "if not (mapped or axis.name is not None and axis.name in primitive.axis_names_of(params)",
          "if not (mapped", "a collective on what is not mapped leaves out the mapped axis", near=("house/test_named_axes.py",)),
    Fault("rank-ties", "scipy/stats/descriptive.py", "(first + final) / 2", "(first + final) // 2",
          "the mean rank of ties is rounded down"),
    Fault("gamma-sign", "scipy/special/closed_form.py", "(x > 0) | (floor % 2 == 0)", "(x > 0) | (floor % 2 == 1)",
          "the sign of gamma is wrong below 0", near=("scipy/special/test_special.py",)),
)


def chosen(only: list[str]) -> list[Fault]:
    """The faults of these names, and those in these folders and files; all for none.

    Raises:
        ValueError: for one that there is not.
    """
    def has(fault: Fault, text: str) -> bool:
        return fault.name == text or fault.file.startswith(text.removeprefix("hlotrace/"))
    for text in only:
        if not any(has(fault, text) for fault in FAULTS):
            raise ValueError(f"no fault is called {text!r}, or is in such a file: --list shows all")
    return [fault for fault in FAULTS if not only or any(has(fault, text) for text in only)]


class Copy:
    """A copy of the tree in which tests run."""

    def __init__(self, where: str) -> None:
        self.root = Path(where) / "tree"
        self.root.mkdir()
        ignored = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, self.root / name, ignore=ignored)
            else:
                shutil.copy2(ROOT / name, self.root / name)
        self.programs = Path(where) / "programs"
        compiled = ROOT / ".pytest_cache" / "programs"
        if compiled.is_dir():
            shutil.copytree(compiled, self.programs)

    def write(self, path: str, text: str) -> None:
        """Write a file of the copy, and forget what Python has compiled of it: it goes by the second and the size."""
        file = self.root / path
        file.write_text(text, "utf-8")
        for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
            compiled.unlink()

    def failing(self, tests: list[str], choose: str = "", limit: float | None = None) -> str | None:
        """The first test that fails, or how the run ended otherwise; None where all pass.

        Raises:
            RuntimeError: where no test was run.
        """
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--tb=no", *tests]
        command += ["-k", choose] if choose else []
        environment = os.environ | {"PYTHONPATH": str(self.root), "HLOTRACE_TEST_PROGRAMS": str(self.programs)}
        running = subprocess.Popen(command, cwd=self.root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, start_new_session=True)
        try:
            said, _ = running.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)      # with the processes that tests started
            running.communicate()
            return f"(not done in {limit} s)"
        if running.returncode in (4, 5):
            raise RuntimeError(f"no tests were run by {' '.join(command)}:\n{said}")
        if running.returncode == 0:
            return None
        found = re.search(r"^(?:FAILED|ERROR) (\S+?::.*?|\S+)(?: - .*)?$", said, re.MULTILINE)
        return found[1] if found else f"(the run ended with status {running.returncode})"


def caught_by(copy: Copy, fault: Fault, limit: float) -> str | None:
    """The test that catches a fault, or None.

    Raises:
        RuntimeError: where that test, or without one the run, fails without the fault too.
    """
    sound = (ROOT / fault.path).read_text("utf-8")
    copy.write(fault.path, fault.planted(sound))
    try:
        found = copy.failing(fault.nearest(), fault.tests, limit)
    finally:
        copy.write(fault.path, sound)
    if found:
        again = copy.failing([found]) if "::" in found else copy.failing(fault.nearest(), fault.tests)
        if again:
            raise RuntimeError(f"{fault.name}: {again} fails without the fault too")
    return found


def main(argv: list[str]) -> int:
    faults = chosen(FLAGS.only)
    if FLAGS.list:
        for fault in faults:
            print(f"{fault.name:<24}{fault.file}: {fault.breaks}\n{'':<24}{', '.join(fault.nearest())}"
                  + (f" -k {fault.tests!r}" if fault.tests else ""))
        return 0
    caught, wrong = Counter(), 0
    with tempfile.TemporaryDirectory(prefix="hlotrace-faults-") as where:
        copy = Copy(where)
        for fault in faults:
            start = time.perf_counter()
            try:
                found = caught_by(copy, fault, FLAGS.limit)
            except (RuntimeError, ValueError) as error:
                found, wrong = f"ERROR {error}", wrong + 1
            else:
                caught[fault.folder] += found is not None
            seconds = time.perf_counter() - start
            print(f"{fault.folder:<12}{fault.name:<24}{seconds:>5.0f} s  {found or 'SURVIVED: ' + fault.breaks}", flush=True)
    for folder, number in Counter(fault.folder for fault in faults).items():
        print(f"{folder:<12}{caught[folder]} of {number} caught")
    print(f"{'all':<12}{caught.total()} of {len(faults)} caught")
    return int(caught.total() < len(faults) or wrong > 0)


if __name__ == "__main__":
    app.run(main)

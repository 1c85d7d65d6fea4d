"""Write docs/differences.md: how hlotrace differs from JAX.

    python tools/differences.py            writes it
    python tools/differences.py --check    writes nothing, and ends with status 1 if it is out of date

What is done otherwise on purpose is the table below, each row with the test that shows it.  The rest is read from the code:
what raises NotImplementedError, options (JAX's are in jax_options.txt), and the list of names that tools/missing.py writes.
"""
import ast
import importlib
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from hlotrace.core import config  # noqa: E402
from hlotrace.core.surface import other_options  # noqa: E402 - after the path
from hlotrace.core.surface.missing_names import NAMES  # noqa: E402

PAGE = ROOT / "docs" / "differences.md"
HEADER = "<!-- Written by tools/differences.py, from its table and the code: not to be edited. -->\n"

# (what, JAX's way, hlotrace's way, the test that shows it)
ON_PURPOSE = [
    ("a program found again",
     "by its function object: `jit(lambda ...)` in a loop compiles each time",
     "compiled programs are found by their text too, so it compiles once",
     "test_a_jit_of_an_equal_function_does_not_compile_again"),
    ("static arguments",
     "equal ones are the same: `f(x, (1,))` is `f(x, (1.0,))`",
     "equal values of other types, or zeros of other signs, are different, also inside containers",
     "test_static_values_are_told_apart_by_type_and_sign"),
    ("a function traced again and again",
     "silent, unless `jax_explain_cache_misses`",
     "from the third time a line on stderr says what changed; `jax_explain_cache_misses` off is silent",
     "test_messages_start_at_the_third_retrace_and_thin_out"),
    ("compiled programs on disk",
     "only where `jax_compilation_cache_dir` is set",
     "kept by default if they took a second to compile; `jax_enable_compilation_cache` off keeps none",
     "test_the_next_process_compiles_nothing_even_from_another_file_and_line"),
    ("repeated layers",
     "compiled as often as they stand in the program",
     "on the CPU compiled once, and the program runs in pieces; `hlotrace_outline` off compiles it whole",
     "test_a_training_step_is_few_executables_run_often_with_the_same_results"),
    ("NaN among 4,096 floats or more in `max`, `min`, `ptp`, norms and pooling, on the CPU",
     "may be left out by XLA's library of reductions",
     "in the result; where the compiler divides arrays over CPU devices max and min may leave it out as well",
     "test_a_nan_among_thousands_is_found"),
    ("programs on few elements or of elementwise operations alone, on CPU devices with jaxlib 0.10",
     "compiled as large ones",
     "compiled in half the time, and sums may round otherwise; `compiler_options={'xla_cpu_use_fusion_emitters': True}`"
     " compiles them as JAX does",
     "test_small_programs_are_compiled_in_less_time"),
    ("`jax_debug_key_reuse`: a key array that is unpacked or iterated over twice",
     "not seen",
     "KeyReuseError, as for its elements one by one",
     "test_a_key_used_twice"),
    ("`jax_debug_key_reuse` where `checkpoint` computes random numbers again",
     "KeyReuseError",
     "no error: they are the same numbers",
     "test_a_key_used_once"),
    ("the derivative of `random.loggamma` where the value is too small for its exponential",
     "that of the smallest number that there is",
     "the limit, (digamma(a + 1) - log x) / a",
     "test_gamma_values_move_with_their_parameter"),
    ("`random.poisson` with keys of `rbg` and `unsafe_rbg`",
     "NotImplementedError",
     "drawn as with other keys",
     "test_poisson_takes_any_key"),
    ("derivatives of `lax.linalg.eigh` and `cholesky` with `symmetrize_input=False`",
     "those of a symmetric matrix (`cholesky`: until JAX 0.10)",
     "those of the triangle that is read",
     "test_the_triangle_that_is_not_read_has_no_gradient"),
    ("derivatives of a wide `qr(pivoting=True)`",
     "those of R are wrong",
     "as finite differences have them",
     "test_derivatives_of_a_wide_pivoted_qr"),
    ("`subset_by_index` of `lax.linalg.eigh` and `svd`",
     "only on TPU",
     "everywhere, as a part of all",
     "test_a_part_of_the_eigenvalues"),
    ("derivatives of `scipy.linalg.solve` with `assume_a='pos'`",
     "by both triangles",
     "by the triangle that is read",
     "test_slopes_are_those_of_the_triangle_that_is_read"),
    ("`lax.linalg.cholesky_update`, `symmetric_product`, `ormqr`",
     "no derivatives, and the update takes no batch",
     "both, of `ormqr` with respect to `c`",
     "test_derivatives"),
    ("zeros, infinities and NaN in complex `exp`, `log`, `sqrt`, `sinh`, ..., and in `floor_divide` and `remainder`",
     "often NaN, or a zero with the other sign",
     "as the array API standard has them",
     "test_special_values_of_the_array_api_standard"),
    ("the derivative of complex `acosh` left of the imaginary axis",
     "with the other sign",
     "as differences have it",
     "test_slopes_of_complex_functions_in_each_quadrant"),
    ("the derivative of `sign` of complex numbers, z / |z|",
     "0",
     "that of z / |z|",
     "test_slopes_of_complex_functions_in_each_quadrant"),
    ("derivatives of `sinc` at small numbers",
     "differences of large numbers: -8e8 for -3.3 at 1e-8 in float32",
     "right in all digits but the last",
     "test_slopes_of_sinc_near_zero_do_not_cancel"),
    ("norms, `nn.standardize`, `average`, `corrcoef`, `histogram`, `bincount` and segment sums of float16, bfloat16",
     "squares, products and counts in that dtype: inf from 256 on, and ones add up to 256, in `histogram` to 2048",
     "in float32, as other sums",
     "test_narrow_floats_are_computed_with_in_float32"),
    ("derivatives of `x**y` at `x = 0`, `y` a float 0, and again at 1; of `nn.gelu` of float16 above 148, of"
     " `nn.sparse_plus` at -inf; `gcd` of the least integer",
     "NaN; -1",
     "0, 0; 1 or 0; 0; not negative",
     "test_edges"),
    ("`quantile(method='nearest')` halfway between two elements",
     "the lower one",
     "that at the even position, as in NumPy",
     "test_quantiles"),
    ("linear algebra on a platform without a kernel for it (`eig`, `hessenberg`, complex `schur`, ... on TPU)",
     "NotImplementedError",
     "loops over array operations",
     "test_each_platform_has_a_lowering"),
    ("a shape with more elements than XLA counts",
     "the process is aborted",
     "ValueError",
     "test_shapes_with_too_many_elements"),
    ("a child of `fork` after its parent has computed",
     "may hang",
     "RuntimeError where it would",
     "test_a_child_of_fork_is_told_where_its_parent_has_computed"),
    ("shapes that do not fit",
     "TypeError or ValueError, by the ranks",
     "`errors.ShapeError`, which is both",
     "test_what_would_make_shapes_fit_is_said"),
    ("a NumPy array that is rewritten while a function that reads it is traced",
     "what its uses see depends on when they are compiled",
     "each use has the numbers of its time",
     "test_each_use_of_a_buffer_has_the_numbers_of_its_time"),
    ("an index that is a Python int out of bounds",
     "silent: `x[10]` reads the nearest element, `x.at[10].set(...)` does nothing; `jax_check_static_indices` on refuses the "
     "former",
     "the same, and one line on the logger for each line of yours; `jax_check_static_indices` on refuses both, also in `take`, "
     "`put`, `insert`, `unravel_index`, `lax.dynamic_index_in_dim`, unless `mode=` says what is meant",
     "test_each_line_is_logged_once"),
    ("an index out of bounds that is only known when the program runs",
     "silent: reads are clamped or filled, writes dropped; `checkify.index_checks` tells in functions that return errors",
     "as in JAX; with the option `hlotrace_check_bounds` an IndexError with index, axis, size and line, unless `mode=` says "
     "otherwise",
     "test_out_of_bounds"),
    ("what `jax_debug_nans` and `jax_debug_infs` say of a compiled function",
     "it runs again, an operation at a time: side effects happen twice",
     "it runs once more as one program with checks, or has them from the start where it has effects or donates",
     "test_effects_happen_once"),
    ("`checkify` of a mapped `while_loop`, `cond` or `shard_map`",
     "a loop with a mapped condition is refused, checks of branches not taken fail, and loops in `shard_map` are refused",
     "each element, and each device, is checked where it goes; of several the first tells",
     "test_the_first_failure_is_a_value"),
    ("a donated buffer that no result can use",
     "a warning with its type",
     "a warning with the argument, the nearest result and why that does not fit",
     "test_a_donated_argument_that_no_result_fits_is_told_of"),
    ("memory of a GPU",
     "three quarters of it are taken at the start",
     "taken as needed; `XLA_PYTHON_CLIENT_PREALLOCATE=true` takes it at the start",
     "test_gpu_memory_is_taken_as_it_is_needed"),
    ("the type of a value that no Explicit mesh axis splits",
     "names the mesh of the value",
     "is the same over any mesh; its `sharding` is over the mesh in use",
     "test_types_say_which_explicit_axes_split_what"),
    ("`select`, `concatenate`, `sort` and loops of an operand that Explicit axes split and a new one, as of `zeros`",
     "refused while a mesh is in use",
     "the new one goes with it; what is known to be whole over the mesh is refused",
     "test_operands_that_are_split_alike_go_together"),
    ("a value over the devices of the mesh in use, in axes of other types",
     "refused by most operations", "it is computed with",
     "test_values_over_axes_of_other_types_are_computed_with"),
    ("negatives, differences, quotients by numbers, slices and products with what is whole of unreduced values",
     "ShardingTypeError, NotImplementedError or ValueError",
     "the terms are computed with: the function of the sum is the sum of the functions",
     "test_linear_functions_of_terms_give_terms"),
    ("a loop inside `shard_map` with `check_vma=True`",
     "its carry must vary as it will: `lax.pcast` makes it",
     "it is made to vary as it will",
     "test_the_carry_of_a_loop_varies_as_it_will"),
    ("`scipy.optimize.minimize(tol=)`; a line search where values differ by rounding alone",
     "`tol` is not read; the search fails, on Rosenbrock's function from 0 after one step",
     "`tol` is in place of gtol and ftol; slopes decide where values cannot",
     "test_minima"),
    ("`scipy.signal.istft` of several signals",
     "as many times as there are signals",
     "as many times as samples",
     "test_back"),
    ("`scipy.spatial.transform.Slerp` after the last time; derivatives of rotation vectors at the identity",
     "it stands still after, and turns on before the first; NaN",
     "it turns on; they are right",
     "test_slerp"),
    ("`scipy.sparse.linalg` of a matrix with NaN, or where a method breaks down",
     "`cg` and `bicgstab` give where they started, or what they had",
     "NaN",
     "test_ends_and_types"),
    ("`scipy.stats.cauchy.ppf` and `isf` of 0 and 1, densities at the ends of a law's support",
     "large numbers of the wrong sign; NaN, as of `chi2.pdf(0, 2)`",
     "as in SciPy",
     "test_ends_of_the_support"),
    ("`scipy.special.ndtr`, `ndtri`, `log_ndtr` and `scipy.stats.norm` of bfloat16 or integers",
     "TypeError",
     "computed in float32, as by all their kin",
     "test_dtypes_and_batches"),
    ("complex numbers in `scipy.stats`",
     "formulas are computed with them",
     "TypeError",
     "test_ends_of_the_support"),
    ("parameters of `scipy.stats` that are not allowed, as a negative scale or alpha",
     "-inf, or numbers",
     "NaN, as in SciPy",
     "test_dtypes_and_batches"),
    ("`scipy.special.polygamma` and `zeta` left of -9",
     "1.6e38 for `polygamma(1, -10.0467)`, which is 461",
     "right",
     "test_edges"),
    ("derivatives of `scipy.special.digamma`, `polygamma`, `zeta` left of -8; of `i0e`, `i1e`, `log_ndtr` far out",
     "1e12 instead of 10; rounded away",
     "right",
     "test_slopes_of_slopes_in_single_precision"),
    ("`scipy.special.exp1`, `expi`, `expn`, `sici`, `spence`, `loggamma` at 0 and inf",
     "NaN",
     "their limits, as in SciPy",
     "test_limits"),
    ("`scipy.special.hyp2f1` below -1, `sph_harm_y` of orders above the degree, `bessel_jn` of small numbers",
     "inf, numbers, NaN",
     "right",
     "test_values"),
    ("`image.scale_and_translate` to other sizes of axes not in `spatial_dims`",
     "the sizes are not read",
     "ShapeError",
     "test_refused"),
    ("weak types of what linear algebra gives",
     "most factors and solutions keep them, even pivots; inverses, determinants and Toeplitz matrices do not",
     "factors, solutions, inverses and determinants are of a strong type; products and matrices of elements keep it",
     "test_factors_and_solutions_are_of_a_strong_type"),
    ("`scipy.linalg.toeplitz`, `hankel`, `convolution_matrix` of vectors with inf or NaN",
     "all or many elements are NaN",
     "elements stay what they are, as in SciPy",
     "test_elements_stay_where_they_are_beside_inf_and_nan"),
    ("`scipy.signal.stft`, `csd`, `welch` of an empty signal",
     "empty arrays",
     "ShapeError",
     "test_refused"),
    ("`nn.sigmoid`, `silu`, `swish`, `glu` of integers",
     "TypeError; other activations take them",
     "the default float, as of all activations",
     "test_activation_functions_at_the_edges"),
    ("`jnp.cov` where `ddof` is larger than the number of samples",
     "divided by a negative number",
     "inf or NaN, as in NumPy",
     "test_covariance"),
    ("`jnp.polyder` and `polyint` of a matrix",
     "not checked: scaled along the wrong axis, or errors of broadcasting",
     "the columns are polynomials, as for `polyval`",
     "test_the_columns_of_a_matrix_are_polynomials"),
    ("`lax.ragged_all_to_all`",
     "does not run on CPUs, and has no rule for `vmap(axis_name=)`",
     "both; offsets and sizes are checked",
     "test_ragged_all_to_all"),
    ("`test_util.check_grads`",
     "integers among the arguments are refused; infinite results pass; an unknown mode checks nothing",
     "integers have no derivative to be wrong; what is not finite must agree, too; ValueError",
     "test_functions_given_beside_their_derivatives"),
    ("`experimental.sparse` in programs",
     "primitives of its own, `bcoo_todense` and kin, some without derivatives or a platform",
     "the gathers, products and sums that they are made of",
     "test_derivatives_are_those_of_the_numbers_that_are_stored"),
    ("`experimental.sparse.linalg.spsolve`",
     "`tol` and `reorder` are for GPUs; elsewhere SciPy, and a singular matrix gives NaN; dtypes must be equal",
     "`tol` and `reorder` change nothing anywhere, but are checked; a singular matrix gives inf or NaN; dtypes are promoted",
     "test_equations_and_eigenvalues_of_large_matrices"),
    ("a key's seed in a program, `extend.core.primitives.random_seed_p`",
     "a primitive, `random_seed`",
     "integer operations and `random_wrap`, of which `random_seed_p` is another name",
     "test_contexts"),
    ("`jit(inline=Inline.XLA_EARLY)`, `XLA_LATE`, `JAX_LATE`",
     "attributes for XLA on the call; inlined when the program is lowered",
     "a call without attributes, which XLA inlines as it does all; inlined while tracing",
     "test_where_a_function_becomes_a_part_of_its_caller"),
    ("`jnp.linalg.matrix_rank(rtol=)`",
     "counts from zero, as if it were absolute",
     "is relative to the largest singular value, as JAX's own documentation and NumPy have it; `tol` is absolute",
     "test_the_rank_of_a_matrix_by_a_relative_and_an_absolute_tolerance"),
    ("the gradient of `jnp.linalg.det` where a matrix of 4 rows or more is singular",
     "zeros, where elimination finds a zero before the last pivot",
     "the cofactors",
     "test_derivatives_of_the_determinant_of_a_singular_matrix"),
    ("`lax.pmean`, and `lax.psum` of a number, over `axis_index_groups` of different sizes",
     "by the size of the first group",
     "by that of each",
     "test_reductions_over_groups_of_different_sizes"),
    ("`lax.pmax`, `lax.pmin`",
     "have no derivative",
     "have one",
     "test_the_derivative_of_an_extreme_is_that_of_those_that_attain_it"),
    ("`pmap(axis_name=)`",
     "any hashable value",
     "a string",
     "test_the_axis_of_pmap_has_a_string_for_a_name"),
    ("names of mesh axes",
     "any string",
     "ASCII without quotes and backslashes: XLA crashes on others",
     "test_names_with_which_xla_crashes_are_refused"),
    ("what a host callback raises",
     "comes out as a JaxRuntimeError, with its traceback as text",
     "comes out as the same object; under `hlotrace.as_jax`, or with `hlotrace_callback_errors` \"jax\", as in JAX",
     "test_an_exception_comes_out_as_the_same_object"),
    ("`debug.breakpoint` where there is no terminal",
     "a prompt all the same, which ends the program where nothing can be read",
     "the frames and the innermost one's variables are printed, and the program goes on; `backend='cli'` prompts",
     "test_without_a_terminal_the_frames_are_printed"),
    ("operations in traces for Perfetto",
     "have the name of an HLO instruction",
     "have the user's line and named scopes too",
     "test_a_trace_names_steps_functions_and_lines"),
    ("an unknown mode in `jax_dump_ir_modes`",
     "nothing is written",
     "ValueError",
     "test_programs_are_dumped"),
    ("`monitoring.unregister_..._listener` of what was not registered",
     "AssertionError",
     "ValueError",
     "test_what_is_recorded_and_who_hears"),
    ("a program over several devices that has callbacks",
     "returns at once; where a callback fails on one device, it hangs",
     "returns when it is done; where one fails, the call raises its exception",
     "test_a_callback_that_fails_on_one_device_ends_the_call_on_all"),
    ("a program on the CPU that has callbacks",
     "returns at once; where a callback computes and many programs wait for it, all hang",
     "returns when it is done",
     "test_many_programs_may_be_started_that_wait_for_a_callback_that_computes"),
    ("`device_put(1.0, sharding)` with `PartitionSpec(None)`: entries that split nothing, more than there are dimensions",
     "ValueError; `make_array_from_callback` takes it",
     "taken everywhere",
     "test_entries_of_a_spec_that_split_nothing_may_be_more_than_there_are_dimensions"),
    ("`out_sharding=` outside of `jit`",
     "the result is made in its place",
     "it is made first and then moved; inside of `jit` it is resharded",
     "test_under_jit_it_is_the_same"),
    ("`out_sharding=NamedSharding(...)` over Explicit axes where no mesh is in use",
     "ValueError that asks for `set_mesh`, or it is not read",
     "the result is divided so",
     "test_over_explicit_axes_it_is_the_type_of_the_result"),
    ("a process among several that dies",
     "the others wait for the heartbeat, or hang",
     "the others end with a message within `heartbeat_timeout_seconds` and 10 s",
     "test_when_a_process_is_killed_all_others_end"),
    ("processes that run different programs, or lay different values over their devices",
     "wrong numbers, or a hang",
     "they compare digests, and an error says where they differ; `hlotrace_check_processes` off compares nothing",
     "test_a_process_that_does_something_else_ends_all"),
    ("a traced program",
     "`ClosedJaxpr` around `Jaxpr`",
     "one class, `Jaxpr`, with its constants inside; `.jaxpr` of it is itself",
     "test_a_program_is_one_object"),
    ("what `experimental.roofline` counts",
     "a `scan` as one step, `tanh`, `pow` and branches as nothing, `select` by its condition alone, `pmax` as one number; "
     "the backward pass in bfloat16",
     "all steps, all elementwise operations and reductions, all operands, the larger branch; in the arguments' dtypes",
     "test_what_programs_need"),
]

# (class, JAX's attributes that its objects lack, why)
LACKING = [
    ("Array", "device_buffer device_buffers",
     "JAX refuses them too: `addressable_data(0)`, `addressable_shards`"),
    ("Array", "unsafe_raw_buffer", "of jaxlib's arrays; here an array holds a buffer"),
    ("custom_vjp", "defremat defremat_with_logs defvjp_with_accums defvjp_with_logs",
     "accumulators and logs of JAX's own backward pass"),
    ("stages.Traced", "physicalize", "keys become words where a program is lowered"),
    ("stages.Compiled", "call", "of JAX's own calls: call the object"),
]


def table(head, rows):
    """A Markdown table."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))


def on_purpose():
    return table(["what", "JAX", "hlotrace"], [row[:3] for row in ON_PURPOSE])


def _words(node):
    """The text of an error as its source tells it, `…` for what is filled in."""
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_words, node.values))
    return str(node.value) if isinstance(node, ast.Constant) else "…"


def refusals():
    """{folder or file of hlotrace/: [(file, words)]} of each NotImplementedError, without those of options.
    """
    found = defaultdict(list)
    for path in sorted((ROOT / "hlotrace").rglob("*.py")):
        source = path.read_text("utf-8")
        for node in ast.walk(ast.parse(source)) if "NotImplementedError" in source else ():
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args and (
                    getattr(node.exc.func, "id", "") == "NotImplementedError") and path.name not in (
                    "config.py", "other_options.py"):
                relative = path.relative_to(ROOT / "hlotrace")
                found[relative.parts[0]].append((relative.with_suffix("").as_posix(),
                                                 _words(node.exc.args[0])))
    return found


def lacking():
    rows = [(f"`{kind}`", ", ".join(f"`{name}`" for name in names.split()), why) for kind, names,
            why in LACKING]
    return table(["class", "attributes", "why"], rows)


def not_done():
    rows = [(f"`{file}`", words.replace("|", "\\|").replace("*", "\\*"))
            for room in refusals().values() for file, words in sorted(room)]
    return table(["in", "what the error says (`…` is filled in)"], rows)


def options():
    """The options: hlotrace's own, and what becomes of each of JAX's."""
    theirs = (ROOT / "tools" / "jax_options.txt").read_text("utf-8").split()
    here = config._OPTIONS
    own = [(f"`{name}`", f"`{default!r}`") for name, (default, _, _) in sorted(here.items())
           if name not in theirs]
    done = [name for name in theirs if name in here]
    rows = [[(f"`{name}`", f"`{default!r}`", why) for name, (default, why) in sorted(others.items())]
            for others in (other_options.MEANS_NOTHING, other_options.NOT_DONE)]
    return "\n\n".join([
        f"Of JAX's {len(theirs)} options {len(done)} do what they say: "
        f"{', '.join(f'`{name}`' for name in done)}.",
        table(["an option that JAX does not have", "default"], own),
        f"{len(rows[0])} are taken, and change nothing:",
        table(["option", "default", "why it means nothing here"], rows[0]),
        f"{len(rows[1])} keep their default; setting another value raises NotImplementedError:",
        table(["option", "default", "what the error says"], rows[1])])


def missing():
    """The names that are missing, by module; of modules that are not here at all, how many."""
    rows, gone = [], []
    for place, listed in NAMES.items():
        names = listed.split()
        if place == "Array" or _is_here(place):
            there = f"`jax.{place}`" if place else "`jax`"
            rows.append((there, str(len(names)), ", ".join(f"`{name}`" for name in names)))
        else:
            gone.append(f"`jax.{place}` ({len(names)})")
    return "\n\n".join([
        "Asked for one of these, hlotrace says that it is one.",
        table(["module or class", "how many", "which"], rows),
        f"Not here at all, with the number of their names: {', '.join(gone)}."])


def _is_here(place):
    try:
        importlib.import_module(f"hlotrace.{place}".rstrip("."))
    except ImportError:
        return False
    return True


def page():
    """The text of docs/differences.md."""
    return "\n\n".join([
        HEADER + "# How hlotrace differs from JAX",
        "Names, arguments and results are JAX's, apart from what is listed here.",
        "## On purpose", on_purpose(),
        "## What is not done yet, and raises",
        "A parameter is never ignored: it does what it says, or raises NotImplementedError. JAX refuses "
        "some of these too, such as `out=`.", not_done(),
        "## Attributes of classes that have no meaning here", lacking(),
        "## Options", options(), "## Names that are missing", missing()]) + "\n"


def main(arguments):
    text = page()
    if arguments == ["--check"]:
        if PAGE.read_text("utf-8") != text:
            sys.exit(f"{PAGE.relative_to(ROOT)} is out of date: make differences")
    elif arguments:
        sys.exit(__doc__)
    else:
        PAGE.write_text(text, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

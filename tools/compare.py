"""Call every public function of hlotrace and of JAX with the same inputs, and list where they differ.

    python tools/compare.py --jax=/path/of/a/python/with/jax [--calls=60] [--only=numpy.fft,lax.sin] [--x64]

Inputs are expressions: for each function a number of calls is drawn, by its name alone, from values of all dtypes, shapes
and kinds, then one keyword after the other.  Each package evaluates them in a process of its own.  Results are compared in
structure, dtype, weak type, shape and numbers; exceptions by the builtin class they stand on.
"""
import json
import os
import pickle
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_string("jax", None, "the Python that has JAX")
flags.DEFINE_integer("calls", 60, "calls a function")
flags.DEFINE_list("only", [], "modules or functions, as numpy.fft or lax.sin; all by default")
flags.DEFINE_bool("x64", False, "with 64-bit types on")
flags.DEFINE_bool("all", False, "show each difference, not three a function")

KINDS = {"died": "the process ended", "results": "both give a result, and these differ",
         "raises": "JAX gives a result", "accepts": "JAX raises",
         "classes": "exceptions of different classes"}
CHILD = Path(__file__).with_name("compare_child.py")
MODULES = """numpy numpy.linalg numpy.fft lax lax.linalg nn nn.initializers random ops image flatten_util tree_util
    dtypes scipy.special scipy.linalg scipy.fft scipy.signal scipy.integrate scipy.ndimage scipy.cluster.vq
    scipy.stats tree scipy.interpolate scipy.optimize scipy.sparse.linalg""".split()
LAWS = """bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom gumbel_l gumbel_r laplace logistic
    multinomial multivariate_normal nbinom norm pareto poisson t truncnorm uniform vonmises wrapcauchy""".split()
# Not functions of values: files, devices, the state of the process.
SKIP = re.compile(r"\.(save|savez|load|fromfile|frombuffer|from_dlpack|register_\w+|\w*printoptions|array_repr|array_str|"
                  r"empty|empty_like|Partial|ensure_compile_time_eval|infeed|outfeed|print|info)$")
ARRAYS = [f"jnp.array({v})" for v in (
    "[0., -0., 1.5, -2.5, np.inf, -np.inf, np.nan]", "[[1.5, -2., .25], [3., 4., -.5]]",
    "[[4., 1., 0.], [1., 3., .5], [0., .5, 2.]]", "2.5", "[]", "[-3, 0, 7]", "[[1, 2, 3], [4, 5, 6]]", "3",
    "[1, 0, 2], 'uint8'", "[1, 2], 'uint32'", "[-3, 100, 7], 'int8'", "[True, False, True]", "True",
    "[1.5, -2., np.inf], 'float16'", "[[.5, 2.], [3., -1.]], 'bfloat16'", "[1+2j, -3j, 0]",
    "[[1j, 2.], [3., 1-1j]]",
    "[.1, .5, .9]", "np.arange(24.).reshape(2, 3, 4)", "np.zeros((2, 0, 3))", "[1, 2], 'float64'")]
OTHERS = ["2", "-3", "2.5", "True", "1+2j", "np.float32(1.5)", "np.arange(3)", "[1., 2.]", "None", "'a'",
          "np.array([.5, 2.])"]
# What a parameter of this name takes, beside arrays.
NAMED = {name: options.split(" | ") for name, options in (row.split(": ", 1) for row in """\
axis: 0 | -1 | 1 | None | 2 | (0, 1)
axes: (0,) | (0, 1) | (-1,) | (1, 0) | ()
dimension: 0 | 1 | -1
dimensions: (0,) | (1, 0) | (0, 1)
keepdims: True
dtype: 'float32' | 'int32' | 'bfloat16' | bool | complex | 'int8' | float
shape: (2, 3) | () | (3,) | 3 | (2, 0) | (6,) | (-1,) | (2, 1, 3)
new_sizes: (6,) | (3, 2)
key: key
ddof: 1
where: jnp.array([True, False, True]) | True
initial: 1 | 2.5
n: 2 | 5 | 0
k: 1 | -1 | 0
num: 5 | 1 | 0
side: 'right'
mode: 'wrap' | 'clip' | 'fill' | 'reflect' | 'same' | 'valid'
method: 'linear' | 'nearest' | 'lower'
ord: 1 | 2 | np.inf | 'fro' | 'nuc'
reverse: True
norm: 'ortho'
indices_or_sections: 2 | 3 | [1]
shift: 1 | -2 | (1, 2)
num_classes: 4
repeats: 2 | jnp.array([1, 2])
reps: 2 | (2, 1)
source: 0 | -1
destination: 1 | 0
decimals: 1 | -1
order: 'C' | 'F'
assume_unique: True
return_index: True
return_inverse: True
return_counts: True
size: 2 | 5
fill_value: 7 | 0.5
stable: False
descending: True
full_matrices: False
compute_uv: False
lower: True
q: 0.5 | jnp.array([0., .3]) | 1.5
num_segments: 4
segment_ids: jnp.array([0, 1, 0])
hermitian: True
UPLO: 'U'
bins: 4 | jnp.array([0., 1., 2.])
density: True
weights: jnp.array([1., 2., .5])
subscripts: 'ij,jk' | 'i,i' | 'ij->ji'
pad_width: 1 | (1, 2) | ((1, 0), (0, 2))
offset: 1
M: 5 | 1 | 0
N: 3
indexing: 'ij'
sparse: True
copy: False | True
bitorder: 'little'
equal_nan: True
is_stable: False
num_keys: 1
permutation: (1, 0) | (0,)
broadcast_dimensions: (0,) | (0, 1)
padding_config: ((1, 1, 0),) | ((0, 1, 0), (1, 0, 1))
padding_value: 0. | 0
start_indices: (0,) | (0, 1)
limit_indices: (2,) | (2, 2)
slice_sizes: (2,) | (1, 2)
strides: (1,) | None
new_dtype: 'float32' | 'int32'
minval: 0 | -1.
maxval: 1 | 5
approximate: False
s: (4,) | (2, 4)
rcond: .1 | None
tree: [1, (2., None)] | {'a': jnp.ones(2), 'b': ()} | 3 | None | [jnp.ones(2), np.ones(3)]
is_leaf: lambda x: isinstance(x, tuple)
num_bits: 8""".split("\n"))}


# Parameters of laws that are allowed; of others JAX gives numbers, see tools/differences.py.
_MORE = "2. | 3 | jnp.array([[.5], [2.], [30.]]) | jnp.array([1.5, .5, 2.], 'bfloat16')"
ALLOWED = {**dict.fromkeys("a b df nu beta kappa mu scale".split(), _MORE),
           "loc": "1 | .5 | jnp.array([1, 0, 2])", "p": ".3 | jnp.array([[.1], [.5], [.9]])",
           "c": ".3 | jnp.array([.1, .5, .9], 'float16')", "n": "5 | jnp.array([[2], [5], [9]])",
           "k": "2 | 0 | jnp.array([-1, 0, 1, 2, 7]) | jnp.array([1., 2., 3.], 'float16')",
           "x": "2 | .5 | jnp.array([-2., -0., .25, 1., 7., np.inf, -np.inf, np.nan]) | jnp.array([.5, 2.], "
           "'bfloat16') | jnp.array([[[1, 0, 3]]]) | True | [1.] | 'a'",
           "q": ".5 | jnp.array([0., .3, 1., np.nan]) | 0"}
_VECTOR = "jnp.array([.25, .25, .5]) | jnp.array([.5, .25, .25], 'bfloat16')"
OF_LAW = {"truncnorm": {"a": "-1. | jnp.array([[-3.], [-.5], [1.]])",
                        "b": "2. | jnp.array([[4.], [1.5], [2.]])"}, "gennorm": {"p": _MORE},
          "dirichlet": {"x": _VECTOR, "alpha": "jnp.array([1., 2., .5])"},
          "multinomial": {"x": "jnp.array([1, 2, 2]) | jnp.array([1., 2., 1.])", "n": "5", "p": _VECTOR},
          "multivariate_normal": {"x": "jnp.array([.5, 1.5]) | 2.", "mean": "jnp.array([1., 2.]) | 1",
                                  "cov": "jnp.array([[2., .5], [.5, 1.]]) | 2.",
                                  "allow_singular": "True | False"}}
SWITCH = {"True": ["False"], "False": ["True"]}       # a parameter that is on or off by default
# What a parameter takes in one function alone.
OF_ONE = {"map_coordinates": {"order": ["0", "1"]},
          "issubdtype": {"a": ["'float32'", "int"], "b": ["jnp.floating", "'int32'"]},
          **dict.fromkeys(("map", "tree_map"), {"f": ["lambda x, *_: x", "jnp.shape"],
                                                "rest": ["[1, (2., None)]", "{'a': 1, 'b': ()}"]}),
          "reduce": {"function": ["lambda x, y: x + y"], "initializer": ["1", "None"]},
          "minimize": {"fun": ["lambda x: ((x - 1) ** 2).sum()", "jnp.sum"],
                       "x0": ["jnp.ones(2)", "jnp.array([.5])", "2."],
                       "method": ["'BFGS'", "'a'"], "args": ["()"], "options": ["dict(maxiter=2)"]},
          **dict.fromkeys(("cg", "bicgstab", "gmres"), {
              "A": ["jnp.array([[4., 1.], [1., 3.]])", "lambda x: 2 * x",
                    "jnp.array([[1.5, -2., .25], [3., 4., -.5]])"],
              "b": ["jnp.ones(2)", "jnp.array([1j, 2])", "jnp.ones((2, 1))", "[1., 2.]"],
              "M": ["lambda x: x / 2"],
              "x0": ["jnp.ones(2)"], "maxiter": ["3"], "restart": ["1"]}),
          "resize": {"shape": ["(2, 3)", "(4,)", "()"]}, "trapezoid": {"dx": ["2", "2.5"]},
          **{f"segment_{kind}": {"bucket_size": ["2"]} for kind in ("sum", "prod", "min", "max")},
          "scaled_dot_general": {"implementation": ["'xla'"], "preferred_element_type": ["'float32'"],
                                 "dimension_numbers": ["(((1,), (0,)), ((), ()))"]}}


def drawn(name, parameters, calls):
    """Expressions that call a function, always the same for the same name."""
    rng = random.Random(name)
    call = f"jax.{name}" if not name.startswith("numpy.") else f"jnp.{name.removeprefix('numpy.')}"
    needed = [p for p, kind, default in parameters if default is None and kind.startswith("POSITIONAL")]
    needed += [p for p, kind, _ in parameters if kind == "VAR_POSITIONAL" for _ in range(2)]
    optional = [p for p, kind, default in parameters if default is not None and not kind.startswith("VAR")]
    arrays = ARRAYS + [f"[{a}, {a}]" for a in ARRAYS[:3]] * (needed[:1] in (["arrays"], ["tup"], ["seq"]))
    place, _, function = name.rpartition(".")
    choices = {**NAMED, **OF_ONE.get(function, {})}
    if place.startswith("scipy.stats."):
        choices |= {p: options.split(" | ") for p, options in {**ALLOWED,
                                                               **OF_LAW.get(place[12:], {})}.items()}
    ways = [choices.get(p, arrays + OTHERS) for p in needed]
    if len(ways) == 1:
        plain = [f"{call}({a})" for a in ways[0]]
    else:       # operands of one type, then mixtures
        alike = [[a if a in options else rng.choice(options) for options in ways] for a in arrays]
        mixed = [[rng.choice(options) for options in ways] for _ in range(calls)]
        plain = [f"{call}({', '.join(given)})" for given in alike + mixed] if ways else [f"{call}()"]
    plain = list(dict.fromkeys(plain))[:calls]
    defaults = {p: default for p, _, default in parameters}
    keywords = [f"{base[:-1]}{', ' * bool(ways)}{p}={option})" for p in optional
                for base in rng.choices(plain, k=2) for option in choices.get(p) or SWITCH.get(defaults[p])
                or [rng.choice(ARRAYS)]]
    return plain + keywords[:calls]


# What both refuse where JAX stumbles in words of Python's or of its insides: our class is another, and means
# something.
STUMBLES = re.compile(r"in JAX \w+ \((tuple ind|list index|transpose permutation|\w+ got incompatible shapes|unhashable|"
                      r"Non-hashable|(too many|not enough) values to unpack|iteration over a 0-d|s must have at most|"
                      r"'[\w.]+' object|The truth value|slice limit_indices|broadcast_in_dim shape must|"
                      r"Only integer scalar)|JAX \w+ \(\)")
# (kind, what is in the call and the words, why it is so): rows of tools/differences.py, and what nobody asks
# for.
KNOWN = [(kind, re.compile(pattern, re.DOTALL), why) for kind, pattern, why in (
    ("classes", STUMBLES.pattern, "both refuse, JAX by an accident of its insides"),
    ("accepts", r"JAX raises \w+: (unhashable|Non-hashable|The truth value)", "an array for a switch"),
    ("accepts", r"JAX raises ZeroDivisionError|Shape should be positive", "empty arrays on which JAX stumbles"),
    ("accepts", r"nn\.(glu|sigmoid|silu|swish|log_sigmoid|\w+).*logistic does not accept dtype", "integers: differences.py"),
    ("results", r"(linalg|lax\.linalg)\..*\n.*weak type", "weak types in linear algebra: differences.py"),
    ("results", r"scipy\.linalg\.(toeplitz|hankel|convolution_matrix)\(.*(inf|nan)", "beside inf or NaN: differences.py"),
    ("accepts", r"linalg\.(hankel|convolution_matrix)\(.*must be at least 1-dimensional", "a scalar as a vector of one"),
    ("raises", r"signal\.(csd|stft|welch)\(.*window is longer", "spectra of nothing: differences.py"),
    ("results", r"expm\(.*upper_triangular=True", "a full matrix that is said to be triangular"),
    ("results", r"(convolve|correlate)\w*\(.*np\.inf", "padding beside inf"),
    ("results", r"matrix_rank\((5|2|-3|2\.5|True)\b.*dtype", "the rank of a number in 64 bits"),
    ("results", r"detrend\(.*    \[0\. 0\.", "rounding of what is zero"),
    ("classes", r"NotImplementedError", "refused by the one or the other of two checks"),
    ("classes", r"an array as a dtype argument", "an array for a dtype"),
    ("results", r"fft\.\w+\(.*(inf|nan)", "where inf and NaN spread to"),
    ("results", r"scipy\.(special|stats)\..*\n    weak type True, in JAX False", "weak types of functions: differences.py"),
    ("results", r"cauchy\.(ppf|isf)\(.*\binf\b|stats\.\w+\.(log)?pdf\(.*in JAX \[(nan ?)+\]",
     "ends of a support: differences.py"),
    ("accepts", r"bicgstab\(.*carry input and carry output", "a complex result from a real start"),
    ("results", r"\.(log)?pmf\(.*loc=\.5", "counts that are not whole"),
    ("accepts", r"(norm|ndtri?|log_ndtr)\b.*dtype=\w+ is not supported", "narrow floats and integers: differences.py"),
    ("results", r"special\.(exp1|expi|expn|loggamma|sici|spence)\(.*in JAX \[(nan ?)+\]", "limits: differences.py"),
    ("results", r"(rel_entr|kl_div|wrapcauchy\.\w+|truncnorm\.\w+)\(.*np\.nan.*    \[(nan ?)+\], in JAX \[(inf|[0. ]+)\]",
     "NaN stays NaN"),
    ("results", r"special\.hyp1f1\(.*np\.inf", "poles and infinite parameters"),
    ("accepts", r"JAX raises TimeoutError", "where JAX is slow"),
    ("raises", r"multivariate_normal.*ShapeError", "a matrix for the variance of a number"),
    ("results", r"multivariate_normal.*weak type", "weak types in linear algebra: differences.py"),
    ("raises", r"scipy\.stats\..*does not take complex numbers", "complex numbers: differences.py"),
    ("results", r"rfftfreq\(0|stats\.mode\(jnp\.array\(\[\]\)\)", "the dtype of a result for nothing"),
    ("accepts", r"rfftfreq\(0", "the dtype of a result for nothing"),
    ("raises", r"hessenberg\(jnp\.array\(\[\]\)\)|linalg\.hessenberg\(float32\[0\]", "a vector as a matrix"),
)]


def explained(kind, text, words):
    """Why a difference is there, or None."""
    return next((why for k, pattern, why in KNOWN if k == kind and pattern.search(f"{text}\n    {words}")),
                None)


def child(python, package, *arguments, **more):
    env = {**os.environ, "JAX_ENABLE_X64": str(int(FLAGS.x64)), "PYTHONPATH": str(CHILD.parent.parent)}
    return subprocess.run([python, "-W", "ignore", str(CHILD), package, *arguments], env=env, text=True,
                          **more)


def outcomes(python, package, texts):
    """{expression: outcome}; one that ends the process is "died", and the next process goes on behind it."""
    found, left = {}, list(texts)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        while left:
            child(python, package, "results", str(out), input="\n".join(left) + "\n",
                  stderr=subprocess.DEVNULL)
            with open(out, "rb") as file:
                try:
                    while True:
                        found.update([pickle.load(file)])
                except EOFError:
                    pass
            done = next((i for i, text in enumerate(left) if text not in found), len(left))
            if done < len(left):
                found[left[done]] = ("died",)
            left = left[done + 1:]
    return found


TOLERANCES = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "complex64": 2e-5, "float64": 1e-10,
              "complex128": 1e-10}


def unequal(ours, theirs):
    """What differs between two results, or None."""
    if ours[0] != theirs[0]:
        return f"{ours[0]} where JAX has {theirs[0]}"
    if ours[0] == "array":
        for what, a, b in zip(("dtype", "shape", "weak type"), ours[1:4], theirs[1:4]):
            if a != b:
                return f"{what} {a}, in JAX {b}"
    if ours[0] in ("array", "key"):
        return differ(ours[-1], theirs[-1], TOLERANCES.get(ours[1], 0))
    if ours[0] == "plain":
        a, b = ours[1], theirs[1]
        if type(a) is not type(b):
            return f"{type(a).__name__}, in JAX {type(b).__name__}"
        if isinstance(a, (str, bytes, type(None))):
            return None if a == b else f"{a!r:.60}, in JAX {b!r:.60}"
        return differ(np.asarray(a), np.asarray(b), 1e-6)
    if len(ours) != len(theirs):
        return f"{len(ours) - 1} results, in JAX {len(theirs) - 1}"
    return next(filter(None, (unequal(a, b) for a, b in zip(ours[1:], theirs[1:]) if isinstance(a, tuple))),
                None)


def differ(a, b, tolerance):
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{a.dtype}{a.shape}, in JAX {b.dtype}{b.shape}"
    if a.dtype.kind in "fc":
        scale = np.max(np.abs(b[np.isfinite(b)]), initial=0)
        nothing = tolerance ** 2        # the size of what should be zero
        wrong = ~np.isclose(a, b, rtol=tolerance, atol=max(tolerance * min(scale, 1), nothing),
                            equal_nan=True)
    else:
        wrong = np.asarray(a != b)
    if not wrong.any():
        return None
    first, second = (str(x[wrong][:8]).replace(chr(10), "") for x in (a, b))
    return f"{first}, in JAX {second}, of {wrong.sum()} of {a.size}"


def difference(ours, theirs):
    """(kind, one line) on how two outcomes differ, or None."""
    if ours[0] == theirs[0] == "value":
        words = unequal(ours[1], theirs[1])
        return words and ("results", words)
    if ours[0] == theirs[0] == "error":
        wanted = theirs[1][0]
        return None if wanted in ours[1] else ("classes", f"{ours[2]} ({ours[3]:.80}), in JAX {theirs[2]} ({theirs[3]:.80})")
    words = [("gives " + str(o[1])[:80] if o[0] == "value" else f"raises {o[2]}: {o[3]:.120}" if o[0] ==
              "error" else "DIES") for o in (ours, theirs)]
    return ("died" if ours[0] == "died" else "accepts" if ours[0] == "value" else "raises",
            f"{words[0]}, JAX {words[1]}".replace("\n", " "))


def main(argv):
    if argv[1:]:
        raise app.UsageError(f"functions are chosen by --only={','.join(argv[1:])}")
    modules = MODULES + [f"scipy.stats.{law}" for law in LAWS]
    sides = (sys.executable, "hlotrace"), (FLAGS.jax, "jax")
    known = [json.loads(child(python, package, "signatures", *modules, capture_output=True,
                              check=True).stdout) for python, package in sides]
    chosen = [name for name in known[1] if name in known[0] and not SKIP.search(name)
              and (not FLAGS.only or any(name == o or name.rpartition(".")[0] == o for o in FLAGS.only))]
    texts = {text: name for name in chosen for text in drawn(name, known[1][name], FLAGS.calls)}
    print(f"{len(chosen)} functions, {len(texts)} calls", flush=True)
    ours, theirs = (outcomes(python, package, texts) for python, package in sides)
    found = {text: d for text in texts if (d := difference(ours[text], theirs[text]))}
    known = Counter(why for text, (kind, words) in found.items() for why in [explained(kind, text, words)]
                    if why)
    found = {text: d for text, d in found.items() if not explained(d[0], text, d[1])}
    for kind in KINDS:
        shown = Counter()
        print(f"\n== {kind}: {KINDS[kind]}")
        for text, (_, words) in ((text, d) for text, d in found.items() if d[0] == kind):
            shown[texts[text]] += 1
            if shown[texts[text]] <= 3 or FLAGS.all:
                print(f"{text}\n    {words}")
        print(f"-- {kind}: {shown.total()} calls of {len(shown)} functions")
    print(f"\n== known: {known.total()} calls")
    for why, count in known.most_common():
        print(f"{count:5} {why}")
    different = len({texts[text] for text in found})
    print(f"{len(texts) - len(found)} calls are equal or known, {len(found)} are not, in {different} "
          "functions")


if __name__ == "__main__":
    flags.mark_flag_as_required("jax")
    app.run(main)

"""`hlotrace.as_jax`: a process that asks for it, and no other, finds hlotrace where it imports jax."""
import inspect
import os
import subprocess
import sys

import forked
import numpy as np
import pytest
from places import ROOT

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.core import pytype_aval_mappings
from hlotrace.core.config import state
from hlotrace.interpreters import xla

PROGRAM = """
import os, sys
os.environ["JAX_ENABLE_X64"] = "1"      # programs say so before they import jax
import jax, jax.numpy as jnp, jax.version
from jax.experimental import checkify
from jax.interpreters import ad
from jax._src import core, traceback_util
import jax._src.tree_util, jax._src.compiler
import importlib.metadata, importlib.util
import hlotrace
import jaxlib.version

assert jnp is hlotrace.numpy and sys.modules["jax.numpy"] is jnp and checkify is hlotrace.experimental.checkify
assert jax.__version__ == importlib.metadata.version("jax") == jax.version.__version__ == jaxlib.version.__version__
assert jax.__version_info__ == tuple(map(int, jaxlib.version.__version__.split(".")[:3])) != hlotrace.__version_info__
assert importlib.util.find_spec("jax").name == "jax" and jax.numpy.__spec__.name == "hlotrace.numpy"
assert jnp.arange(3.).dtype == "float64"
assert core.Tracer is jax.core.Tracer and jax._src.tree_util.flatten_one_level({"a": 1})[0] == (1,)
for missing, words in [("from jax._src.core import nonsense", "nonsense"), ("import jax._src.nonsense", "nonsense"),
                       ("import jax.experimental.source_mapper",
                        "hlotrace does not have jax.experimental.source_mapper")]:
    try:
        exec(missing)
    except ImportError as error:
        assert words in str(error)
    else:
        raise AssertionError(missing)
try:
    core.nonsense
except AttributeError as error:
    assert "hlotrace does not have jax._src.core.nonsense" in str(error)
for module, name in (jax, "tree_map"), (jax.lax, "nonsense"), (jax.numpy, "nonsense"), (jax.random, "rand"):
    try:
        jax.jit(lambda: getattr(module, name))()
    except AttributeError as error:     # the user's slip, and no fault of ours
        assert name in str(error) and not any("report it" in note for note in error.__notes__), error.__notes__
    else:
        raise AssertionError(name)
for module in (jax.scipy.cluster.vq, jax.scipy.stats.bernoulli):        # Treescope looks there
    assert sys.modules[module.__name__] is module
print(__name__, sys.argv[1:], jax.jit(lambda x: x + 1)(1))
"""


def run(*command, code=0, **environment):
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, cwd=ROOT,
                          env={**os.environ, "PYTHONPATH": str(ROOT), **environment})
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("as_jax") / "script.py"
    path.write_text(PROGRAM)
    return path


def test_a_script_a_module_and_a_first_line(script):
    said = "__main__ ['a', '--b'] 2\n"
    assert run("-m", "hlotrace.as_jax", str(script), "a", "--b") == said
    assert run("-m", "hlotrace.as_jax", "-m", "script", "a", "--b", PYTHONPATH=f"{ROOT}:{script.parent}") == said
    assert run("-c", f"import hlotrace.as_jax\n{PROGRAM}", "a", "--b") == said


def test_the_environment_asks_and_is_only_asked(script):
    """The line in the .pth file that the package installs, as Python runs it at each start."""
    line = (ROOT / "hlotrace" / "as_jax" / "hlotrace_as_jax.pth").read_text()
    for value, expected in ("1", "True"), ("0", "False"), ("", "False"):
        assert run("-c", f"{line}\nimport sys; print('hlotrace' in sys.modules)", HLOTRACE_AS_JAX=value) == expected + "\n"


def test_pytest_asks(tmp_path):
    (tmp_path / "test_it.py").write_text("def test():\n    import jax, hlotrace\n    assert jax.numpy is hlotrace.numpy\n")
    assert "1 passed" in run("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "hlotrace.as_jax", str(tmp_path))


def test_what_this_process_starts_is_not_asked():
    """A process that did not ask imports what it always did: here there is no jax, or the real one."""
    program = ("import hlotrace.as_jax, jax, subprocess, sys\n"
               "print(subprocess.run([sys.executable, '-c', \"import importlib.util as u, sys; u.find_spec('jax'); \"\n"
               "      \"print('hlotrace' in sys.modules)\"], capture_output=True, text=True).stdout)")
    assert forked.run(program, check=True, PYTHONPATH=str(ROOT)).stdout.strip() == "False"


def test_the_real_jax_is_refused():
    program = "import sys, types\nsys.modules['jax'] = types.ModuleType('jax')\nimport hlotrace.as_jax"
    done = forked.run(program)
    assert done.returncode == 1 and "ImportError: hlotrace.as_jax: the real jax is already imported" in done.stderr


@pytest.mark.parametrize("arguments, words", [
    ([], "which program?"), (["no_such_file.py"], "no file 'no_such_file.py'; a module is run with -m")])
def test_what_cannot_be_run(arguments, words):
    program = "import runpy; runpy.run_module('hlotrace.as_jax', run_name='__main__', alter_sys=True)"
    done = forked.run(program, *arguments)
    assert done.returncode == 2 and words in done.stderr


def test_inside_of_jax_every_row_is_there():
    program = """
import hlotrace.as_jax, importlib
from hlotrace.as_jax import inside
for module in [*(f"jax._src.{name}" for name in inside._LIKE), *inside._SAME]:
    importlib.import_module(module)
for place in inside._homes:
    module, _, name = place.rpartition(".")
    assert hasattr(importlib.import_module(module), name), place
"""
    forked.run(program, check=True, HLOTRACE_AS_JAX="1")


def test_the_parts_of_vectorize_and_the_places_of_equations():
    program = """
import hlotrace.as_jax
from jax._src.core import is_constant_dim       # before jax.core, whose name it is too
import jax, jax.numpy as jnp
from jax._src import source_info_util
from jax._src.numpy import vectorize as v
assert is_constant_dim(3)
assert v._parse_gufunc_signature("(n,k),(k)->(n)") == ([("n", "k"), ("k",)], [("n",)])
assert v._parse_input_dimensions((jnp.ones((5, 2, 3)), jnp.ones(3)), [("n", "k"), ("k",)], "") == ((5,), {"n": 2, "k": 3})
f, args, kwargs = v._apply_excluded(lambda *a, **k: (a, k), {0, "z"}, (1, 2, 3), {"z": 4, "y": 5})
assert (args, kwargs) == ([2, 3], {"y": 5}) and f(*args, **kwargs) == ((1, 2, 3), {"y": 5, "z": 4})
assert v._check_output_dims(jnp.sin, {"n": 2}, [("n",)], "")(jnp.ones(2)).shape == (2,)
for wrong, kind in [(jnp.ones(3), ValueError), (jnp.ones((2, 2)), ValueError), ((1, 2), TypeError)]:
    try:
        v._check_output_dims(lambda x: wrong, {"n": 2}, [("n",)], "here")(1)
    except kind as error:
        assert "here" in str(error)
    else:
        raise AssertionError(wrong)
eqn, = jax.make_jaxpr(lambda x: x + 1)(1.).eqns
frame = source_info_util.user_frame(eqn.source_info.traceback)
assert isinstance(frame, source_info_util.Frame) and frame.function_name == "<lambda>", frame
assert frame.end_column - frame.start_column == 5 and source_info_util.user_frame(None) is None
"""
    forked.run(program, check=True, HLOTRACE_AS_JAX="1")


def test_what_libraries_read_of_traces_and_tracers():
    def mapped(x):
        assert (x.batch_dim, x.val.shape, x._trace.parent_trace) == (0, (3,), x._trace.parent)
        return x
    jax.vmap(mapped)(jnp.ones(3))
    trace = jax.core.Trace()
    trace.parent_trace = outer = jax.core.Trace()                # Haiku's to_dot
    assert trace.parent is outer
    program = jax.make_jaxpr(lambda x: x + state.trace.new_arg(jax.core.get_aval(np.ones(3, np.float32))))(1.)
    assert [v.aval.shape for v in program.jaxpr.invars] == [(), (3,)]
    np.testing.assert_array_equal(jax.core.eval_jaxpr(program.jaxpr, program.consts, 1., jnp.ones(3)), [[2, 2, 2]])


def test_options_of_the_inside():
    program = """
import hlotrace.as_jax, jax
from jax._src import config
for name in "enable_x64 disable_jit debug_nans traceback_filtering use_direct_linearize jax_platforms check_vma".split():
    option = getattr(config, name)
    known = [x for x in (name, "jax_" + name) if x in jax.config.values]
    assert option.value == jax.config.read(known[0]), name
assert config.enable_x64 is jax.enable_x64 and config.config is jax.config and not hasattr(config, "nonsense")
config.update("jax_enable_x64", True)
with config.disable_jit(True), config.enable_x64(False):
    assert config.disable_jit.value and not config.enable_x64.value
assert config.enable_x64.value and not config.disable_jit.value
"""
    forked.run(program, check=True, HLOTRACE_AS_JAX="1")


def test_faces_of_the_inside():
    program = """
import hlotrace.as_jax, jax, jax.numpy as jnp, numpy as np
from jax._src import compiler, core, distributed, dtypes, traceback_util, tree_util, xla_bridge, literals, state
import jax._src.state.types
assert core.trace_state_clean() and not jax.jit(lambda: core.trace_state_clean())()
assert not xla_bridge._backends or "cpu" in xla_bridge._backends
assert jax.jit(lambda x: x * 2)(3) == 6 and "cpu" in xla_bridge._backends
assert distributed.global_state.client is None and distributed.global_state.process_id == 0
assert dtypes.supports_inf("bfloat16") and not dtypes.supports_inf(jnp.float8_e4m3fn)
key = jax.random.key(0)
assert core.physical_aval(jax.typeof(key)).shape == (2,) and core.physical_aval(jax.typeof(jnp.ones(3))).shape == (3,)
assert dict in tree_util._registry and type(None) in tree_util._registry and int not in tree_util._registry
assert isinstance(jax.typeof(jax.new_ref(jnp.ones(2))), jax._src.state.types.AbstractRef)
assert not isinstance(jnp.ones(2), literals.TypedNdArray)
wrong, = tree_util.prefix_errors({"a": 1, "b": [2]}, {"a": 1, "b": 2})
assert "in_axes['b']" in str(wrong("in_axes")) and type(wrong("in_axes")) is ValueError
one = jnp.ones(2).sharding
assert one._device_assignment == one._addressable_device_assignment == (jax.devices()[0],)

# a library leaves out its frames, and takes that back
import sys
here = sys._getframe()
assert traceback_util.include_frame(here)
traceback_util.register_exclusion(here.f_code.co_filename)
assert here.f_code.co_filename in traceback_util._exclude_paths and not traceback_util.include_frame(here)
assert traceback_util._exclude_paths and issubclass(traceback_util.UnfilteredStackTrace, Exception)
traceback_util._exclude_paths.remove(here.f_code.co_filename)
assert traceback_util.include_frame(here)

# a library puts its function in the place of the one that compiles
compiled, original = [], compiler.backend_compile_and_load
compiler.backend_compile_and_load = lambda backend, *rest, **kwargs: compiled.append(backend.platform) or original(
    backend, *rest, **kwargs)
jax.jit(lambda x: x * 2.125)(jnp.ones(17))
assert compiled and set(compiled) == {"cpu"}
compiler.backend_compile_and_load = original
"""
    forked.run(program, check=True, HLOTRACE_AS_JAX="1")


def test_what_libraries_know_compiled_functions_by():
    """A jitted function tells its own signature, also to who does not look at what it wraps; and that it is one."""
    @jax.jit
    def f(x, *, y=2):
        return x

    (call,) = jax.make_jaxpr(f)(1.0).eqns
    assert not call.primitive.call_primitive and not call.primitive.map_primitive and "jaxpr" in call.params
    assert str(inspect.signature(f, follow_wrapped=False)) == "(x, *, y=2)"
    assert "PjitFunction" in str(type(f)) and all("api_boundary" in t(f).__globals__ for t in (jax.vmap, jax.grad))


def test_the_sharding_of_what_lies_nowhere_in_particular():
    """Handed on to `out_sharding`, it says nothing."""
    x = jnp.ones((2, 3))
    for make in (lambda **o: jax.random.normal(jax.random.key(0), x.shape, **o), lambda **o: jnp.zeros((600, 600), **o)):
        np.testing.assert_array_equal(make(out_sharding=jax.typeof(x).sharding), make())


def test_classes_that_stand_for_arrays():
    """As np.ndarray for every transformation, once their class is where NumPy's is."""
    class Variable:
        def __init__(self, value):
            self.value = value

        def __array__(self, dtype=None, copy=None):
            return np.asarray(self.value, dtype)

        shape = property(lambda self: self.value.shape)
        dtype = property(lambda self: self.value.dtype)

    x = Variable(np.arange(3, dtype=np.float32))
    with pytest.raises(TypeError, match="Variable"):
        jnp.sin(x)
    for table in (xla.canonicalize_dtype_handlers, pytype_aval_mappings):
        table[Variable] = table[np.ndarray]
    for f in (jnp.sin, jax.jit(jnp.sin), jax.vmap(jnp.sin), lambda x: jax.jit(lambda: lax.sin(x))()):
        np.testing.assert_allclose(f(x), np.sin(x.value), rtol=1e-6)
    np.testing.assert_array_equal(jax.grad(lambda x: jnp.sum(x * 2))(x), [2, 2, 2])
    assert jax.typeof(x) == jax.typeof(x.value)
    with pytest.raises(NotImplementedError, match="with __array__"):
        xla.canonicalize_dtype_handlers[int] = xla.canonicalize_dtype_handlers[np.ndarray]


def test_an_error_has_the_program_s_frames_alone(tmp_path):
    """Not those that ran it, nor those of a library that asks to be left out."""
    (tmp_path / "library.py").write_text("from jax._src import traceback_util\ntraceback_util.register_exclusion(__file__)\n"
                                         "def call(f, *args):\n    return f(*args)\n")
    script = tmp_path / "script.py"
    script.write_text("import jax.numpy as jnp, library\ndef add(x):\n    return x + jnp.ones(3)\n"
                      "library.call(add, jnp.ones(2))\n")
    told = run("-m", "hlotrace.as_jax", str(script), code=1)
    assert [line.split(", ")[1:] for line in told.splitlines() if line.startswith("  File")] == [
        ["line 4", "in <module>"], ["line 3", "in add"]]
    assert "ShapeError: (x: float32[2]) + (float32[3])" in told
    told = run("-m", "hlotrace.as_jax", str(script), code=1, JAX_TRACEBACK_FILTERING="off")
    assert "library.py" in told and "hlotrace/numpy" in told and "runpy" in told

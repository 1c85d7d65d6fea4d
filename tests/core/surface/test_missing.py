"""Names that are not there: those of JAX's that hlotrace lacks, and those that are misspelled."""
import importlib
import importlib.util
import pickle

import forked
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.core.surface.missing import Absent, Concrete
from hlotrace.core.surface.missing_names import NAMES
from hlotrace.core.trace import CONCRETE_METHODS, CONCRETE_PROPERTIES
from tools import missing

pytestmark = pytest.mark.quick


def test_names_that_are_there_are_not_on_the_list():
    assert missing.FILE.read_text("utf-8") == missing.text(missing.asked([])), "run: python tools/missing.py"


# what is written -> the whole message
MISSPELLED = {
    "jnp.arrange": "module 'hlotrace.numpy' has no attribute 'arrange'; did you mean 'arange'?",
    "jax.random.normall": "module 'hlotrace.random' has no attribute 'normall'; did you mean 'normal'?",
    "jax.vmapp": "module 'hlotrace' has no attribute 'vmapp'; did you mean 'vmap'?",
    "jax.lax.scann": "module 'hlotrace.lax' has no attribute 'scann'; did you mean 'scan'?",
    "jax.errors.ShapError": "module 'hlotrace.errors' has no attribute 'ShapError'; did you mean 'ShapeError'?",
    "jax.tree.mapp": "module 'hlotrace.tree' has no attribute 'mapp'; did you mean 'map'?",
    "jax.nn.initializers.zeross": "module 'hlotrace.nn.initializers' has no attribute 'zeross'; did you mean 'zeros'?",
    "jax.extend.core.primitives.tann_p": "module 'hlotrace.extend.core.primitives' has no attribute 'tann_p'; did you mean 'tan_p'?",
    "jax.interpreters.ad.defjpv": "module 'hlotrace.interpreters.ad' has no attribute 'defjpv'; did you mean 'defjvp'?",
    "jax.qqqq": "module 'hlotrace' has no attribute 'qqqq'",
    # Python says which one is meant
    "jnp.ones(2).reshap": "'ArrayImpl' object has no attribute 'reshap'",
    "jax.vmap(lambda x: x.platform())(jnp.ones(2))": "'BatchTracer' object has no attribute 'platform': concrete arrays have it, and this one is traced by vmap of "
    "<lambda> (BatchTracer has no attribute platform)",
}


@pytest.mark.parametrize("text", MISSPELLED)
def test_a_misspelled_name(text):
    with pytest.raises(AttributeError) as caught:
        eval(text)
    assert str(caught.value) == MISSPELLED[text]
    assert str(pickle.loads(pickle.dumps(caught.value))) == MISSPELLED[text]
    assert caught.type.__name__ == "AttributeError"


LACKING = [(place, names.split()[0]) for place, names in NAMES.items()]


@pytest.mark.parametrize(("place", "name"), LACKING)
def test_a_name_of_jax(place, name):
    """Told where it is asked for, as an attribute or after `from ... import`, or else its module is."""
    parts, owner = [*place.split("."), name] if place else [name], jax
    if place == "Array":
        owner, parts = jnp.zeros((3, 3)), [name]
    told = "hlotrace does not have jax."
    with pytest.raises(AttributeError) as caught:
        for part in parts:
            owner = getattr(owner, part)
    message = str(caught.value)
    assert message.startswith(told) and " (yet); " in message
    if place == "Array":
        assert message == f"hlotrace does not have jax.Array.{name} (yet); dir(x) lists what there is"
        return
    full = message.removeprefix(told).partition(" ")[0]
    assert f"{place}.{name}".lstrip(".").startswith(full)
    for line in f"from hlotrace{place and '.' + place} import {name}", f"import hlotrace{place and '.' + place}.{name}":
        with pytest.raises(ImportError) as caught:
            exec(line)
        assert str(caught.value) == message


def test_absent_names_of_arrays_are_those_on_the_list():
    absent = {name for name, value in vars(jax.Array).items() if type(value) is Absent}
    assert absent == set(NAMES["Array"].split())


def test_names_that_concrete_arrays_alone_have():
    x = jnp.ones(2)
    found = {name for name, value in vars(jax.Array).items() if type(value) is Concrete} - {"item"}
    assert {"addressable_shards", "is_deleted", "unsafe_buffer_pointer"} <= found and not found & {
        "reshape", "aval"}
    for name in found:
        assert hasattr(x, name)
        method = name in CONCRETE_METHODS
        if method or name in CONCRETE_PROPERTIES:
            error, words = jax.errors.ConcretizationTypeError, f"{name}: concrete arrays alone have it while"
        else:
            error, words = AttributeError, (
                f"'JaxprTracer' object has no attribute '{name}': concrete arrays have it, "
                                            "and this one is traced by jit of")
        with pytest.raises(error, match=words):
            jax.jit(lambda tracer, name=name, method=method: getattr(tracer, name)() if method
                    else getattr(tracer, name))(x)
    assert jax.eval_shape(lambda x: x.__array_namespace__().ones(3) + x.__jax_array__()[0], x).shape == (3,)


@pytest.mark.parametrize("name", NAMES.get("numpy", "").split())
def test_what_numpy_has_can_be_called(name):
    with pytest.raises(AttributeError) as caught:
        getattr(jnp, name)
    instead = "dir(hlotrace.numpy) lists what there is" if name[0].isupper() else (
        f"np.{name} can be called with hlotrace.pure_callback")
    assert str(caught.value) == f"hlotrace does not have jax.numpy.{name} (yet); {instead}"


@pytest.mark.parametrize(("line", "words"), [
    ("from hlotrace.numpy import arrange", "did you mean 'arange'?"),
    ("from hlotrace.tree_util import tree_mapp", "did you mean 'tree_map'?"),
    ("from hlotrace.dtypes import qqqq", "module 'hlotrace.dtypes' has no attribute 'qqqq'"),
    ("import hlotrace.nunpy", "did you mean 'numpy'?"),
    ("from hlotrace import nunpy", "did you mean 'numpy'?"),
])
def test_an_import_of_a_misspelled_name(line, words):
    with pytest.raises(ImportError, match=words.replace("?", r"\?")):
        exec(line)


def test_looking_is_no_error():
    assert not hasattr(jnp, "qqqq") and getattr(jnp.ones(2), "detach", None) is None
    assert importlib.util.find_spec("hlotrace.qqqq") is None
    assert importlib.util.find_spec("hlotrace.lax").name == "hlotrace.lax"
    for private in "from hlotrace.numpy import _qqqq", "import hlotrace._qqqq":
        with pytest.raises(ImportError, match="cannot import name|No module named"):
            exec(private)


def test_nothing_is_read_before_something_is_missing():
    code = (
        "import sys, hlotrace as jax, hlotrace.numpy as jnp; hasattr(jnp, 'qqqq'), hasattr(jnp.ones(2), 'qqqq'); "
            "print([m for m in ('difflib', 'hlotrace.core.surface.missing_names') if m in sys.modules])")
    assert forked.run(code, check=True).stdout == "[]\n"

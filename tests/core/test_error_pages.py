"""The last line of an error names the page about its kind, where an option says where pages are."""
from pathlib import Path

import numpy as np
import pytest
from places import ROOT

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import errors
from hlotrace.core.config import override
from hlotrace.core.errors import page_of

pytestmark = pytest.mark.quick

CLASSES = [value for value in vars(errors).values() if isinstance(value, type)
           and issubclass(value, Exception)
           and value.__module__ == "hlotrace.errors"]


@pytest.mark.parametrize("kind", CLASSES)
def test_every_class_of_errors_has_a_page_that_is_there_and_tells_of_it(kind):
    page = page_of(kind.__new__(kind), str(ROOT / "docs/errors/{page}.md"))
    assert page is not None
    # what others derive from
    if kind.__name__ not in ("JAXTypeError", "JAXIndexError", "ShapeError", "KeyPromotionError"):
        assert kind.__name__ in Path(page).read_text("utf-8")


@pytest.mark.parametrize(("base", "line"), [
    ("docs/errors/{page}.md", "(more about this: docs/errors/tracers.md)"),
    ("https://host/errors/", "(more about this: https://host/errors/tracers)")])
def test_the_last_line_names_the_page(base, line):
    with override("hlotrace_error_pages", base), pytest.raises(errors.TracerBoolConversionError) as caught:
        jax.make_jaxpr(lambda x: 1 if x > 0 else 2)(1.0)
    assert caught.value.__notes__[-1] == line and caught.value.__notes__.count(line) == 1


@pytest.mark.parametrize(("run", "page"), [
    (lambda x: jax.lax.scan(lambda c, _: (c > 0, None), x, None, length=2), "loops"),
    (lambda x: jax.eval_shape(lambda x: jax.lax.cond(True, lambda: x, lambda: x.sum()), x), "loops"),
    (lambda x: jax.device_put(x, "gpu:0"), "devices"),
    (lambda x: jax.make_mesh((4096,), ("data",)), "devices"),
    (lambda x: jax.random.normal(0, (3,)), "keys"),
    (lambda x: jax.eval_shape(lambda x: x[2.0], x), "indices"),
    (lambda x: jax.make_jaxpr(jax.grad(jnp.sum))(np.arange(3)), "dtypes"),
    (lambda x: jax.make_jaxpr(jnp.sin)("text"), "dtypes"),
    (lambda x: jax.eval_shape(lambda x: x.reshape(2, -1), x), "shapes"),
    (lambda x: jax.eval_shape(jax.vmap(jnp.dot), x, np.zeros((2, 2))), "shapes"),
    (lambda x: jax.eval_shape(lambda x: jnp.sum(x, out=x), x), "running")])
def test_errors_of_pythons_own_classes_have_the_page_that_their_words_are_of(run, page):
    with override("hlotrace_error_pages", "docs"), pytest.raises(Exception) as caught:
        run(np.zeros(3, "float32"))
    assert caught.value.__notes__[-1] == f"(more about this: docs/{page})"


def test_nothing_is_named_by_default_nor_for_other_errors():
    with pytest.raises(errors.TracerBoolConversionError) as caught:
        jax.make_jaxpr(lambda x: 1 if x > 0 else 2)(1.0)
    assert not getattr(caught.value, "__notes__", [])
    assert page_of(KeyError("x"), "docs") is None

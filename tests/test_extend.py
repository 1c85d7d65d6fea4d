"""Primitives from outside, written JAX's way: every transformation, the registries, MLIR objects, what is said of errors."""
import extension_programs as programs
import pytest
from equal import same


@pytest.mark.parametrize("transformation", programs.TRANSFORMATIONS)
@pytest.mark.parametrize("function", programs.FUNCTIONS)
def test_jax_primitives_under_every_transformation(function, transformation):
    tested, reference, n = programs.FUNCTIONS[function]
    transform = programs.TRANSFORMATIONS[transformation]
    same(transform(tested, n), transform(reference, n))

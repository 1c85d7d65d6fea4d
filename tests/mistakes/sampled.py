"""Functions of samples: images and grids that do not fit."""
from mistakes import mistake

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.scipy import interpolate, ndimage


@mistake(ValueError, "image.resize", "(8, 8)", "(1, 4, 4, 3)", advice="equal to the number of dimensions")
def image_resized_without_its_batch():
    return jax.image.resize(jnp.ones((1, 4, 4, 3)), (8, 8), "linear")  # <-


@mistake(ValueError, "image.resize", "'bilinaer'", advice="did you mean 'bilinear'?")
def method_misspelt():
    return jax.image.resize(jnp.ones((4, 4)), (8, 8), "bilinaer")  # <-


@mistake(ValueError, "scipy.ndimage.map_coordinates", "(4, 4)", advice="an array for each axis")
def one_coordinate_of_two():
    return ndimage.map_coordinates(jnp.ones((4, 4)), [jnp.ones(3)], order=1)  # <-


@mistake(ValueError, "RegularGridInterpolator", "(3,)", "(4, 3)", advice="a vector for each of the first axes")
def points_in_another_order():
    return interpolate.RegularGridInterpolator((jnp.arange(3.), jnp.arange(4.)), jnp.ones((4, 3)))  # <-

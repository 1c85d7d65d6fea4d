"""Masks of attention are equal where they show the same by the same rule."""
import numpy as np
import pytest

from hlotrace.experimental.pallas import masks

pytestmark = pytest.mark.quick


def made():
    """Masks no two of which are equal."""
    causal, corner = masks.CausalMask((2, 4)), np.arange(8).reshape(2, 4) < 2
    return [causal, masks.CausalMask((2, 4), offset=1), masks.CausalMask((4, 2)), masks.FullMask((2, 4)),
            masks.LocalMask((2, 4), (1, None), 0), masks.LocalMask((2, 4), (None, 1), 0),
            masks.LocalMask((2, 4), (1, None), 1), masks.ChunkedCausalMask((2, 4), 2),
            masks.NumpyMask(corner), masks.NumpyMask(~corner),
            causal & masks.NumpyMask(corner), causal | masks.NumpyMask(corner),
            masks.MultiHeadMask([causal]), masks.MultiHeadMask([causal, causal])]


def test_what_is_equal_has_one_hash():
    first, again = made(), made()
    assert first == again and list(map(hash, first)) == list(map(hash, again))
    assert len({*first, *again}) == len(first) and first[0] != "causal"

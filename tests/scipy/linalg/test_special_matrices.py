"""Matrices that are made of vectors."""
import numpy as np
import scipy.linalg
from matrices import s


def test_elements_stay_where_they_are_beside_inf_and_nan():
    """A Toeplitz or Hankel matrix holds its vector's elements: an infinite one does not spread to others."""
    c, r = np.array([1, np.inf, np.nan], np.float32), np.array([1, -np.inf, 2, np.nan], np.float32)
    for ours, scipys in ((s.toeplitz, scipy.linalg.toeplitz), (s.hankel, scipy.linalg.hankel)):
        np.testing.assert_array_equal(ours(c), scipys(c))
        np.testing.assert_array_equal(ours(c, r), scipys(c, r))
    np.testing.assert_array_equal(s.convolution_matrix(c, 3), scipy.linalg.convolution_matrix(c, 3))

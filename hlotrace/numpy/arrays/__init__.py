"""Arrays made, joined, reshaped, padded and printed; dtypes; the methods of arrays."""

"""Factorizations of batches of matrices, and what they share."""

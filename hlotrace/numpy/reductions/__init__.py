"""Reductions, statistics, sorting, sets."""

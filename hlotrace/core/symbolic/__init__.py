"""Sizes that are not known yet, and the scopes that hold what is known of them."""

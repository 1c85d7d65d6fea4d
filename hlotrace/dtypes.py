"""hlotrace.dtypes: dtypes and the promotion lattice."""

"""The primitives, one file a family; each primitive complete in one place.

Rules use what stands in the same file or in files above it here (a test reads this list), so two primitives that are each
other's transpose share a file, or the upper one's rules are written with the lower one:

    common          what the families share: dtypes and shapes of operands, error words
    shape           axes made, merged, put in order and summed away; batching by axis maps
    elementwise     one row for each function of elements
    special         erf, the gamma family, Bessel functions
    slicing         rev, slice, pad, concatenate; iota, copy
    reduce          product, extremes, argmax; reductions by programs
    precision       how exactly a contraction multiplies
    contract        dot_general
    conv            conv_general_dilated
    window          reductions over windows, and the derivatives of pooling
    cumulative      running sums, products and extremes
    index           what positions mean: modes, dimension numbers, checks
    gather          gather and the scatters
    dynamic         dynamic_slice, dynamic_update_slice
    sort            sort, top_k
    random          PRNG keys and their bits
    collectives     what devices along named axes do together
    calls           jit, custom rules
    control         cond, while
    remat           checkpoint
    scan            scan
    shard_map       the program of one device
    sharding        constraints and their inspection
    callbacks       calls of Python
"""

"""The primitives, one file a family; each primitive complete in one place.

Rules use what stands in the same file or in files above it here (a test reads this list), so two primitives that are each
other's transpose share a file, or the upper one's rules are written with the lower one:

    common          what the families share: dtypes and shapes of operands, error words
    shape           axes made, merged, put in order and summed away; batching by axis maps
    elementwise     one row for each function of elements
    fits            numbers of approximations, what evaluates them
    special         erf, the gamma family, Bessel functions
    slicing         rev, slice, pad, concatenate; iota, copy
    fft             Fourier transforms
    reduce          product, extremes, argmax; reductions by programs
    precision       how exactly a contraction multiplies
    contract        dot_general
    conv            conv_general_dilated
    window          reductions over windows, and the derivatives of pooling
    cumulative      running sums, products and extremes
    index           what positions mean: modes, dimension numbers, checks
    gather          gather and the scatters
    dynamic         dynamic_slice, dynamic_update_slice
    sort            sort, top_k and its approximation
    generators      random bits as XLA makes them
    random          PRNG keys and their bits
    collectives     what devices along named axes do together
    checks          what fails for some values, and the states that tell
    calls           jit, custom rules
    linear_call     linear functions with a transpose of the user's
    divergence      branches and loops where devices go different ways: collectives must not stand there
    control         cond, while
    incomplete      incomplete gamma and beta functions, by loops
    refs            accesses to a Ref
    remat           checkpoint, names for its policies
    linear_solve    systems that the user solves
    composites      operations that a compiler may know by name
    scan            scan
    bounded_while   while loops that reverse mode knows
    exported        calls of programs from elsewhere; one program for several platforms
    matrices        what linear algebra shares: batches of matrices, checks, triangles, kernels
    expansions      linear algebra as loops, for platforms without a kernel
    triangular      triangular_solve; cholesky and its update; symmetric_product
    factorizations  lu, qr with its reflectors
    condensed       hessenberg, tridiagonal, schur
    eigen           eigh, eig
    polar           the polar decomposition, and svd by it
    singular        svd
    tridiagonal     tridiagonal_solve
    custom_batching  functions whose batching the user says
    shard_map       the program of one device
    sharding        constraints and their inspection
    callbacks       calls of Python
    ffi             calls of kernels by name
    tagged          calls of programs under attributes
    partitioned     programs of which the user says what each device does; values that lie alike
"""

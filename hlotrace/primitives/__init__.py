"""The primitives, one file a family; each primitive complete in one place.

Rules use what is in the same file or in files above it here (a test reads this list), so two primitives that
are each other's transpose share a file, or the upper one's rules are written with the lower one:

    common          what the families share: dtypes and shapes of operands, error words
    arrays/shape                    axes made, merged, put in order and summed away; batching by axis maps
    arrays/precision                how exactly a contraction multiplies, and a function is computed
    arrays/elementwise_rules        what they share: types, lowering, derivatives by rows
    arrays/elementwise              arithmetic, comparisons, bits, conversions, choices: a row each
    arrays/transcendental           exponentials, logarithms, roots, powers, circular and hyperbolic functions
    arrays/bit_formats              numbers as the bits of another type, with fewer bits
    arrays/rational_fits            numbers of approximations, what evaluates them
    arrays/special                  erf, the gamma family, Bessel functions
    arrays/slicing                  rev, slice, pad, concatenate; iota, copy
    arrays/fft                      Fourier transforms
    arrays/reduce                   product, extremes, argmax; reductions by programs
    arrays/contract                 dot_general
    arrays/conv                     conv_general_dilated
    arrays/window                   reductions over windows, and the derivatives of pooling
    arrays/cumulative               running sums, products and extremes
    arrays/gather_numbers           what positions mean: modes, dimension numbers, checks
    arrays/gather                   gather and the scatters
    arrays/dynamic_slice            dynamic_slice, dynamic_update_slice
    arrays/sort                     sort, top_k and its approximation
    arrays/generators               random bits as XLA makes them
    arrays/random                   PRNG keys and their bits
    parallel/collectives            what devices along named axes do together
    programs/checks                 what fails for some values, and the states that tell
    programs/calls                  jit, custom rules
    programs/ruled_calls            calls whose rules the user gives, of hijax primitives
    programs/linear_call            linear functions with a transpose of the user's
    parallel/ragged                 slices sent to other devices, whose sizes are known at run time
    parallel/divergent_collectives  collectives in branches and loops where devices go different ways: errors
    programs/cond_while             cond, while
    arrays/incomplete               incomplete gamma and beta functions, by loops
    programs/refs                   accesses to a Ref
    programs/remat                  checkpoint, names for its policies
    programs/linear_solve           systems that the user solves
    programs/composites             operations that a compiler may know by name
    programs/scan                   scan
    programs/bounded_while          while loops that reverse mode knows
    programs/exported               calls of programs from elsewhere; one program for several platforms
    linalg/shared                   what linear algebra shares: batches, checks, triangles, kernels
    linalg/linalg_fallbacks         linear algebra as loops, for platforms without a kernel
    linalg/triangular               triangular_solve; cholesky and its update; symmetric_product
    linalg/factorizations           lu, qr with its reflectors
    linalg/hessenberg_schur         hessenberg, tridiagonal, schur
    linalg/eigen                    eigh, eig
    linalg/polar                    the polar decomposition, and svd by it
    linalg/svd                      svd
    linalg/tridiagonal              tridiagonal_solve
    programs/custom_batching        functions whose batching the user says
    parallel/sharding               constraints and their inspection
    parallel/shard_map              the program of one device
    programs/callbacks              calls of Python
    programs/ffi                    calls of kernels by name
    programs/buffer_callback        calls of Python that write into memory of the device
    programs/frontend_attributes    calls of programs under attributes
    parallel/custom_partitioning    programs of which the user says what each device does; shard_alike
"""

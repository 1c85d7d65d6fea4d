"""The types that stubs give to parameters and results: the tables of tools/stubs.py.

A parameter's type is that of its name in PARAMETERS, unless a line of FUNCTIONS says another for one function.  One whose
default is None takes None as well, without saying so.  What no table knows is Any: nothing breaks when a function is
added, and its types are a line here.
"""

# type: the names of parameters that have it, in any function
PARAMETERS = {
    "ArrayLike": """
        a a1 a2 alpha append ar ar1 ar2 arr array ary atol b base bias condition correction data discont element epsilon
        fill_value fp group_offset indices init_value initial key key_bits_array left lhs logits lower m max maxval mean
        min minval nan negative_slope neginf on_false on_true operand other p padding_value period posinf pred prepend q
        query repeats rhs rtol scale scatter_indices sorter start stddev step stop test_elements to_begin
        to_end update updates upper v val vals values variance weights where which x x1 x2 xp y z""",
    "Axis": "axis",
    "int": """
        M N axis1 axis2 axis_size axisa axisb axisc batch_group_count concat_axis ddof decimals dimension edge_order
        exponent_bits feature_group_count heartbeat_timeout_seconds host_id initialization_timeout k kth length
        mantissa_bits max_steps max_width min_width minlength n ndim ndmin nin nout num num_classes num_keys num_processes
        offset process_id process_index rank scatter_dimension slice_size split_axis start_dimension stop_dimension
        stride total_repeat_length unroll""",
    "bool": """
        allow_int allow_negative_indices approximate as_svg assume_unique assume_unique_indices check_vma concrete copy
        density descending disable endpoint equal_nan has_aux holomorphic include_initial increasing independent
        indices_are_sorted inline inplace invert is_causal is_leaf_takes_path is_stable jitted keep_unused keepdims
        optimize_remat ordered overwrite_input partitioned prevent_cse promote_integers replace retstep return_counts
        return_index return_indices return_inverse return_residual return_shape return_sign returned reverse right simple
        skip_format_check sorted sparse stable sum_match symbolic_zeros tiled transpose_kernel unique_indices use_color
        use_consistent_padding wrap wrap_negative_indices""",
    "str": """
        backend bitorder fail_message fmt level indexing memory_kind name order platform separator side topology_name
        trim""",
    "DTypeLike": "arg1 arg2 dtype from_ index_dtype new_dtype preferred_element_type to",
    "ShapeLike": "new_shape shape",
    "MatmulPrecision": "precision",
    "None": "out",
    "Place": "device in_shardings out_sharding out_shardings sharding shardings src",
    "Argnums": "argnums donate_argnums nondiff_argnums static_argnums",
    "Names": "donate_argnames nondiff_argnames static_argnames",
    "IsLeaf": "is_leaf",
    "Callable[..., Any]": """
        body_fun bwd callback computation cond_fun data_callback false_fun fn fun func func1d function fwd mask_func
        operation pyfunc true_fun""",
    "Sequence[Callable[..., Any]]": "branches",
    "Sequence[int]": """
        base_dilation broadcast_dimensions dimensions filter_shape lhs_dilation limit_indices permutation rhs_dilation
        sizes slice_sizes strides window_dilation window_dimensions window_strides""",
    "Sequence[ArrayLike] | Array": "arrays tup",
    "AxisName": "axis_name",
    "int | Sequence[int]": "batch_axis destination in_axis out_axis source",
    "Sequence[Device] | np.ndarray[Any, Any]": "devices",
    "Mesh | AbstractMesh": "mesh",
    "Sequence[str]": "data_fields drop_fields meta_fields",
    "int | Sequence[int] | ArrayLike": "indices_or_sections shift",
    "str | Sequence[Sequence[int]]": "padding",
    "Int": "size",
    "Sequence[Sequence[int]]": "axis_index_groups perm",
    "Mapping[str, Any]": "compiler_options",
}

# face: the functions whose types are those that their source has, but that a parameter which is Any there has that of
# its name in PARAMETERS; the others are generic, overloaded, or take what only the stubs have names for
ANNOTATED = {
    "hlotrace": """
        grad value_and_grad jacfwd jacrev hessian vmap linear_transpose fwd_and_bwd named_call closure_convert
        block_until_ready copy_to_host_async reshard live_arrays clear_caches""",
    "hlotrace.ad_checkpoint": "checkpoint_name print_saved_residuals",
    "hlotrace.distributed": "initialize is_initialized shutdown",
    "hlotrace.lax": "with_sharding_constraint",
    "hlotrace.topologies": "get_attached_topology get_topology_desc make_mesh",
}

# face: the type of results there, where no line says another; elsewhere Any
RESULTS = {
    "hlotrace.Array": "Array", "hlotrace._IndexUpdateRef": "Array",
    "hlotrace.numpy": "Array", "hlotrace.lax": "Array", "hlotrace.random": "Array", "hlotrace.nn": "Array",
    "hlotrace.numpy.linalg": "Array", "hlotrace.scipy.linalg": "Array",
    **{f"hlotrace.scipy.stats.{law}": "Array" for law in """bernoulli beta betabinom binom cauchy chi2 expon gamma gennorm
       geom gumbel_l gumbel_r laplace logistic nbinom norm pareto poisson t truncnorm uniform vonmises wrapcauchy dirichlet
       multinomial multivariate_normal""".split()},
}

# face: a line for a function, or for each of its overloads, with those parameters whose types their names do
# not tell, and the result.  A parameter that an overload gives without a default has to be given.  A line
# that ends with a comma goes on in the next.  `*` stands for the functions of the face that have no line.
FUNCTIONS = {
    "hlotrace": """
        jit(fun: Callable[_P, _R]) -> JitFunction[_P, _R]
        jit(fun: None = None) -> JitDecorator
        pmap(fun: Callable[_P, _R]) -> JitFunction[_P, _R]
        checkpoint(fun: Callable[_P, _R]) -> Callable[_P, _R]
        checkpoint(fun: None = None) -> Decorator
        jvp(fun: Callable[..., _R], primals: Sequence[Any], tangents: Sequence[Any],
            has_aux: Literal[False] = False) -> tuple[_R, _R]
        jvp(fun: Callable[..., tuple[_R, _T]], primals: Sequence[Any], tangents: Sequence[Any],
            has_aux: Literal[True]) -> tuple[_R, _R, _T]
        vjp(fun: Callable[..., _R], has_aux: Literal[False] = False) -> tuple[_R, Callable[..., Any]]
        vjp(fun: Callable[..., tuple[_R, _T]], has_aux: Literal[True]) -> tuple[_R, Callable[..., Any], _T]
        linearize(fun: Callable[..., _R], has_aux: Literal[False] = False) -> tuple[_R, Callable[..., _R]]
        linearize(fun: Callable[..., tuple[_R, _T]], has_aux: Literal[True]) -> tuple[_R, Callable[..., _R], _T]
        named_scope(name: str) -> Context
        custom_gradient(fun: Callable[_P, tuple[_R, Any]]) -> Callable[_P, _R]
        explain_sharding() -> Callable[..., Any]
        make_jaxpr() -> Callable[..., Any]
        shard_map(f: Callable[_P, _R]) -> Callable[_P, _R]
        shard_map(f: None = None) -> Decorator
        device_put(x: Any, may_alias: Any, donate: Any) -> Any
        device_get(x: Any) -> Any
        typeof(x: Any) -> Any
        effects_barrier() -> None
        default_backend() -> str
        device_count() -> int
        local_device_count() -> int
        process_count() -> int
        process_index() -> int
        devices() -> list[Device]
        local_devices() -> list[Device]
        make_mesh(axis_shapes: Iterable[int], axis_names: Iterable[str]) -> Mesh
        plan(mesh: Any, batch: str | None) -> Any
        make_array_from_callback() -> Array
        make_array_from_process_local_data(local_data: np.ndarray[Any, Any], global_shape: Sequence[int] | None) -> Array
        make_array_from_single_device_arrays(arrays: Sequence[Array]) -> Array
        disable_jit() -> Context
        transfer_guard() -> Context
        transfer_guard_device_to_device() -> Context
        transfer_guard_device_to_host() -> Context
        transfer_guard_host_to_device() -> Context
        enable_x64(new_val: bool) -> Context
        debug_nans(new_val: bool) -> Context
        debug_infs(new_val: bool) -> Context
        check_tracer_leaks(new_val: bool) -> Context
        log_compiles(new_val: bool) -> Context
        explain_cache_misses(new_val: bool) -> Context
        default_device(new_val: Device | str | None) -> Context
        default_matmul_precision(new_val: str | None) -> Context
        numpy_dtype_promotion(new_val: str | None) -> Context
        numpy_rank_promotion(new_val: str | None) -> Context
        ensure_compile_time_eval() -> Context
    """,
    "hlotrace.debug": """
        callback() -> None
        print() -> None
        inspect_array_sharding(value: Any) -> None
    """,
    "hlotrace.dtypes": """
        canonicalize_dtype() -> np.dtype[Any]
        issubdtype() -> bool
        result_type() -> np.dtype[Any]
    """,
    "hlotrace.experimental.mesh_utils": """
        create_device_mesh(mesh_shape: Sequence[int]) -> np.ndarray[Any, Any]
    """,
    "hlotrace.experimental.multihost_utils": """
        sync_global_devices() -> None
    """,
    "hlotrace.experimental.ode": """
        initial_step_size(order: float) -> Any
        interp_fit_dopri(k: ArrayLike) -> Any
        optimal_step_size(order: float) -> Any
    """,
    "hlotrace.experimental.shard_map": """
        shard_map(f: Callable[_P, _R]) -> Callable[_P, _R]
    """,
    "hlotrace.sharding": """
        get_mesh() -> Mesh
        get_abstract_mesh() -> AbstractMesh
    """,
    "hlotrace.tree": """
        all() -> bool
        flatten() -> tuple[list[Any], PyTreeDef]
        flatten_with_path() -> tuple[list[tuple[tuple[Any, ...], Any]], PyTreeDef]
        leaves() -> list[Any]
        leaves_with_path() -> list[tuple[tuple[Any, ...], Any]]
        map(f: Callable[..., Any]) -> Any
        map_with_path(f: Callable[..., Any]) -> Any
        structure() -> PyTreeDef
        reduce(function: Callable[[Any, Any], Any]) -> Any
        reduce_associative(operation: Callable[[Any, Any], Any]) -> Any
        unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any""",
    "hlotrace.tree_util": """
        all_leaves(iterable: Iterable[Any]) -> bool
        flatten_one_level() -> tuple[Iterable[Any], Any]
        flatten_one_level_with_keys() -> tuple[Iterable[tuple[Any, Any]], Any]
        is_tree_node() -> bool
        keystr(keys: Iterable[Any]) -> str
        register_dataclass(nodetype: type[_T]) -> type[_T]
        register_pytree_node(nodetype: type[_T], flatten_func: Callable[[_T], tuple[Iterable[Any], Any]],
            unflatten_func: Callable[[Any, Any], _T], flatten_with_keys_func: Callable[[_T], tuple[Iterable[tuple[Any,
            Any]], Any]] | None) -> None
        register_pytree_with_keys(nodetype: type[_T], flatten_with_keys: Callable[[_T], tuple[Iterable[tuple[Any, Any]],
            Any]], unflatten_func: Callable[[Any, Any], _T], flatten_func: Callable[[_T], tuple[Iterable[Any],
            Any]] | None) -> None
        register_pytree_node_class(cls: type[_T]) -> type[_T]
        register_pytree_with_keys_class(cls: type[_T]) -> type[_T]
        register_static(cls: type[_T]) -> type[_T]
        treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]
        treedef_is_leaf(treedef: PyTreeDef) -> bool
        treedef_is_strict_leaf(treedef: PyTreeDef) -> bool
        treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef
    """,
    "hlotrace.random": """
        key(seed: Int | Array | np.ndarray[Any, Any]) -> Array
        PRNGKey(seed: Int | Array | np.ndarray[Any, Any]) -> Array
        key_impl() -> Any
        key_dtype() -> Any
        split(key: Array | np.ndarray[Any, Any], num: int | Sequence[int]) -> Array
        choice(a: ArrayLike) -> Array
        permutation(x: ArrayLike) -> Array
        *(key: Array | np.ndarray[Any, Any]) -> Array
    """,
    "hlotrace.numpy.linalg": """
        eig() -> EigResult
        eigh(UPLO: str = None) -> EighResult
        eigvalsh(UPLO: str | None = "L") -> Array
        lstsq(rcond: ArrayLike = None) -> tuple[Array, Array, Array, Array]
        matrix_norm(ord: int | float | str = "fro") -> Array
        matrix_rank(M: ArrayLike, tol: ArrayLike = None) -> Array
        norm(ord: int | float | str = None) -> Array
        pinv(rcond: ArrayLike = None) -> Array
        qr(mode: Literal['reduced', 'complete', 'raw', 'full'] = 'reduced') -> QRResult
        qr(mode: Literal['r']) -> Array
        slogdet(method: str = None) -> SlogdetResult
        svd(compute_uv: Literal[True] = True, subset_by_index: tuple[int, int] = None) -> SVDResult
        svd(compute_uv: Literal[False], subset_by_index: tuple[int, int] = None) -> Array
        tensorinv(ind: int = 2) -> Array
        tensorsolve(axes: Sequence[int] = None) -> Array
        vector_norm(ord: int | float | str = 2) -> Array
    """,
    "hlotrace.scipy.linalg": """
        cho_factor(lower: bool = False) -> tuple[Array, bool]
        cho_solve(c_and_lower: tuple[ArrayLike, bool]) -> Array
        cholesky(lower: bool = False) -> Array
        circulant(c: ArrayLike) -> Array
        dft(scale: str = None) -> Array
        eigh(lower: bool = True, eigvals_only: Literal[False] = False) -> tuple[Array, Array]
        eigh(eigvals_only: Literal[True], lower: bool = True) -> Array
        eigh_tridiagonal(d: ArrayLike, e: ArrayLike, eigvals_only: Literal[False] = False) -> tuple[Array, Array]
        eigh_tridiagonal(d: ArrayLike, e: ArrayLike, eigvals_only: Literal[True]) -> Array
        expm(A: ArrayLike, max_squarings: int = 16) -> Array
        expm_frechet(A: ArrayLike, E: ArrayLike, compute_expm: Literal[True] = True) -> tuple[Array, Array]
        expm_frechet(A: ArrayLike, E: ArrayLike, compute_expm: Literal[False]) -> Array
        funm(A: ArrayLike, disp: Literal[True] = True) -> Array
        funm(A: ArrayLike, disp: Literal[False]) -> tuple[Array, Array]
        hankel(c: ArrayLike, r: ArrayLike = None) -> Array
        hessenberg(calc_q: Literal[False] = False) -> Array
        hessenberg(calc_q: Literal[True]) -> tuple[Array, Array]
        leslie(f: ArrayLike, s: ArrayLike) -> Array
        lu() -> tuple[Array, ...]
        lu_factor() -> tuple[Array, Array]
        lu_solve(lu_and_piv: tuple[ArrayLike, ArrayLike], trans: int = 0) -> Array
        polar(side: str = 'right', eps: float = None, max_iterations: int = None) -> tuple[Array, Array]
        qr() -> tuple[Array, ...]
        qr_multiply(c: ArrayLike) -> tuple[Array, ...]
        rsf2csf(T: ArrayLike, Z: ArrayLike) -> tuple[Array, Array]
        schur() -> list[Array]
        solve(lower: bool = False) -> Array
        solve_triangular(trans: int | str = 0, lower: bool = False) -> Array
        solve_sylvester(A: ArrayLike, B: ArrayLike, C: ArrayLike) -> Array
        sqrtm(A: ArrayLike, blocksize: int = 1) -> Array
        svd(compute_uv: Literal[True] = True) -> tuple[Array, Array, Array]
        svd(compute_uv: Literal[False]) -> Array
        toeplitz(c: ArrayLike, r: ArrayLike = None) -> Array
    """,
    "hlotrace.nn.initializers": """
        *(key: Array | np.ndarray[Any, Any], shape: Sequence[Int]) -> Initializer
        zeros(key: Array | np.ndarray[Any, Any], shape: Sequence[Int]) -> Array
        ones(key: Array | np.ndarray[Any, Any], shape: Sequence[Int]) -> Array
    """,
    "hlotrace.nn": """
        logsumexp(return_sign: Literal[False] = False) -> Array
        logsumexp(return_sign: Literal[True]) -> tuple[Array, Array]
        dot_product_attention(query: ArrayLike, key: ArrayLike, value: ArrayLike, mask: ArrayLike) -> Any
    """,
    "hlotrace.ad_checkpoint": """
        saved_residuals(f: Callable[..., Any]) -> list[tuple[Any, str]]
    """,
    "hlotrace.custom_batching": """
        sequential_vmap(f: Callable[_P, _R]) -> Callable[_P, _R]
    """,
    "hlotrace.lax": """
        axis_size() -> int
        all_gather(x: Any) -> Any
        all_to_all(x: Any) -> Any
        associative_scan(fn: Callable[[Any, Any], Any], elems: _T) -> _T
        broadcast_shapes() -> tuple[int, ...]
        cond(true_fun: Callable[..., _R], false_fun: Callable[..., _R], operand: Any) -> _R
        composite(decomposition: Callable[..., _R]) -> Callable[..., _R]
        concatenate(operands: Sequence[ArrayLike]) -> Array
        platform_dependent(default: Callable[..., Any]) -> Any
        stack(operands: Sequence[ArrayLike]) -> Array
        conv_dimension_numbers() -> ConvDimensionNumbers
        fori_loop(lower: ArrayLike, upper: ArrayLike, body_fun: Callable[[Any, Any], _R], init_val: Any) -> _R
        map(f: Callable[[Any], _R], xs: Any) -> _R
        optimization_barrier(operand: _T) -> _T
        padtype_to_pads() -> list[tuple[int, int]]
        pbroadcast(x: _T) -> _T
        pcast(x: _T) -> _T
        pmax(x: _T) -> _T
        pmean(x: _T) -> _T
        pmin(x: _T) -> _T
        ppermute(x: _T) -> _T
        pshuffle(x: _T, perm: Sequence[int]) -> _T
        psum(x: _T) -> _T
        psum_scatter(x: Any) -> Any
        pswapaxes(x: _T) -> _T
        pvary(x: _T) -> _T
        reduce(operands: Any, init_values: Any) -> Any
        reduce_window(operand: Any, init_value: Any) -> Any
        reduce_window_shape_tuple() -> tuple[int, ...]
        scan(f: Callable[[Any, Any], tuple[_C, _Y]], init: Any) -> tuple[_C, _Y]
        sort(operand: Array | np.ndarray[Any, Any]) -> Array
        sort(operand: Sequence[ArrayLike]) -> tuple[Array, ...]
        sort_key_val(keys: ArrayLike, values: ArrayLike) -> tuple[Array, Array]
        split() -> list[Array]
        stop_gradient(x: _T) -> _T
        switch(index: ArrayLike, branches: Sequence[Callable[..., Any]], operand: Any) -> Any
        top_k() -> list[Array]
        while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], _R], init_val: Any) -> _R
    """,
    "hlotrace.numpy": """
        array(object: Any) -> Array
        asarray(a: Any) -> Array
        arange(start: ArrayLike) -> Array
        apply_over_axes(axes: Sequence[int]) -> Array
        array_equal(a1: ArrayLike | Sequence[Any], a2: ArrayLike | Sequence[Any]) -> Array
        array_equiv(a1: ArrayLike | Sequence[Any], a2: ArrayLike | Sequence[Any]) -> Array
        array_split() -> list[Array]
        split() -> list[Array]
        hsplit() -> list[Array]
        vsplit() -> list[Array]
        dsplit() -> list[Array]
        atleast_1d(arys: ArrayLike) -> Any
        atleast_2d(arys: ArrayLike) -> Any
        atleast_3d(arys: ArrayLike) -> Any
        average(returned: Literal[False] = False) -> Array
        average(returned: Literal[True]) -> tuple[Array, Array]
        block(arrays: NestedArrays) -> Array
        broadcast_arrays() -> tuple[Array, ...]
        broadcast_shapes() -> tuple[int, ...]
        can_cast() -> bool
        diag_indices() -> tuple[Array, ...]
        diag_indices_from() -> tuple[Array, ...]
        einsum(subscripts: str | Any, optimize: Any) -> Array
        einsum_path(optimize: Any) -> tuple[list[Any], Any]
        frompyfunc() -> ufunc
        full(fill_value: ArrayLike | Sequence[Any]) -> Array
        full_like(a: ArrayLike | ShapeDtypeStruct, fill_value: ArrayLike | Sequence[Any]) -> Array
        zeros_like(a: ArrayLike | ShapeDtypeStruct) -> Array
        ones_like(a: ArrayLike | ShapeDtypeStruct) -> Array
        empty_like(prototype: ArrayLike | ShapeDtypeStruct) -> Array
        gradient() -> Any
        array_repr() -> str
        array_str() -> str
        cov(ddof: float) -> Array
        histogram(bins: ArrayLike | Sequence[Any]) -> tuple[Array, Array]
        histogram2d(bins: ArrayLike | Sequence[Any]) -> tuple[Array, Array, Array]
        histogramdd(bins: ArrayLike | Sequence[Any]) -> tuple[Array, list[Array]]
        minmax(initial: Any) -> tuple[Array, Array]
        polydiv() -> tuple[Array, Array]
        polyfit(deg: int, rcond: float, full: bool, cov: bool | str) -> Any
        polyint(k: ArrayLike) -> Array
        top_k() -> tuple[Array, Array]
        digitize(bins: ArrayLike) -> Array
        indices(dimensions: Sequence[int], sparse: Literal[False] = False) -> Array
        indices(dimensions: Sequence[int], sparse: Literal[True]) -> tuple[Array, ...]
        interp(left: ArrayLike | str, right: ArrayLike | str) -> Array
        intersect1d(return_indices: Literal[False] = False) -> Array
        intersect1d(return_indices: Literal[True]) -> tuple[Array, Array, Array]
        iscomplexobj(x: Any) -> bool
        isdtype() -> bool
        isrealobj(x: Any) -> bool
        isscalar(element: Any) -> bool
        issubdtype() -> bool
        iterable(y: Any) -> bool
        ix_() -> tuple[Array, ...]
        linspace(retstep: Literal[False] = False) -> Array
        linspace(retstep: Literal[True]) -> tuple[Array, Array]
        mask_indices() -> tuple[Array, Array]
        meshgrid() -> tuple[Array, ...]
        modf() -> tuple[Array, Array]
        frexp() -> tuple[Array, Array]
        divmod() -> tuple[Array, Array]
        ndim(a: Any) -> int
        nonzero() -> tuple[Array, ...]
        pad(pad_width: Any, mode: str | Callable[..., Any]) -> Array
        percentile(q: ArrayLike | Sequence[float]) -> Array
        quantile(q: ArrayLike | Sequence[float]) -> Array
        nanpercentile(q: ArrayLike | Sequence[float]) -> Array
        nanquantile(q: ArrayLike | Sequence[float]) -> Array
        promote_types(a: DTypeLike, b: DTypeLike) -> np.dtype[Any]
        result_type() -> np.dtype[Any]
        repeat(repeats: ArrayLike | Sequence[int]) -> Array
        select(condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike]) -> Array
        shape(a: Any) -> tuple[int, ...]
        size(a: Any) -> int
        tensordot(axes: int | Sequence[int] | Sequence[Sequence[int]]) -> Array
        tile(A: ArrayLike, reps: int | Sequence[int]) -> Array
        transpose(axes: Sequence[int]) -> Array
        tril_indices() -> tuple[Array, Array]
        triu_indices() -> tuple[Array, Array]
        tril_indices_from() -> tuple[Array, Array]
        triu_indices_from() -> tuple[Array, Array]
        unique() -> Any
        unique_all() -> Any
        unique_counts() -> Any
        unique_inverse() -> Any
        unravel_index(shape: int | Sequence[int]) -> tuple[Array, ...]
        unstack() -> tuple[Array, ...]
        vectorize() -> Callable[..., Any]
        where(condition: ArrayLike, x: None = None, y: None = None) -> tuple[Array, ...]
        where(condition: ArrayLike, x: ArrayLike, y: ArrayLike) -> Array
    """,
    "hlotrace.Array": """
        T -> Array
        mT -> Array
        real -> Array
        imag -> Array
        at -> _IndexUpdateHelper
        shape -> tuple[int, ...]
        dtype -> np.dtype[Any]
        ndim -> int
        size -> int
        itemsize -> int
        nbytes -> int
        weak_type -> bool
        aval -> Any
        sharding -> Sharding
        device -> Any
        committed -> bool
        is_fully_addressable -> bool
        is_fully_replicated -> bool
        addressable_shards -> list[Shard]
        global_shards -> list[Shard]
        addressable_data(index: int) -> Array
        __array__(dtype: Any, copy: Any) -> np.ndarray[Any, Any]
        __array_namespace__() -> Any
        __dlpack__() -> Any
        __dlpack_device__() -> tuple[Any, int]
        __bool__() -> bool
        __complex__() -> complex
        __contains__(value: ArrayLike) -> bool
        __divmod__(other: ArrayLike) -> tuple[Array, Array]
        __rdivmod__(other: ArrayLike) -> tuple[Array, Array]
        __float__() -> float
        __getitem__(index: Index) -> Array
        __index__() -> int
        __int__() -> int
        __iter__() -> Iterator[Array]
        __len__() -> int
        __reversed__() -> Iterator[Array]
        __round__(ndigits: int) -> Array
        block_until_ready() -> Array
        copy_to_host_async() -> None
        delete() -> None
        devices() -> set[Device]
        is_deleted() -> bool
        is_ready() -> bool
        item(args: int) -> Any
        nonzero() -> tuple[Array, ...]
        on_device_size_in_bytes() -> int
        tobytes() -> bytes
        tolist() -> Any
        unsafe_buffer_pointer() -> int
    """,
    "hlotrace.NamedSharding": """
        __init__(spec: PartitionSpec | Sequence[Any], memory_kind: str) -> None
        mesh -> Mesh | AbstractMesh
        spec -> PartitionSpec
        is_fully_replicated -> bool
        num_devices -> int
        memory_kind -> str | None
        update() -> NamedSharding
        with_memory_kind(kind: str) -> NamedSharding
        with_spec(spec: PartitionSpec | Sequence[Any]) -> NamedSharding
    """,
    "hlotrace.set_mesh": """
        __enter__() -> set_mesh
        __exit__() -> None
    """,
    "hlotrace.sharding.Mesh": """
        __init__(devices: Sequence[Any] | np.ndarray[Any, Any], axis_names: str | Sequence[str]) -> None
        __enter__() -> Mesh
        __exit__() -> None
        abstract_mesh -> AbstractMesh
        axis_names -> tuple[str, ...]
        axis_sizes -> tuple[int, ...]
        device_ids -> np.ndarray[Any, Any]
        devices -> np.ndarray[Any, Any]
        local_devices -> list[Device]
        empty -> bool
        shape -> Mapping[str, int]
        shape_tuple -> tuple[tuple[str, int], ...]
        size -> int
    """,
    "hlotrace.sharding.AbstractMesh": """
        __init__(axis_sizes: Sequence[Any], axis_names: Any) -> None
        __enter__() -> AbstractMesh
        __exit__() -> None
        abstract_mesh -> AbstractMesh
        axis_names -> tuple[str, ...]
        axis_sizes -> tuple[int, ...]
        empty -> bool
        shape -> Mapping[str, int]
        shape_tuple -> tuple[tuple[str, int], ...]
        size -> int
    """,
    "hlotrace.sharding.PartitionSpec": """
        partitions -> tuple[Any, ...]
        __add__(other: Any) -> PartitionSpec
        __radd__(other: Any) -> PartitionSpec
        __getitem__(index: Any) -> Any
        __iter__() -> Iterator[Any]
        __len__() -> int
        count() -> int
        index() -> int
    """,
    "hlotrace.sharding.Sharding": """
        addressable_devices -> set[Device]
        device_set -> set[Device]
        addressable_devices_indices_map(global_shape: Sequence[int]) -> dict[Device, tuple[slice, ...]]
        devices_indices_map(global_shape: Sequence[int]) -> dict[Device, tuple[slice, ...]]
        is_equivalent_to(other: Sharding) -> bool
        is_fully_addressable -> bool
        memory_kind -> str | None
        num_devices -> int
        shard_shape(global_shape: Sequence[int]) -> tuple[int, ...]
    """,
    "hlotrace.sharding.SingleDeviceSharding": """
        is_fully_replicated -> bool
        memory_kind -> str | None
        shard_shape(global_shape: Sequence[int]) -> tuple[int, ...]
        with_memory_kind(kind: str) -> SingleDeviceSharding
    """,
    "hlotrace.sharding.PositionalSharding": """
        T -> PositionalSharding
        is_fully_replicated -> bool
        memory_kind -> str | None
        ids -> np.ndarray[Any, Any]
        ndim -> int
        shape -> tuple[int, ...]
        replicate() -> PositionalSharding
        reshape() -> PositionalSharding
        transpose() -> PositionalSharding
        with_memory_kind(kind: str) -> PositionalSharding
    """,
    "hlotrace.stages.Traced": """
        fun_name -> str
        in_tree -> PyTreeDef
        out_tree -> PyTreeDef
        lower(lowering_platforms: Sequence[str]) -> Lowered
    """,
    "hlotrace.stages.Lowered": """
        fun_name -> str
        in_tree -> PyTreeDef
        out_tree -> PyTreeDef
        as_text(dialect: str) -> str
        compile() -> Compiled
        compiler_ir(dialect: str) -> Any
        cost_analysis() -> Any
    """,
    "hlotrace.stages.Compiled": """
        fun_name -> str
        in_tree -> PyTreeDef
        out_tree -> PyTreeDef
        as_text() -> str
    """,
    "hlotrace.export": """
        export(fun_jit: Callable[..., Any], platforms: Sequence[str] | None,
            disabled_checks: Sequence[DisabledSafetyCheck]) -> Callable[..., Exported]
        deserialize(blob: bytes | bytearray) -> Exported
        default_export_platform() -> str
        is_symbolic_dim(p: Any) -> bool
        symbolic_shape(shape_spec: str | None, constraints: Sequence[str], scope: SymbolicScope | None,
            like: Sequence[int | None] | None) -> tuple[Any, ...]
        symbolic_args_specs(args: Any, shapes_specs: Any, constraints: Sequence[str], scope: SymbolicScope | None) -> Any
        symbolic_dim_bounds(dimension: Any) -> tuple[float, float]
        register_namedtuple_serialization(nodetype: type[_T], serialized_name: str) -> type[_T]
        register_pytree_node_serialization(nodetype: type[_T], serialized_name: str,
            serialize_auxdata: Callable[[Any], bytes], deserialize_auxdata: Callable[[Any], Any]) -> type[_T]
    """,
    "hlotrace.export.SymbolicScope": """
        __init__(constraints_str: Sequence[str]) -> None
    """,
    "hlotrace.export.DisabledSafetyCheck": """
        platform() -> DisabledSafetyCheck
        custom_call(target_name: str) -> DisabledSafetyCheck
        is_custom_call() -> str | None
    """,
    "hlotrace.export.Exported": """
        fun_name -> str
        in_tree -> PyTreeDef
        in_avals -> tuple[Any, ...]
        out_tree -> PyTreeDef
        out_avals -> tuple[Any, ...]
        nr_devices -> int
        platforms -> tuple[str, ...]
        ordered_effects -> tuple[Any, ...]
        unordered_effects -> tuple[Any, ...]
        disabled_safety_checks -> tuple[DisabledSafetyCheck, ...]
        mlir_module_serialized -> bytes
        calling_convention_version -> int
        module_kept_var_idx -> tuple[int, ...]
        uses_global_constants -> bool
        has_vjp() -> bool
        vjp() -> Exported
        serialize(vjp_order: int) -> bytearray
        mlir_module() -> str
    """,
    "hlotrace.topologies.TopologyDescription": """
        devices -> list[Device]
        name -> str
        platform -> str
        compile(text: str) -> Any
        make_mesh(axis_shapes: Iterable[int], axis_names: Iterable[str]) -> Mesh
    """,
    "hlotrace.nn.initializers.Initializer": """
        __call__(key: Array, shape: Sequence[Int]) -> Array
    """,
    "hlotrace._IndexUpdateHelper": """
        __getitem__(index: Index) -> _IndexUpdateRef
    """,
    "hlotrace._IndexUpdateRef": """
        apply(func: Callable[[Array], ArrayLike]) -> Array
    """,
    "hlotrace.Config": """
        update(name: str) -> None
        read(name: str) -> Any
        __getattr__(name: str) -> Any
        values -> dict[str, Any]
        x64_enabled -> bool
    """,
    "hlotrace.ShapeDtypeStruct": """
        __init__(sharding: Sharding | PartitionSpec | None, weak_type: bool) -> None
        __len__() -> int
        shape -> tuple[int, ...]
        dtype -> np.dtype[Any]
        ndim -> int
        size -> int
        sharding -> Any
        weak_type -> bool
        like() -> ShapeDtypeStruct
        update() -> ShapeDtypeStruct
    """,
}

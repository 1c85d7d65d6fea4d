"""`out_sharding=`: the result of a function, lying over devices as its caller asks."""


def laid(x, sharding, what):
    """`x` as `sharding` says: a NamedSharding, a PartitionSpec of the current mesh, or None for as it is.

    Under a trace it is a constraint, otherwise the array is moved.  `what` begins errors: TypeError for another kind of
    value, ValueError where a dimension does not divide, RuntimeError for a spec where there is no mesh.
    """
    if sharding is None:
        return x
    from .shardings import lay  # programs that name no sharding need none of those modules
    return lay(x, sharding, what)

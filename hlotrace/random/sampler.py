"""Makes distributions: the functions that users call, from how their values are drawn."""
import functools
import inspect

from ..api.composite import composite
from ..core import dtypes
from ..core.avals import aval_of
from ..numpy.util import promote_dtypes_inexact
from ..placement.out_sharding import with_out_sharding
from .continuous import float_dtype, result_shape, spread
from .keys import one_key

_FREE, _NAMED = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY


def own_dtype(_, parameters):
    """The floating dtype of the parameters, whatever that of the result."""
    return aval_of(promote_dtypes_inexact(*parameters)[0]).dtype


def law(fun=None, *, dtype=float_dtype, shape=None, fit=result_shape, work=lambda dtype, _: dtype,
        method=False, static=(), laid_out=True):
    """Decorator: `fun(key, *parameters, *, shape, dtype)` draws; users choose shape, dtype, `out_sharding`.

    Args:
        dtype: (name, requested dtype) -> that of the result.
        shape: the default; None is the shape of the parameters.
        fit: (name, requested shape, *parameters) -> the shape that `fun` is given, or an error.
        work: (dtype of the result, parameters) -> the dtype in which `fun` is given the parameters, as arrays
            of that shape; None gives them as they are.
        method: there is a choice between samplers.
        static: the parameters that are not arrays.
        laid_out: there is `out_sharding`.
    """
    if fun is None:
        return functools.partial(law, dtype=dtype, shape=shape, fit=fit, work=work, method=method,
                                 static=static, laid_out=laid_out)
    name, kind = fun.__name__, dtype
    own = [p for p in inspect.signature(fun).parameters.values() if p.kind is _FREE]
    signature = inspect.Signature([
        *own, inspect.Parameter("shape", _FREE, default=shape),
        inspect.Parameter("dtype", _FREE, default=None),
        *[inspect.Parameter("method", _NAMED, default="exact")] * method,
        *[inspect.Parameter("out_sharding", _NAMED, default=None)] * laid_out])
    arrays = [p.name for p in own[1:] if p.name not in static]

    @functools.wraps(fun)
    def draw(key, *parameters, shape, dtype):
        if work is not None:
            of = work(dtype, parameters)
            parameters = [spread(x, of, shape) for x in parameters]
        return fun(key, *parameters, shape=shape, dtype=dtype)
    draw.__signature__ = inspect.Signature([*own, *[inspect.Parameter(n, _NAMED)
                                                    for n in ("shape", "dtype")]])
    draw = composite(draw, static=(*static, "shape", "dtype"))

    @functools.wraps(fun)
    def sample(*args, **kwargs):
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"random.{name}() {error}: it takes {', '.join(signature.parameters)}") from None
        given.apply_defaults()
        given = given.arguments
        key, dtype = one_key(name, given["key"]), kind(name, given["dtype"])
        check_method(name, given.get("method", "exact"))
        shape = fit(name, given["shape"], *[given[n] for n in arrays])
        out = draw(key, *[given[p.name] for p in own[1:]], shape=shape, dtype=dtype)
        return with_out_sharding(out, given.get("out_sharding"), f"random.{name}")
    sample.__signature__ = signature
    sample.draw = draw
    return sample


def integer_dtype(name, dtype):
    """The canonical dtype of a distribution of counts; None is the default integer.  ValueError unless it is
    an integer dtype."""
    dtype = dtypes.check_user_dtype(int if dtype is None else dtype, name)
    if not dtypes.is_integer(dtype):
        raise ValueError(f"dtype argument to `{name}` must be an int dtype, got {dtype.name}: ask for "
                         "jnp.int32 and convert the counts")
    return dtype


def check_method(name, method):
    if method == "approximate":
        raise NotImplementedError(f"{name}: method='approximate' is not supported: 'exact' is")
    if method != "exact":
        raise ValueError(f"method argument to `{name}` must be one of 'exact' and 'approximate', got "
                         f"{method!r}")

"""Options: one table, process-wide values with thread-local overrides; and what is in force on each thread.

`state` is this package's only thread-local: the current trace, the name stack, and the option values in
force.  Everything that reads it in a hot path reads a plain attribute.
"""
from __future__ import annotations

import contextlib
import enum
import gc
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, TypeAlias

from .errors import did_you_mean

# of an option: from what a user gives to the option's value; ValueError for what is none
Parser: TypeAlias = Callable[[Any], Any]


def _flag(value: Any) -> bool:
    if isinstance(value, str):
        lowered = value.lower()
        if lowered not in ("1", "true", "yes", "on", "0", "false", "no", "off", ""):
            raise ValueError(f"{value!r} is not a boolean: give True or False")
        return lowered in ("1", "true", "yes", "on")
    if not isinstance(value, (bool, int)):
        raise ValueError(f"{value!r} is not a boolean: give True or False")
    return bool(value)


def _flag_or_auto(value: Any) -> bool | None:
    return None if value in (None, "auto") else _flag(value)


def _wrong_type(kind: str, expected: type, value: object) -> ValueError:
    return ValueError(f"new {kind} config value must be of type {expected.__name__}, got {value!r} of type "
                      f"{type(value)}")


def _int(value: Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = None
    if number is None or isinstance(value, float) and number != value:
        raise _wrong_type("int", int, value)
    return number


def _float(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise _wrong_type("float", float, value) from None


def _directory(value: Any) -> str | None:
    if not (value is None or isinstance(value, (str, os.PathLike))):
        raise _wrong_type("string", str, value)
    return value if value is None else os.fspath(value)


def _device_count(value: Any) -> int:
    value = _int(value)
    if value != -1 and value < 1:
        raise ValueError(f"{value} is not a number of devices; -1 leaves it to XLA_FLAGS")
    return value


def _text(value: Any) -> str | None:
    if not (value is None or isinstance(value, str)):
        raise _wrong_type("string", str, value)
    return value


def _device(value: Any) -> Any:
    if not (value is None or isinstance(value, str) or hasattr(value, "device_kind")
            and not isinstance(value, type)):
        raise ValueError(f"{value!r} is not a device, as jax.devices()[0], the name of a platform, as 'cpu', "
                         "or None")
    return value


def _one_of(*choices: Any) -> Parser:
    def parse(value: Any) -> Any:
        if value not in choices:
            none, listed = "None or " * (None in choices), [c for c in choices if c is not None]
            raise ValueError(f"new enum value must be {none}in {listed}, got {value} of type {type(value)}"
                             f"{did_you_mean(value, [c for c in choices if c])}")
        return value
    return parse


_guard = _one_of(None, "allow", "log", "disallow", "log_explicit", "disallow_explicit")


_PRECISIONS = (None, "default", "high", "highest", "bfloat16", "bfloat16_3x", "tensorfloat32", "float32",
               "fastest", "ANY_F8_ANY_F8_F32", "F16_F16_F16", "F16_F16_F32", "BF16_BF16_BF16",
               "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "BF16_BF16_F32_X9", "TF32_TF32_F32",
               "TF32_TF32_F32_X3", "F32_F32_F32", "F64_F64_F64")

class CompilerEffortLevel(enum.Enum):
    """How much XLA is to do for the speed of a program, or for its memory; the values are XLA's.

    The options `jax_optimization_level` and `jax_memory_fitting_level` take them, or their names.

    >>> jax.CompilerEffortLevel.O2.value
    29
    """
    UNKNOWN = 0
    O0 = 9
    O1 = 19
    O2 = 29
    O3 = 39


def _level(value: Any) -> str:
    """A level of effort or its name, "O0" to "O3" or its number; "UNKNOWN" leaves it to XLA."""
    if isinstance(value, CompilerEffortLevel):
        return value.name
    return _one_of(*CompilerEffortLevel.__members__)(f"O{value}" if value in (0, 1, 2, 3)
                                                     and type(value) is int else value)


def _explicit_x64(value: Any) -> str:
    if value == "allow":
        raise NotImplementedError("arrays have 64 bits where jax_enable_x64 is set; 'warn' and 'error' are "
                                  "known here")
    return _one_of("warn", "error")(value)


def _modes(value: Any) -> str:
    for mode in (_text(value) or "").split(","):
        _one_of("stablehlo", "jaxpr", "eqn_count_pprof")(mode)
    return value


_LOGGING = ("NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


# name -> (default, parser, does it change what is traced, lowered or compiled?)
_OPTIONS: dict[str, tuple[Any, Parser, bool]]
_OPTIONS = {
    "jax_enable_x64": (False, _flag, True),
    "jax_numpy_dtype_promotion": ("standard", _one_of("standard", "strict"), True),
    "jax_numpy_rank_promotion": ("allow", _one_of("allow", "warn", "raise"), True),
    "jax_default_matmul_precision": (None, _one_of(*_PRECISIONS), True),
    "jax_threefry_partitionable": (True, _flag, True),
    "jax_default_prng_impl": ("threefry2x32", _one_of("threefry2x32", "rbg", "unsafe_rbg"), True),
    "jax_enable_custom_prng": (False, _flag, True),
    "jax_debug_key_reuse": (False, _flag, True),      # see transforms/key_reuse.py
    "jax_debug_nans": (False, _flag, True),
    "jax_debug_infs": (False, _flag, True),
    "jax_disable_jit": (False, _flag, True),
    "jax_check_static_indices": (False, _flag, True),   # an int out of bounds is an IndexError
    "hlotrace_check_bounds": (False, _flag, True),     # see check_bounds in lax/indexing.py
    # see api/external/noted_errors.py
    "jax_error_checking_behavior_nan": ("ignore", _one_of("ignore", "raise"), True),
    "jax_error_checking_behavior_divide": ("ignore", _one_of("ignore", "raise"), True),
    "jax_error_checking_behavior_oob": ("ignore", _one_of("ignore", "raise"), True),
    "hlotrace_outline": (True, _flag, True),      # repeated stretches of a program become one function
    "hlotrace_blocks_on_chips": (False, _flag, True),    # see runtime/executables/blocks.py
    "jax_check_tracer_leaks": (False, _flag, True),      # so that what was traced without it is traced again
    "jax_explain_cache_misses": (None, _flag_or_auto, False),     # None: from the third retrace of a function
    # see `surfaced` in runtime/callback_guard.py
    "hlotrace_callback_errors": ("own", _one_of("own", "jax"), False),
    "hlotrace_compile_progress": (True, _flag, False),
    "hlotrace_error_pages": ("", _text, False),     # see errors.page_of
    # see runtime/executables/tiers.py
    "hlotrace_tiered_compile": ("off", _one_of("off", "auto", "on"), False),
    "hlotrace_check_processes": (True, _flag, False),       # see runtime/processes/consistency_checks.py
    "jax_log_compiles": (False, _flag, False),
    "jax_enable_compilation_cache": (True, _flag, False),
    "jax_compilation_cache_dir": (None, _directory, False),      # "": keep none
    "jax_compilation_cache_max_size": (2 << 30, _int, False),   # -1: no limit
    "jax_persistent_cache_min_compile_time_secs": (1.0, _float, False),
    "jax_persistent_cache_min_entry_size_bytes": (0, _int, False),
    "jax_platforms": (None, _text, False),
    "jax_platform_name": ("", str, False),
    "jax_num_cpu_devices": (-1, _device_count, False),      # -1: what XLA_FLAGS says, or one
    "jax_default_device": (None, _device, True),
    # see core/surface/boundary.py; "auto" is "quiet_remove_frames"
    "jax_traceback_filtering": ("auto", _one_of(
        "auto", "off", "tracebackhide", "remove_frames", "quiet_remove_frames"), False),
    "jax_softmax_custom_jvp": (True, _flag, True),
    "jax_legacy_prng_key": ("allow", _one_of("allow", "warn", "error"), False),
    "jax_transfer_guard": (None, _guard, False),        # see runtime/devices/transfer_guards.py
    "jax_transfer_guard_host_to_device": (None, _guard, False),
    "jax_transfer_guard_device_to_device": (None, _guard, False),
    "jax_transfer_guard_device_to_host": (None, _guard, False),
    "jax_allow_f16_reductions": (True, _flag, True),
    # see runtime/devices/transfer_guards.py
    "jax_array_garbage_collection_guard": (None, _one_of(None, "allow", "log", "fatal"), False),
    "jax_auto_pcast": (True, _flag, True),
    "jax_captured_constants_report_frames": (0, _int, False),
    "jax_captured_constants_warn_bytes": (2_000_000_000, _int, False),     # -1: never
    "jax_compilation_cache_include_metadata_in_key": (False, _flag, False),
    # this and the next four: see `_flags` in runtime/executables/compilation.py
    "jax_compiler_enable_remat_pass": (True, _flag, True),
    "jax_disable_most_optimizations": (False, _flag, True),
    "jax_memory_fitting_level": ("O2", _level, True),
    "jax_optimization_level": ("UNKNOWN", _level, True),
    "jax_xla_profile_version": (0, _int, True),
    "jax_cpu_enable_async_dispatch": (True, _flag, False),
    "jax_cpu_get_global_topology_timeout_minutes": (5, _int, False),
    "jax_cpu_get_local_topology_timeout_minutes": (2, _int, False),
    "jax_cuda_visible_devices": ("all", _text, False),
    "jax_pjrt_client_create_options": (None, _text, False),
    "jax_debug_log_modules": ("", _text, False),        # see runtime/executables/progress.py
    "jax_logging_level": ("NOTSET", _one_of(None, *_LOGGING), False),
    "jax_disable_bwd_checks": (False, _flag, True),
    "jax_disallow_mesh_context_manager": (False, _flag, False),
    "jax_dump_ir_to": ("", _text, False),       # see runtime/executables/dumps.py
    "jax_dump_ir_modes": ("stablehlo", _modes, False),
    "jax_include_debug_info_in_dumps": (True, _flag, False),
    "jax_enable_checks": (False, _flag, True),
    "jax_explicit_x64_dtypes": ("warn", _explicit_x64, True),
    "jax_export_calling_convention_version": (10, _int, False),     # see export/exported.py
    "jax_high_dynamic_range_gumbel": (False, _flag, True),
    "jax_hlo_source_file_canonicalization_regex": (None, _text, True),
    "jax_no_execution": (False, _flag, True),
    "jax_no_tracing": (False, _flag, False),
    "jax_raise_persistent_cache_errors": (False, _flag, False),
    "jax_random_seed_offset": (0, _int, True),
    "jax_thread_guard": (False, _flag, False),      # see runtime/devices/transfer_guards.py
}


# options that others have defined: name -> (parser, does it change what is traced?)
defined: dict[str, tuple[Parser, bool]] = {}


# option name -> a function of its new value that may refuse it; upper layers add theirs
checks: dict[str, Callable[[Any], object]] = {}


class TraceKey:
    """What a trace depends on besides its arguments; equal ones are the same object, compared by identity.

    `options` are the values of those that change programs (`TRACING`), `meshes` those entered and the one
    that programs run on, `axes` the named axes.
    """
    __slots__ = ("options", "meshes", "axes", "__weakref__")
    options: tuple[Any, ...]
    meshes: tuple[Any, ...]
    axes: tuple[tuple[Any, Any, str], ...]


_trace_keys: weakref.WeakValueDictionary[tuple, TraceKey] = weakref.WeakValueDictionary()
# a thread -> the namespace of its `state`
_threads: weakref.WeakKeyDictionary[threading.Thread, dict[str, Any]] = weakref.WeakKeyDictionary()


class State(threading.local):
    """What is in force on this thread."""
    trace: Any = None      # set by core.trace: the current trace
    source: Any = None     # provenance to stamp on new equations instead of the caller's line
    name_stack = ""        # "layer0/attention": from named_scope
    # ((name, size, kind), ...) of the enclosing vmaps ("vmap") and shard_maps that have names; kind "manual",
    # or "checked" where avals say over which axes values vary, or a CoreAxis; see `named_axes`
    axis_env: tuple[tuple[Any, Any, Any], ...] = ()
    # entered, the current one last: (mesh, is it in use, or only entered by a bare `with mesh:`?)
    meshes: tuple[tuple[Any, bool], ...] = ()
    mesh_to_run_on: Any = None  # by set_mesh: where jit programs run that nothing else places
    x64 = False
    disable_jit = False
    check_floats = False   # debug_nans or debug_infs
    check_bounds = False
    noting: tuple[str, ...] = ()    # of "nan", "divide", "oob", the errors that numpy's functions note
    no_execution = False
    # (key, value, its own object) of each block that set an option on this thread, in their order
    blocks: tuple[Any, ...] = ()
    overrides: dict[Any, Any] | None = None     # what they set, the last one each
    trace_key: TraceKey    # all of this that a trace depends on
    version: int           # of the options that this is up to date with

    def __init__(self) -> None:
        _threads[threading.current_thread()] = self.__dict__
        self.refresh()

    def refresh(self) -> None:
        """To be called where what `trace_key` says has changed."""
        _refresh(self.__dict__)

    def put(self, **fields: Any) -> None:
        """Set these fields and what follows from them, also where a Ctrl-C comes in between."""
        self.__dict__.update(fields)
        try:
            self.refresh()
        except BaseException:
            self.refresh()
            raise

    def enter(self, **fields: Any) -> None:
        """As `put`, but a Ctrl-C leaves all as it was."""
        saved = {name: getattr(self, name) for name in fields}
        try:
            self.put(**fields)
        except BaseException:
            self.put(**saved)
            raise

    @contextlib.contextmanager
    def changed(self, **fields: Any) -> Iterator[None]:
        """`with state.changed(axis_env=...):` these fields, and what follows from them, until the block ends.

        They come and go in one step each, so that a Ctrl-C leaves all of them or none.
        """
        namespace = self.__dict__
        before, inside = namespace.copy(), {**namespace, **fields}
        _refresh(inside)
        saved = {name: getattr(self, name) for name in (*fields, *_FOLLOWS)}
        try:
            namespace.update({name: inside[name] for name in saved})
            yield
        finally:
            namespace.update(saved)
            if self.version != config._version or any(namespace.get(x) is not before.get(x) for x in _DECIDE):
                self.refresh()      # what was set for good in the block, or after an interrupt an outer block


_DECIDE = "blocks", "meshes", "mesh_to_run_on", "axis_env"
_FOLLOWS = ("overrides", "x64", "disable_jit", "check_floats", "check_bounds", "noting", "no_execution",
            "trace_key", "version")


def _refresh(namespace: dict[str, Any]) -> None:
    """Bring the namespace of a thread's `state` up to date with the options."""
    overrides: Any = {key: value for key, value, _ in namespace.get("blocks", ())} or None
    version = config._version
    values = config._values if overrides is None else {**config._values, **overrides}
    options = [values[name] for name in TRACING]
    options += [values[name] for name, (_, tracing) in defined.items() if tracing]
    if overrides is not None:       # those of `make_user_context` too
        options += [(key, type(value), value) for key, value in overrides.items() if type(key) is not str]
    fields = (tuple(options), (namespace.get("meshes", ()), namespace.get("mesh_to_run_on")),
              namespace.get("axis_env", ()))
    key = _trace_keys.get(fields)
    if key is None:
        made = TraceKey()
        made.options, made.meshes, made.axes = fields
        key = _trace_keys.setdefault(fields, made)
    namespace.update(
        overrides=overrides, x64=values["jax_enable_x64"], disable_jit=values["jax_disable_jit"],
        check_floats=values["jax_debug_nans"] or values["jax_debug_infs"],
        check_bounds=values["hlotrace_check_bounds"],
        noting=tuple([kind for kind, chosen in (("nan", values["jax_error_checking_behavior_nan"]),
                                                ("divide", values["jax_error_checking_behavior_divide"]),
                                                ("oob", values["jax_error_checking_behavior_oob"]))
                      if chosen == "raise"]),
        no_execution=values["jax_no_execution"],
        trace_key=key, version=version)


class CoreAxis:
    """The kind of an axis of the cores of a device, on the core at `index` along it, which may be traced."""

    def __init__(self, index: Any) -> None:
        self.index = index


def named_axes(*axes: tuple[Any, Any, Any]) -> contextlib.AbstractContextManager[None]:
    """`with named_axes((name, size, kind), ...):` these axes are in scope."""
    return state.changed(axis_env=(*state.axis_env, *axes)) if axes else contextlib.nullcontext()


TRACING = tuple(name for name, (_, _, tracing) in _OPTIONS.items() if tracing)


def _unknown(name: str) -> AttributeError:
    from .surface import other_options  # few programs name one of them
    mending = did_you_mean(name, [*_OPTIONS, *other_options.DEFAULTS]) or "; config.values has all there are"
    return AttributeError(f"Unrecognized config option: {name}{mending}")


# core/surface/boundary.py, which reads options, puts its `reraise_for_user` here
leave: Callable[[BaseException], None] = lambda error: None


class Config:
    """`config.update(name, value)`, `config.read(name)`, `config.<name>`; names are JAX's, `jax_...`.

    A value given in the environment as JAX_... (for example JAX_ENABLE_X64=1) is the default.
    """
    _version: int               # how often an option was set
    _values: dict[str, Any]     # process-wide

    def __init__(self) -> None:
        object.__setattr__(self, "_version", 0)
        object.__setattr__(self, "_values", {
            name: self._check(name, os.environ[name.upper()]) if name.upper() in os.environ else default
            for name, (default, _, _) in _OPTIONS.items()})
        for variable, value in os.environ.items():
            if variable.startswith("JAX") and (name := variable.lower()) not in _OPTIONS:
                with contextlib.suppress(AttributeError):       # it is no option
                    self._values[name] = self._check(name, value)

    def define(self, name: str, default: Any, parser: Parser, tracing: bool = False) -> None:
        """Add an option, whose default may come from the environment; `tracing`: it changes programs."""
        if name in self.values:
            raise ValueError(f"Config option {name} already defined")
        self._values[name] = parser(os.environ.get(name.upper(), default))
        defined[name] = parser, tracing
        state.refresh()

    def _check(self, name: str, value: Any) -> Any:
        if name in defined:
            return defined[name][0](value)
        try:
            if name not in _OPTIONS:
                from .surface import other_options
                if name not in other_options.DEFAULTS:
                    raise _unknown(name)
                return other_options.checked(name, value, _flag)
            return _OPTIONS[name][1](value)
        except NotImplementedError as error:
            raise NotImplementedError(f"config option {name}: {error}") from None
        except (TypeError, ValueError) as error:
            raise ValueError(f"config option {name}: {error}") from None

    def update(self, name: str, val: Any) -> None:
        """Set an option for the whole process.

        Raises:
            AttributeError: for an unknown name
            ValueError: for a value that makes no sense
            NotImplementedError: for a value that JAX knows and hlotrace does not do
        """
        val = self._check(name, val)
        if name in checks:
            checks[name](val)
        self._values[name] = val
        object.__setattr__(self, "_version", self._version + 1)
        state.refresh()
        # a thread that traces hears of it when that has ended: see `sync`
        for namespace in list(_threads.values()):
            if namespace.get("trace", State.trace) is State.trace:
                _refresh(namespace)

    def read(self, name: str) -> Any:
        return getattr(self, name)

    _read = read        # which JAXONNXRuntime calls

    def config_with_absl(self) -> None:
        """Let `absl.app.run(main)` read options from the command line, such as `--jax_platforms=cpu`."""
        from .surface import flags  # absl is imported where a program uses it
        flags.define(self)

    def parse_flags_with_absl(self) -> None:
        """Set the options that are on the command line, for programs that do not call `absl.app.run`."""
        from .surface import flags
        flags.parse(self)

    def __getattr__(self, name: str) -> Any:
        if state.overrides is not None and name in state.overrides:
            return state.overrides[name]
        try:
            return self._values[name]
        except KeyError:
            if name.startswith("__"):
                raise AttributeError(name) from None
            from .surface import other_options
            if name in other_options.DEFAULTS:
                return other_options.DEFAULTS[name]
            error = _unknown(name)
        try:
            raise error
        except AttributeError:
            leave(error)
            raise

    def __reduce__(self) -> NoReturn:
        raise TypeError("the options are those of a process, and cannot be pickled or copied: config.values "
                        "is a dictionary of them")

    def __setattr__(self, name: str, value: Any) -> None:
        error = AttributeError(f"options are not set by assignment: config.update({name!r}, {value!r}) sets "
                               "this one" if name in _OPTIONS else str(_unknown(name)))
        try:
            raise error
        except AttributeError:
            leave(error)
            raise

    @property
    def x64_enabled(self) -> bool:
        return state.x64

    @property
    def values(self) -> dict[str, Any]:
        from .surface import other_options
        return {**other_options.DEFAULTS, **self._values, **(state.overrides or {})}


config = Config()
state = State()


@contextlib.contextmanager
def uncollected(stays: bool = False) -> Iterator[None]:
    """`with uncollected():` stops Python's garbage collector, which finds nothing in a growing program.

    If what there is `stays`, the collector takes it for old and does not look through it next.
    """
    was = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        if stays and not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        if was:
            gc.enable()


def sync() -> None:
    """Pick up an option that another thread set process-wide while this one was tracing."""
    if state.version != config._version:
        state.refresh()


@contextlib.contextmanager
def scoped(path: str = "") -> Iterator[None]:
    """Operations are in these named scopes until the block ends; in none by default."""
    saved, state.name_stack = state.name_stack, path
    try:
        yield
    finally:
        state.name_stack = saved


def joined(stack: str, path: str) -> str:
    """The scopes `path` in the scopes `stack`; either may be none."""
    return f"{stack}/{path}" if stack and path else stack or path


def inside(scope: str) -> str:
    """The current scopes and one more.

    A transformation's, "jvp()", goes around the next one that is no transformation: `scope_text` writes
    "jvp()/layer/attention" as "jvp(layer)/attention".
    """
    return joined(state.name_stack, scope)


def within(scope: str) -> contextlib.AbstractContextManager[None]:
    """Operations are in one more scope until the block ends."""
    return scoped(inside(scope))


def override(name: str, value: Any) -> contextlib.AbstractContextManager[None]:
    """Set option `name` to `value` on this thread until the block ends."""
    return overridden(name, config._check(name, value))


@contextlib.contextmanager
def overridden(key: Any, value: Any) -> Iterator[None]:
    """As `override`, of a value that is checked, or of a user's context.

    Blocks in coroutines and generators overlap: where others began in this one and go on, theirs stay.
    """
    blocks = now = *state.blocks, (key, value, object())
    try:
        with state.changed(blocks=blocks):
            try:
                yield
            finally:
                now = state.blocks
    finally:
        if now is not blocks:
            state.put(blocks=tuple([block for block in now if block is not blocks[-1]]))


def keep_overridden(key: Any, value: Any) -> None:
    """As `overridden`, from now on; None ends it."""
    blocks = [block for block in state.blocks if block[0] is not key]
    state.put(blocks=(*blocks, *([] if value is None else [(key, value, object())])))

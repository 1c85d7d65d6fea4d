"""Profiles: what devices and host did while, for xprof (TensorBoard) and Perfetto.

jaxlib's profiler names HLO instructions.  Here each event of one gets the user's line and named scopes,
which the compiled programs of this process tell: in Perfetto's traces as `source` and `op_name` of its
arguments; xprof finds them itself.
"""
import contextlib
import functools
import glob
import gzip
import http.server
import json
import os
import shutil

from ..core.surface.boundary import filtered
from ..runtime import binding
from ..runtime.devices import client, plugins
from ..runtime.executables import compilation
from .hlo_text import instruction_sources

_profiler, _profile_data = binding.profiler()
ProfileData, ProfileEvent = _profile_data.ProfileData, _profile_data.ProfileEvent
ProfileLine, ProfilePlane = _profile_data.ProfileLine, _profile_data.ProfilePlane

__all__ = [
    "ProfileData", "ProfileEvent", "ProfileLine", "ProfileOptions", "ProfilePlane", "ProfileSession",
    "StepTraceAnnotation", "TraceAnnotation", "annotate_function", "device_memory_profile",
    "export_profile_data", "register_subprocess", "save_device_memory_profile", "start_server",
    "start_trace", "stop_server", "stop_trace", "trace",
]

LINK_PORT = 9001
_state = {"session": None, "server": None}
_profiled = set()       # platforms whose plugins take part in profiles


class ProfileOptions(_profiler.ProfileOptions):
    """What to collect: `host_tracer_level` (0 to 3, 2 by default), `python_tracer_level` (1: calls of Python
    functions, 0: none, which costs less), `device_tracer_level`, `duration_ms`, `advanced_configuration` (a
    dict), ..."""


class TraceAnnotation(_profiler.TraceMe):
    """`with TraceAnnotation(name, **details):` the block is an event of the profile, on its thread."""


class StepTraceAnnotation(TraceAnnotation):
    """`with StepTraceAnnotation(name, step_num=i):` the block is one step of training, for which xprof sums
    up times."""

    def __init__(self, name, **kwargs):
        super().__init__(name, _r=1, **kwargs)


def annotate_function(func, name=None, **decorator_kwargs):
    """`func` as an event of the profile, named as it is or `name`; other keywords are details of the event.

    >>> @jax.profiler.annotate_function
    ... def load(n):
    ...     return np.ones(n)
    >>> load(2)
    array([1., 1.])
    """
    named = name or getattr(func, "__qualname__", None) or repr(func)

    @filtered
    @functools.wraps(func)
    def annotated(*args, **kwargs):
        with TraceAnnotation(named, **decorator_kwargs):
            return func(*args, **kwargs)
    return annotated


def _make_seen():
    """Make the default devices, which a profile that began before would not have; plugins profile theirs."""
    client.client()
    for platform in plugins.loaded.keys() - _profiled:
        _profiler.register_plugin_profiler(plugins.loaded[platform])
        _profiled.add(platform)


class ProfileSession:
    """A profile that is being taken, from `start` to `stop`, which writes it below `log_dir` unless None.

    `profile_data` is what was found, a ProfileData; None while `is_running`.
    """

    def __init__(self, log_dir=None, create_perfetto_link=False, create_perfetto_trace=False,
                 profiler_options=None):
        if not isinstance(log_dir, (str, os.PathLike, type(None))):
            raise TypeError("profiler: log_dir is the path of a directory, or None to write nothing, got "
                            f"{log_dir!r:.60}")
        self.log_dir = log_dir
        self.create_perfetto_link, self.create_perfetto_trace = create_perfetto_link, create_perfetto_trace
        self.profiler_options = profiler_options
        self.profile_data = self._raw = self._session = None

    is_running = property(lambda self: self._session is not None and self._raw is None)

    def start(self):
        """Begin.  RuntimeError where another profile is being taken in this process."""
        if _state["session"] is not None:
            raise RuntimeError("Profile has already been started. Only one profile may be run at a time: "
                               "stop_trace() ends the first")
        _make_seen()
        self._session = _profiler.ProfilerSession(self.profiler_options or ProfileOptions())
        _state["session"] = self

    def stop(self):
        """End, write what there is to write, and return the ProfileData."""
        if not self.is_running:
            raise RuntimeError("No profile started: this session is not running")
        self._raw = self._session.stop()
        _state["session"] = None
        self.profile_data = ProfileData.from_serialized_xspace(self._raw)
        if self.log_dir is not None:
            self.export_profile_data(self.log_dir, self.create_perfetto_link, self.create_perfetto_trace)
        return self.profile_data

    def export_profile_data(self, log_dir, create_perfetto_link=False, create_perfetto_trace=False,
                            session_id=None):
        """See `export_profile_data`."""
        if self._raw is None:
            raise RuntimeError("the profile is still being taken: call stop() first")
        _finish(lambda where: self._session.export(self._raw, where), os.fspath(log_dir),
                create_perfetto_link, create_perfetto_trace, session_id)


def export_profile_data(profile_data, log_dir, create_perfetto_link=False, create_perfetto_trace=False,
                        session_id=None):
    """Write a profile in xprof's form below `log_dir`, in plugins/profile/<session_id, else the time>.

    Args:
        profile_data: a ProfileSession that has stopped, or a ProfileData (of jaxlib 0.11 and later); for the
            other arguments see `trace`.

    >>> import pathlib, tempfile
    >>> with jax.profiler.trace() as session:
    ...     y = jnp.ones(3) + 1
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     jax.profiler.export_profile_data(session, folder, session_id="first")
    ...     [path.name for path in pathlib.Path(folder).glob("plugins/profile/*")]
    ['first']
    """
    if isinstance(profile_data, ProfileSession):
        profile_data.export_profile_data(log_dir, create_perfetto_link, create_perfetto_trace, session_id)
    elif hasattr(_profiler, "export_to_xprof"):
        _finish(lambda where: _profiler.export_to_xprof(profile_data, where), os.fspath(log_dir),
                create_perfetto_link, create_perfetto_trace, session_id)
    else:
        raise NotImplementedError(f"export_profile_data: jaxlib {binding.jaxlib_version} cannot write a "
                                  "ProfileData: give the ProfileSession that it is of")


def start_trace(log_dir, create_perfetto_link=False, create_perfetto_trace=False, profiler_options=None):
    """Begin a profile, which `stop_trace` writes below `log_dir`.  Returns the ProfileSession; see `trace`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     session = jax.profiler.start_trace(folder)
    ...     y = (jnp.ones(3) + 1).block_until_ready()
    ...     data = jax.profiler.stop_trace()
    >>> "/host:CPU" in [plane.name for plane in data.planes]
    True
    """
    session = ProfileSession(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    session.start()
    return session


def stop_trace():
    """End and write the profile that `start_trace` began: its ProfileData.  RuntimeError if none began.

    >>> session = jax.profiler.start_trace(None)
    >>> data = jax.profiler.stop_trace()
    >>> session.is_running
    False
    """
    if _state["session"] is None:
        raise RuntimeError("No profile started: call start_trace(log_dir) first")
    return _state["session"].stop()


@contextlib.contextmanager
def trace(log_dir=None, create_perfetto_link=False, create_perfetto_trace=False, profiler_options=None):
    """Context manager: takes a profile of what devices and Python do in the block, gives its ProfileSession.

    Programs run on: wait for their results (block_until_ready) inside of the block.  Events of operations
    carry the user's line as `source` and the path of named scopes as `op_name`, in Perfetto's files; JAX's
    carry the HLO instruction alone.

    Args:
        log_dir: a directory to write it to, as `xplane.pb` for xprof and `trace.json.gz` for Perfetto
            (https://ui.perfetto.dev) and chrome://tracing, in plugins/profile/<time>; None writes nothing.
        create_perfetto_link: print a link that opens it in Perfetto, and wait until that has been followed.
        create_perfetto_trace: write `perfetto_trace.json.gz` too.

    >>> f = jax.jit(lambda x: jnp.tanh(x @ x))
    >>> with jax.profiler.trace() as session:
    ...     with jax.profiler.StepTraceAnnotation("train", step_num=1):
    ...         y = f(jnp.ones((8, 8))).block_until_ready()
    >>> "train" in [e.name for p in session.profile_data.planes for line in p.lines for e in line.events]
    True
    """
    session = start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield session
    finally:
        if session.is_running:
            session.stop()


# --- files ----------------------------------------------------------------------------------------

def _finish(export, log_dir, link, perfetto, session_id):
    """Let jaxlib write its files into a folder of their own below `log_dir`, and add to them."""
    root = os.path.join(log_dir, "plugins", "profile")
    before = set(glob.glob(os.path.join(root, "*")))
    export(log_dir)
    made = set(glob.glob(os.path.join(root, "*")))
    folder = max(made - before or made)
    if session_id is not None:
        shutil.move(folder, os.path.join(root, session_id))
        folder = os.path.join(root, session_id)
    traces = sorted(glob.glob(os.path.join(folder, "*.trace.json.gz")))
    for path in traces:
        _name_lines(path)
    if traces and (link or perfetto):
        path = os.path.join(folder, "perfetto_trace.json.gz")
        shutil.copyfile(traces[0], path)
        if link:
            _serve(path)


def _name_lines(path):
    """Add `source` and `op_name` to the events of HLO instructions in a trace for Perfetto.

    Events know the name of their module alone: where programs of one name disagree, nothing is said; nor of
    one from disk that was compiled when its lines were elsewhere.
    """
    with gzip.open(path) as file:
        found = json.load(file)
    events = [e for e in found["traceEvents"] if "hlo_op" in e.get("args", ())]
    sources = {}
    modules = {e["args"].get("hlo_module") for e in events}
    elsewhere = compilation.read_at_other_lines() if modules else []
    for device in {d.client: d for d in client.devices()}.values() if modules else ():
        for executable in device.client.live_executables():
            if executable in elsewhere:
                continue
            for module in executable.hlo_modules():
                if module.name in modules:
                    known = sources.setdefault(module.name, {})
                    for op, source in instruction_sources(module.to_string()).items():
                        known[op] = source if known.get(op, source) == source else (None, None)
    for event in events:
        of_module = sources.get(event["args"].get("hlo_module"), {})
        where, op = of_module.get(event["args"]["hlo_op"], (None, None))
        event["args"].update({k: v for k, v in (("source", where), ("op_name", op)) if v})
    with gzip.open(path, "wt") as file:
        json.dump(found, file)


def _serve(path):
    """Print a link to Perfetto that asks this process for the file, and wait until it has been asked."""
    requested = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=os.path.dirname(path))

        def end_headers(self):
            self.send_header("Access-Control-Allow-Origin", "https://ui.perfetto.dev")
            super().end_headers()

        def do_GET(self):
            requested.append(self.path)
            super().do_GET()

        def log_message(self, *_):
            pass
    name = os.path.basename(path)
    with http.server.HTTPServer(("127.0.0.1", LINK_PORT), Handler) as server:
        address = f"http://127.0.0.1:{server.server_port}/{name}"
        print(f"Open URL in browser: https://ui.perfetto.dev/#!/?url={address}", flush=True)
        while f"/{name}" not in requested:
            server.handle_request()


# --- memory, servers ------------------------------------------------------------------------------

_GZIP = b"\x1f\x8b"        # how such files begin


def device_memory_profile(backend=None):
    """What holds the memory of a platform's devices, as bytes of a profile for pprof, gzipped.

    Each array's bytes are under the lines that made it.

    Raises:
        JaxRuntimeError: while there are arrays of texts, whose memory XLA does not describe.

    >>> import gzip
    >>> len(gzip.decompress(jax.profiler.device_memory_profile())) > 0
    True
    """
    try:
        found = client.client(backend).heap_profile()
    except binding.JaxRuntimeError as error:
        if "PrimitiveType" not in str(error):
            raise
        raise binding.JaxRuntimeError("device_memory_profile: XLA does not describe the memory of arrays of "
                                      f"texts: delete them first ({error})") from None
    return found if found.startswith(_GZIP) else gzip.compress(found)


def save_device_memory_profile(filename, backend=None):
    """Write `device_memory_profile` to a file: `pprof --web file` shows it.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     jax.profiler.save_device_memory_profile(folder + "/memory.prof")
    ...     os.listdir(folder)
    ['memory.prof']
    """
    with open(filename, "wb") as file:
        file.write(device_memory_profile(backend))


def start_server(port, requires_backend=True):
    """Let xprof (TensorBoard's "capture profile") take profiles of this process, at this port.

    Args:
        requires_backend: make the devices' clients first, without which they are not seen.
    Returns:
        The server, which `stop_server` ends.
    Raises:
        ValueError: where one is running.

    >>> import socket
    >>> with socket.socket() as free:
    ...     free.bind(("127.0.0.1", 0))
    ...     port = free.getsockname()[1]
    >>> server = jax.profiler.start_server(port)
    >>> jax.profiler.stop_server()
    """
    if _state["server"] is not None:
        raise ValueError("Only one profiler server can be active at a time: stop_server() ends the first")
    if requires_backend:
        _make_seen()
    _state["server"] = _profiler.start_server(port)
    return _state["server"]


def stop_server():
    """End what `start_server` began.  ValueError where there is none.

    >>> try:
    ...     jax.profiler.stop_server()
    ... except ValueError:
    ...     print("none")
    none
    """
    if _state["server"] is None:
        raise ValueError("No active profiler server: start_server(port) makes one")
    _state["server"] = None


def register_subprocess(pid, port):
    """Let profiles of this process hold those of a subprocess that has `start_server` at `port`.

    Returns:
        A function that ends this.
    Raises:
        JaxRuntimeError: after half a minute, where nothing listens.

    >>> def watch(child, port):         # child: a subprocess.Popen
    ...     return jax.profiler.register_subprocess(child.pid, port)
    """
    return _profiler.register_subprocess(pid, port)

"""Programs in processes of their own, forked from one that has imported the library: importing it takes half a second.

    done = forked.run("import hlotrace; print(hlotrace.devices())", XLA_FLAGS="")
    process = forked.Process(program, "argument")

They begin as those of `python -c` do.  Whoever asks of imports, hash seeds or warnings starts another with `subprocess`.
"""
import array
import atexit
import os
import pickle
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OPTIONS = "JAX_", "HLOTRACE_"       # read when the library is imported
# Where the tests keep what they compile.
COMPILED = {name: value for name, value in os.environ.items() if name.startswith("JAX_") and "_CACHE" in name}
NUMBER = struct.Struct("i")
_servers = {}       # options -> the socket of a process that was started with them


class Process:
    """A program that runs, as a subprocess.Popen: `stdout` is a pipe or goes to a file, and `stderr` is a pipe or joins it."""

    def __init__(self, program, *arguments, env=None, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE):
        env, self.returncode, theirs = dict(os.environ if env is None else env), None, []

        def pipe():
            reading, writing = os.pipe()
            theirs.append(writing)
            return reading
        self._status = pipe()
        if stdout == subprocess.PIPE:
            self.stdout = open(pipe(), encoding="utf-8")
        else:
            self.stdout, _ = None, theirs.append(os.dup(stdout.fileno()))
        if stderr == subprocess.PIPE:
            self.stderr = open(pipe(), encoding="utf-8")
        else:
            self.stderr, _ = None, theirs.append(os.dup(theirs[-1]))
        request = pickle.dumps((program, ["-c", *map(str, arguments)], env, str(cwd)))
        server = _server(env)
        server.sendmsg([NUMBER.pack(len(request))], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", theirs))])
        server.sendall(request)
        for fd in theirs:
            os.close(fd)
        self.pid, = NUMBER.unpack(os.read(self._status, NUMBER.size))

    def poll(self, seconds=0.0):
        if self.returncode is None and select.select([self._status], [], [], seconds)[0]:
            self.returncode, = NUMBER.unpack(os.read(self._status, NUMBER.size))
            os.close(self._status)
        return self.returncode

    def wait(self, timeout=None):
        if self.poll(timeout) is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
        return self.returncode

    def communicate(self, timeout=None):
        """What it prints and writes to stderr until it ends."""
        said, files = {}, [file for file in (self.stdout, self.stderr) if file]
        readers = [threading.Thread(target=lambda file=file: said.update({file: file.read()}), daemon=True) for file in files]
        for reader in readers:
            reader.start()
        self.wait(timeout)
        for reader in readers:
            reader.join()
        return said.get(self.stdout), said.get(self.stderr)

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.wait()
        for file in (self.stdout, self.stderr):
            if file:
                file.close()


def file(path):
    """The program that is in a file, as Python runs it from the folder in which it is."""
    return f"""import os, sys
__file__ = sys.argv[0] = {str(path)!r}
sys.path[0] = os.path.dirname(os.path.abspath(__file__))
exec(compile(open(__file__).read(), __file__, 'exec'))"""


def run(program, *arguments, timeout=120, check=False, cwd=ROOT, **environment):
    """The subprocess.CompletedProcess of a program, with what it prints as text."""
    with Process(program, *arguments, env={**os.environ, **environment}, cwd=cwd) as process:
        try:
            said = process.communicate(timeout)
        finally:
            process.kill()
    assert not check or process.returncode == 0, said
    return subprocess.CompletedProcess(program, process.returncode, *said)


def of_one_job():
    """The environment of a process among several: it has no options but where compiled programs are."""
    flags = [flag for flag in os.environ.get("XLA_FLAGS", "").split() if "device_count" not in flag]
    rest = {name: value for name, value in os.environ.items() if not name.startswith(OPTIONS)}
    return rest | COMPILED | {"XLA_FLAGS": " ".join(flags)}


def _server(env):
    options = {name: value for name, value in env.items()
               if name.startswith(OPTIONS) and not name.startswith("HLOTRACE_TEST_")}
    key = frozenset(options.items())
    if key not in _servers:
        ours, theirs = socket.socketpair()
        usual = {name: value for name, value in os.environ.items() if not name.startswith(OPTIONS)}
        paths = os.pathsep.join([str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
        process = subprocess.Popen([sys.executable, __file__, str(theirs.fileno())], stdin=subprocess.DEVNULL,
                                   pass_fds=[theirs.fileno()], env={**usual, **options, "PYTHONPATH": paths})
        theirs.close()
        atexit.register(lambda: (ours.close(), process.wait()))
        _servers[key] = ours
    return _servers[key]


def _serve(connection):
    """Fork for each request, and return in the child: (program, arguments).  It ends when nobody asks any more."""
    waking, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running = {}        # process -> where its status is awaited
    while True:
        ready, _, _ = select.select([connection, waking], [], [])
        if waking in ready:
            os.read(waking, 1 << 10)
            while running and (ended := os.waitpid(-1, os.WNOHANG))[0]:
                os.write(status := running.pop(ended[0]), NUMBER.pack(os.waitstatus_to_exitcode(ended[1])))
                os.close(status)
        if connection in ready:
            head, files, _, _ = socket.recv_fds(connection, NUMBER.size, 3)
            if not head:
                for pid in running:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                sys.exit()
            request = connection.recv(*NUMBER.unpack(head), socket.MSG_WAITALL)
            pid = os.fork()
            if not pid:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                program, arguments, env, folder = pickle.loads(request)
                for fd, usual in zip(files[1:], (1, 2), strict=True):
                    os.dup2(fd, usual)
                for fd in (*running.values(), *files, waking, woken, connection.detach()):
                    os.close(fd)
                os.environ.clear()
                os.environ.update(env)
                os.chdir(folder)
                return program, arguments
            os.write(files[0], NUMBER.pack(pid))
            running[pid] = files[0]
            for fd in files[1:]:
                os.close(fd)


if __name__ == "__main__":
    import gc

    exec((ROOT / "hlotrace" / "as_jax" / "hlotrace_as_jax.pth").read_text("utf-8"))      # HLOTRACE_AS_JAX=1
    import hlotrace.numpy  # noqa: F401 - what this process is for

    gc.freeze()
    sys.path[0] = ""        # the folder of the program, not of this file
    PROGRAM, sys.argv = _serve(socket.socket(fileno=int(sys.argv[1])))
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    exec(compile(PROGRAM, "<string>", "exec"), main.__dict__)

"""Values on the devices of a platform: `make gpu-run` runs these on a machine that has a GPU.

HLOTRACE_TEST_PLATFORM says which platform; "cpu" will do too, and they must pass there.  Without it they are not run.
"""
import functools
import importlib.util
import os
import re
import subprocess
import sys

import numpy as np
import piece_programs
import pytest
import triton_kernels
from op_table import ROWS, linear_algebra, sharding
from places import ROOT

import hlotrace
import hlotrace.numpy as jnp
from hlotrace import topologies
from hlotrace.core.config import override
from hlotrace.experimental import io_callback, pallas, serialize_executable
from hlotrace.experimental.buffer_callback import buffer_callback
from hlotrace.runtime.devices import chips
from hlotrace.runtime.executables import blocks
from hlotrace.sharding import Mesh, SingleDeviceSharding

PLATFORM = os.environ.get("HLOTRACE_TEST_PLATFORM")
if not PLATFORM:
    pytest.skip("`make gpu-run` runs these", allow_module_level=True)


@functools.cache
def here():
    return hlotrace.devices(PLATFORM)[0]


@pytest.fixture(autouse=True)
def on_the_platform():
    """With full precision: matrix units of GPUs round float32 to 10 bits where they may."""
    with hlotrace.default_device(here()), hlotrace.default_matmul_precision("highest"):
        yield


def test_the_devices_are_those_of_the_platform():
    assert (jnp.ones(3) + 1).device == here()
    assert PLATFORM == "cpu" or chips.of_device(here()), f"add {here().device_kind!r} to the table of chips"


# --- values -------------------------------------------------------------------------------------------------

ON_THE_CPU_ALONE = {"ffi_call", "call_exported", "buffer_callback"}    # of LAPACK, and in NumPy
# What StableHLO leaves open, and the CPU does in order: the last of several updates, a start that is no identity.
IN_ORDER = {"scatter-twice in one place", "reduce"}


def plain(x):
    """As NumPy has it; the words of a key."""
    return np.asarray(hlotrace.random.key_data(x)
                      if hlotrace.dtypes.issubdtype(x.dtype, hlotrace.dtypes.prng_key) else x)


@pytest.mark.parametrize("row", [row for row in ROWS if row not in linear_algebra.ROWS],
                         ids=lambda row: row.name)
def test_a_row_of_the_op_table_has_the_values_of_its_reference(row, monkeypatch):
    if (row.primitive in ON_THE_CPU_ALONE or row.name in IN_ORDER) and PLATFORM != "cpu":
        pytest.skip("of the CPU alone")
    devices = hlotrace.devices(PLATFORM)
    if row in sharding.ROWS:
        if len(devices) < 2:
            pytest.skip("over two devices")
        monkeypatch.setattr(sharding, "mesh", lambda: Mesh(devices[:2], "x"))
    args = row.sample(row.base)
    found = hlotrace.jit(lambda *args: row.fun(*args))(*args)
    for result, expected in zip(found if isinstance(found, (list, tuple)) else [found], row.expect(args),
                                strict=True):
        expected = np.asarray(expected)
        np.testing.assert_allclose(plain(result).astype(expected.dtype), expected, rtol=1e-3, atol=1e-4)


# --- linear algebra: what holds of any library's results ----------------------------------------------------

def samples(dtype, *shape):
    x = np.random.default_rng(0).normal(size=(2, *shape))
    return (x[0] + 1j * x[1] if np.dtype(dtype).kind == "c" else x[0]).astype(dtype)


def adjoint(x):
    return jnp.swapaxes(x, -1, -2).conj()


def of_cholesky(a):
    a = a @ adjoint(a) + 10 * jnp.eye(a.shape[-1])
    low = jnp.linalg.cholesky(a)
    return [(low @ adjoint(low), a)]


def of_qr(a):
    q, r = jnp.linalg.qr(a[..., :5])
    return [(q @ r, a[..., :5]), (adjoint(q) @ q, jnp.eye(5) + jnp.zeros((*a.shape[:-2], 1, 1))),
            (r, jnp.triu(r))]


def of_svd(a):
    u, s, v = jnp.linalg.svd(a[..., :5], full_matrices=False)
    return [((u * s[..., None, :]) @ v, a[..., :5]), (s, -jnp.sort(-s))]


def of_eigh(a):
    a = a + adjoint(a)
    values, vectors = jnp.linalg.eigh(a)
    return [(a @ vectors, vectors * values[..., None, :]), (values, jnp.sort(values))]


def of_eig(a):
    values, vectors = jnp.linalg.eig(a)
    return [(a @ vectors, vectors * values[..., None, :])]


def of_eig_by_cusolver(a):
    if PLATFORM not in ("gpu", "cuda"):
        pytest.skip("of NVIDIA GPUs alone")
    values, vectors = hlotrace.lax.linalg.eig(
        a, compute_left_eigenvectors=False, implementation=hlotrace.lax.linalg.EigImplementation.CUSOLVER)
    return [(a @ vectors, vectors * values[..., None, :]), (abs(vectors ** 2).sum(-2), jnp.ones((3, 8)))]


def of_lu(a):
    p, low, up = hlotrace.scipy.linalg.lu(a)
    return [(p @ low @ up, a)]


def of_solve(a):
    a = a + 8 * jnp.eye(a.shape[-1])
    x = jnp.linalg.solve(a, a[..., :2])
    triangle = hlotrace.scipy.linalg.solve_triangular(jnp.tril(a[0]), a[0], lower=True)
    return [(a @ x, a[..., :2]), (jnp.tril(a[0]) @ triangle, a[0])]


def of_fft(a):
    return [(jnp.fft.ifft2(jnp.fft.fft2(a)), a.astype(jnp.fft.fft2(a).dtype))]


@pytest.mark.parametrize("dtype", ["float32", "complex64", "float64"])
@pytest.mark.parametrize("facts", [of_cholesky, of_qr, of_svd, of_eigh, of_eig,
                                   of_eig_by_cusolver, of_lu, of_solve, of_fft],
                         ids=lambda facts: facts.__name__)
def test_factorizations_are_what_they_say(facts, dtype):
    with hlotrace.enable_x64():
        for left, right in hlotrace.jit(facts)(samples(dtype, 3, 8, 8)):
            tolerance = 1e-10 if dtype == "float64" else 2e-4
            np.testing.assert_allclose(left, right, rtol=tolerance, atol=10 * tolerance)


# --- Python inside of programs ------------------------------------------------------------------------------

def test_programs_call_back():
    seen = []

    @hlotrace.jit
    def program(x):
        hlotrace.debug.callback(lambda x: seen.append(("debug", float(x))), x)
        y = hlotrace.pure_callback(lambda x: np.sin(x), hlotrace.ShapeDtypeStruct((), "float32"), x)
        for i in range(3):
            io_callback(lambda y, i=i: seen.append((i, float(y))), None, y, ordered=True)
        return y
    assert program(2.0) == pytest.approx(np.sin(2), rel=1e-6)
    hlotrace.effects_barrier()
    assert ("debug", 2.0) in seen and [i for i, _ in seen if i != "debug"] == [0, 1, 2]


def test_what_a_callback_raises_is_raised():
    def fails(x):
        raise ZeroDivisionError("of the host")
    with pytest.raises(Exception, match="of the host"):
        hlotrace.jit(lambda x: hlotrace.pure_callback(fails, x, x))(jnp.ones(2)).block_until_ready()


# --- what GPUs have of their own ------------------------------------------------------------------------------

of_gpus = pytest.mark.skipif(PLATFORM not in ("gpu", "cuda"), reason="of NVIDIA GPUs alone")


@of_gpus
@pytest.mark.parametrize("options",
                         [{},
                          {"is_causal": True},
                          {"is_causal": True, "local_window_size": (16, 0)},
                          {"bias": (1, 4)},
                          {"mask": (2, 1)},
                          {"lengths": True}], ids=str)
def test_attention_by_cudnn_is_that_by_operations(options):
    rng = np.random.default_rng(0)
    q, k, v = (jnp.asarray(rng.normal(size=(2, 128, 4, 64)), "bfloat16") for _ in range(3))
    options = dict(options)
    if "bias" in options:
        options["bias"] = jnp.asarray(rng.normal(size=(*options["bias"], 128, 128)), "bfloat16")
    if "mask" in options:
        options["mask"] = jnp.asarray(rng.random((*options["mask"], 128, 128)) < .7)
    if options.pop("lengths", False):
        options |= {
            name: jnp.array([64, 100], "int32") for name in ("query_seq_lengths", "key_value_seq_lengths")
        }

    def loss(implementation, *xs):
        out = hlotrace.nn.dot_product_attention(*xs, **options, implementation=implementation)
        return jnp.sum(jnp.sin(out.astype("float32"))), out
    ours, plain = (hlotrace.jit(hlotrace.value_and_grad(functools.partial(loss, name), (0, 1, 2),
                                                        has_aux=True))(q, k, v) for name in ("cudnn", "xla"))
    for a, b, size in zip((ours[0][1], *ours[1]), (plain[0][1], *plain[1]), (.02, .05, .05, .05)):
        np.testing.assert_allclose(a.astype("float32"), b.astype("float32"), rtol=size, atol=size)


@of_gpus
def test_memory_of_pytorch_is_shared():
    torch = pytest.importorskip("torch")
    given = torch.arange(12, dtype=torch.float32, device="cuda").reshape(3, 4)
    for make in (jnp.from_dlpack, jnp.asarray):
        assert make(given).unsafe_buffer_pointer() == given.data_ptr()
    assert jnp.array(given).unsafe_buffer_pointer() != given.data_ptr()
    assert jnp.from_dlpack(given.T).tolist() == given.T.tolist()
    assert jnp.from_dlpack(torch.ones(3, dtype=torch.int64, device="cuda")).dtype == "int32"
    x = jnp.arange(6.0)
    assert torch.from_dlpack(x).data_ptr() == x.unsafe_buffer_pointer()
    for _ in range(20):         # it is computed when it is read
        product = torch.randn(3000, 3000, device="cuda") @ torch.randn(3000, 3000, device="cuda")
        np.testing.assert_allclose(jnp.from_dlpack(product)[-1], product[-1].cpu(), rtol=1e-6)


@pytest.mark.parametrize("name", triton_kernels.CASES)
def test_a_compiled_kernel_does_what_its_loop_does(name):
    if PLATFORM == "cpu":
        pytest.skip("kernels are compiled for GPUs")
    kernel, out, args, options = triton_kernels.CASES[name]
    with hlotrace.default_device(hlotrace.devices("cpu")[0]):
        expected = hlotrace.tree.leaves(triton_kernels.interpreted(
            kernel, out, [np.asarray(x) for x in args], options))
    call = pallas.pallas_call(kernel, out, **options)
    args = [hlotrace.device_put(np.asarray(x), here()) for x in args]
    many = hlotrace.vmap(call, in_axes=(0, *[None] * (len(args) - 1)))(jnp.stack([args[0]] * 2), *args[1:])
    for found in (call(*args), hlotrace.jit(call)(*args), hlotrace.tree.map(lambda x: x[1], many)):
        for result, value in zip(hlotrace.tree.leaves(found), expected, strict=True):
            value = np.asarray(value)
            rough = value.dtype.itemsize == 2
            np.testing.assert_allclose(np.asarray(result).astype("float64"), value.astype("float64"),
                                       rtol=2e-2 if rough else 1e-4, atol=2e-2 if rough else 1e-5)


@of_gpus
@pytest.mark.parametrize("recorded", [False, True])
def test_a_callback_writes_into_memory_of_the_gpu(recorded):
    torch = pytest.importorskip("torch")

    def scale(context, out, x):
        with torch.cuda.stream(torch.cuda.ExternalStream(context.stream)):
            torch.mul(torch.from_dlpack(x), 3, out=torch.from_dlpack(out))

    def twice(x):
        return buffer_callback(scale, x, command_buffer_compatible=recorded)(x * 2) + 1
    program = hlotrace.jit(twice)
    for i in range(3):
        x = jnp.arange(6.0).reshape(2, 3) + i
        np.testing.assert_array_equal(program(x), 6 * np.asarray(x) + 1)
    nothing = buffer_callback(lambda context, out, x: None, x, input_output_aliases={0: 0})
    np.testing.assert_array_equal(hlotrace.jit(nothing)(x), x)
    np.testing.assert_array_equal(buffer_callback(lambda context, out: None, x)(), np.zeros((2, 3)))
    with pytest.raises(Exception, match="of the host"):
        def fails(context, out, x):
            raise ZeroDivisionError("of the host")
        hlotrace.block_until_ready(buffer_callback(fails, x)(x))


@of_gpus
def test_a_profile_has_the_gpu():
    x = jnp.ones((512, 512))
    with hlotrace.profiler.trace() as session:
        (x @ x).block_until_ready()
    assert any("GPU" in plane.name for plane in session.profile_data.planes)


# --- training -----------------------------------------------------------------------------------------------

def test_digits_are_learned(tmp_path):
    platforms = PLATFORM if PLATFORM == "cpu" else f"{PLATFORM},cpu"
    done = subprocess.run([sys.executable, ROOT / "examples" / "digits.py"], cwd=tmp_path,
                          capture_output=True, text=True,
                          env=os.environ | {"JAX_PLATFORMS": platforms, "PYTHONPATH": str(ROOT)}, timeout=600)
    assert done.returncode == 0, done.stderr
    assert float(re.search(r"s; test accuracy (\S+)", done.stdout)[1]) > .95


def losses(source):
    """Of five steps of a small GPT, the example's source being given."""
    example = {"__name__": "example"}
    exec(compile(source, "gpt.py", "exec"), example)
    rng = np.random.default_rng(0)
    params, _, _, tokens = example["types"]("tiny")
    params = {name: np.float32(rng.normal(size=x.shape) / np.sqrt(x.shape[-1] if "norm" not in name else 1e9)
                               + ("norm" in name)) for name, x in params.items()}
    state = [params, *({name: np.zeros_like(x) for name, x in params.items()} for _ in range(2))]
    tokens, found = rng.integers(512, size=tokens.shape, dtype=np.int32), []
    for _ in range(5):
        *state, value = example["step"](*state, tokens)
        found.append(float(value))
    return found


def test_a_gpt_learns_and_does_as_jax_does():
    source = (ROOT / "examples" / "gpt.py").read_text("utf-8")
    found = losses(source)
    assert found[0] == pytest.approx(np.log(512), rel=.5) and found[-1] < found[0]
    if importlib.util.find_spec("jax"):     # the `bench` extra
        for ours, theirs in (("hlotrace.sharding import P", "jax.sharding import PartitionSpec as P"),
                             ("import hlotrace as jax", "import jax"), ("hlotrace", "jax")):
            source = source.replace(ours, theirs)
        np.testing.assert_allclose(found, losses(source), rtol=1e-2)


# --- programs compiled before -------------------------------------------------------------------------------

def test_what_was_compiled_for_a_topology_runs_here():
    """On the CPU, which has no topologies, what was compiled for the device."""
    device = here() if PLATFORM == "cpu" else topologies.get_topology_desc(
        chips.of_device(here()).name).devices[0]
    x = hlotrace.ShapeDtypeStruct((64, 64), "float32", sharding=SingleDeviceSharding(device))
    parts = serialize_executable.serialize(hlotrace.jit(lambda x: jnp.tanh(x @ x)).lower(x).compile())
    loaded = serialize_executable.deserialize_and_load(*parts, execution_devices=[here()])
    sample = np.float32(samples("float32", 64, 64) / 64)
    np.testing.assert_allclose(loaded(hlotrace.device_put(sample, here())), np.tanh(sample @ sample),
                               rtol=1e-4, atol=1e-6)


def test_a_training_step_in_blocks_runs_as_the_whole(monkeypatch):
    monkeypatch.setattr(blocks, "LIGHTEST_ON_CHIP", 1)
    params, x = hlotrace.device_put((piece_programs.PARAMS, piece_programs.X), here())
    whole = hlotrace.jit(piece_programs.step)(params, x)
    with override("hlotrace_blocks_on_chips", True):
        compiled = hlotrace.jit(piece_programs.step, donate_argnums=0).lower(params, x).compile()
    assert len(compiled.runtime_executable()) > 1
    hlotrace.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-3, atol=1e-5), compiled(params, x), whole)
    assert all(leaf.is_deleted() for leaf in hlotrace.tree.leaves(params)) and not x.is_deleted()

"""Rotations against SciPy's."""
import itertools

import numpy as np
import pytest
from derivatives import check_derivatives
from reference import run
from scipy.spatial import transform

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.scipy.spatial.transform import Rotation, Slerp

RNG = np.random.default_rng(0)
QUATS = RNG.normal(size=(7, 4))
QUATS[4:] = [[0, 0, 0, -1], [1, 0, 0, 0], [0, 2, 0, 1e-9]]
THEIRS = transform.Rotation.from_quat(QUATS)
VECTORS = RNG.normal(size=(7, 3))
SEQUENCES = ["".join(s) for letters in ("xyz", "XYZ") for s in itertools.product(letters, repeat=3) if s[0] != s[1] != s[2]]


def test_conversions():
    calls = {"as_quat": [{}, dict(canonical=True), dict(scalar_first=True)]}
    calls |= {name: [{}] for name in ("as_matrix", "as_rotvec", "as_mrp", "magnitude")}
    with jax.enable_x64():
        def ours(quats, angles):
            r = Rotation.from_quat(quats)
            return ([[getattr(r, name)(**call) for call in options] for name, options in calls.items()],
                    [Rotation.from_euler(seq[:n], angles[:, :n], True).as_matrix()
                     for seq in ("zxy", "ZXY") for n in (1, 2)],
                    [Rotation.from_matrix(r.as_matrix()).as_matrix(), Rotation.from_rotvec(angles).as_matrix(),
                     Rotation.from_rotvec(angles, True).as_matrix(), Rotation.from_mrp(angles).as_matrix()],
                    [r.apply(angles), r.apply(angles, inverse=True), r[0].apply(angles), r.apply(angles[0])],
                    [x.as_matrix() for x in (r * r[::-1], r[0] * r, r.inv(), r.mean(), r.mean(abs(angles[:, 0])),
                                             Rotation.concatenate([r, r[0]]))])
        def of_sequences(quats, angles):
            r = Rotation.from_quat(quats)
            return [r[:4].as_euler(seq, degrees=True) for seq in SEQUENCES] + [
                Rotation.from_euler(seq, angles).as_matrix() for seq in SEQUENCES]
        plain, short, made, applied, composed = jax.jit(ours)(QUATS, VECTORS)
        found = run(of_sequences, QUATS, VECTORS)       # by NumPy: XLA takes four seconds for each list
        euler, back = found[:len(SEQUENCES)], found[len(SEQUENCES):]
    close = lambda found, want: [np.testing.assert_allclose(a, b, atol=1e-7) for a, b in zip(found, want, strict=True)]
    for (name, options), found in zip(calls.items(), plain):
        close(found, [getattr(THEIRS, name)(**call) for call in options])
    R = transform.Rotation
    close(euler, [THEIRS[:4].as_euler(seq, degrees=True) for seq in SEQUENCES])
    close(back, [R.from_euler(seq, VECTORS).as_matrix() for seq in SEQUENCES])
    close(short, [R.from_euler(seq[:n], VECTORS[:, :n], True).as_matrix() for seq in ("zxy", "ZXY") for n in (1, 2)])
    close(made, [THEIRS.as_matrix(), R.from_rotvec(VECTORS).as_matrix(), R.from_rotvec(VECTORS, degrees=True).as_matrix(),
                 R.from_mrp(VECTORS).as_matrix()])
    close(applied, [THEIRS.apply(VECTORS), THEIRS.apply(VECTORS, True), THEIRS[0].apply(VECTORS), THEIRS.apply(VECTORS[0])])
    close(composed, [x.as_matrix() for x in (THEIRS * THEIRS[::-1], THEIRS[0] * THEIRS, THEIRS.inv(), THEIRS.mean(),
                                             THEIRS.mean(abs(VECTORS[:, 0])), R.concatenate([THEIRS, THEIRS[0]]))])


def test_gimbal_lock():
    """Of angles that are not known alone, those given back are the same rotation."""
    with jax.enable_x64():
        def there_and_back():
            results = []
            for seq in SEQUENCES:
                locked = (0, np.pi) if seq[0] == seq[2] else (np.pi / 2, -np.pi / 2)
                r = Rotation.from_euler(seq, jnp.array([[0.3, middle, 0.4] for middle in locked]))
                found = r.as_euler(seq)
                results.append((found[:, 2], Rotation.from_euler(seq, found).as_matrix(), r.as_matrix()))
            return results
        found = run(there_and_back)
        for third, again, r in zip(found[::3], found[1::3], found[2::3], strict=True):
            assert not third.any()
            np.testing.assert_allclose(again, r, atol=1e-7)


def test_slerp():
    times, at = np.array([0., 1, 1.5, 4, 5, 7, 8]), np.array([0, 0.3, 1, 3.9, 4.5, 7.9, 8])
    with jax.enable_x64():
        ours = Slerp.init(times, Rotation.from_quat(QUATS))
        theirs = transform.Slerp(times, THEIRS)
        found = jax.jit(lambda s, t: s(t).as_matrix())(ours, at)
        np.testing.assert_allclose(found[:-3], theirs(at).as_matrix()[:-3], atol=1e-7)
        np.testing.assert_allclose(ours(0.3).as_matrix(), theirs(0.3).as_matrix(), atol=1e-7)
        np.testing.assert_allclose(ours(-0.5).as_rotvec(), (THEIRS[0] * transform.Rotation.from_rotvec(
            -0.5 * (THEIRS[0].inv() * THEIRS[1]).as_rotvec())).as_rotvec(), atol=1e-7)
        for lists in ours(list(at)), Slerp.init(list(times), Rotation.from_quat(QUATS))(at):
            np.testing.assert_array_equal(lists.as_quat(), ours(at).as_quat())


def test_derivatives():
    def through(v, w, t):
        r, s = Rotation.from_rotvec(v), Rotation.from_euler("xyz", w)
        again = Rotation.from_matrix(r.as_matrix())
        return [(r * s).as_rotvec(), r.as_mrp(), s.as_euler("ZYX"), again.apply(w, inverse=True),
                Slerp.init(jnp.arange(3.), s)(t).quat]
    check_derivatives(through, VECTORS[:3], VECTORS[1:4], np.array([0.3, 1.6]), tolerance=1e-5)
    with jax.enable_x64():      # at the identity, and through it
        same = lambda v: Rotation.from_rotvec(v).as_rotvec()
        slopes = jax.jit(lambda v: (jax.jacfwd(same)(v), jax.jacrev(same)(v)))
        for v in (np.zeros(3), np.array([1e-9, 0, 0]), np.array([0.031, 0, 0]), np.array([0.033, 0, 0])):
            for slope in slopes(v):
                np.testing.assert_allclose(slope, np.eye(3), atol=1e-12)
        assert not jax.jit(jax.grad(lambda v: Rotation.from_rotvec(v).magnitude()))(np.zeros(3)).any()
    many = jax.vmap(lambda q: Rotation.from_quat(q))(QUATS.astype(np.float32))
    assert isinstance(many, Rotation) and many.quat.shape == (7, 4) and many.quat.dtype == "float32"


def test_containers():
    r = Rotation.from_quat(jnp.array(QUATS))
    assert len(r) == 7 and not r.single and r[2].single and bool(r[0]) and len(r[2:4]) == 2
    assert Rotation.identity().quat.tolist() == [0, 0, 0, 1] and len(Rotation.identity(3)) == 3
    assert Rotation.from_quat([1, 2, 3, 4]).quat.dtype == "float32" and Rotation.from_euler("x", 1.).single
    for num in (None, 4000):
        drawn = Rotation.random(jax.random.key(0), num)
        np.testing.assert_allclose(jnp.linalg.norm(drawn.quat, axis=-1), 1, rtol=1e-5)
    assert abs(drawn.apply(jnp.array([1., 0, 0])).mean(0)).max() < 0.05
    turning = Slerp.init(jnp.arange(7.), r)
    assert len(jax.tree.leaves(turning)) == 4 and (*r,) == (r.quat,)        # named tuples
    assert turning._fields == ("times", "timedelta", "rotations", "rotvecs")


@pytest.mark.parametrize("call, error, words", [
    (lambda r: len(r[0]), TypeError, "no len"), (lambda r: r[0][0], TypeError, "not subscriptable"),
    (lambda r: r * 2., TypeError, "Rotation"), (lambda r: r.as_euler("x"), ValueError, "Expected 3 axes"),
    (lambda r: r.as_euler("xyZ"), ValueError, "turn with the body"),
    (lambda r: Rotation.from_euler("xxy", jnp.ones(3)), ValueError, "consecutive"),
    (lambda r: Rotation.from_euler("xyz", jnp.ones(2)), ValueError, r"\(\.\.\., 3\) is needed, got \(2,\)"),
    (lambda r: Rotation.from_matrix(jnp.eye(4)), ValueError, r"3, 3\)"),
    (lambda r: r.apply(jnp.ones(4)), ValueError, r"\(4,\)"),
    (lambda r: Slerp.init(jnp.arange(2.), r[0]), ValueError, "at least 2"),
    (lambda r: Slerp.init(jnp.arange(3.), r), ValueError, "there are 7")])
def test_refused(call, error, words):
    with pytest.raises(error, match=words):
        call(Rotation.from_quat(jnp.array(QUATS)))

"""SciPy's rotations of space, as unit quaternions (x, y, z, w), and interpolation between them.

M. D. Shuster, "A survey of attitude representations", J. Astronautical Sciences 41, 1993, has the formulas.
"""
import functools
from typing import NamedTuple

from ... import numpy as jnp
from ...api.composite import composite
from ...core.errors import ShapeError
from ...core.surface.boundary import boundaries
from ...core.surface.public import export_names as _offer
from ...numpy.util import (
    check_arraylike, ndim as ndim_of, promote_dtypes_inexact, promotes, shape as shape_of)
from ...random import normal

__all__ = ["Rotation", "Slerp"]


def _inexact(name, x, *last):
    """An array of floats whose last sizes are `last`."""
    x = jnp.asarray(x)
    if x.shape[-len(last):] != last:
        raise ShapeError(f"Rotation.{name}: an array of shape (..., {', '.join(map(str, last))}) is needed, "
                         f"got {x.shape}")
    return promote_dtypes_inexact(x)[0]


# --- formulas on arrays (..., 4), (..., 3) and (..., 3, 3) ----------------------------------------

def _length(x):
    """The length of vectors, (..., 1), with a derivative of 0 at 0."""
    square = (x * x).sum(-1, keepdims=True)
    return jnp.where(square == 0, 0, jnp.sqrt(jnp.where(square == 0, 1, square)))


@composite
@promotes()
def _unit(q):
    return q / jnp.linalg.norm(q, axis=-1, keepdims=True)


@composite
@promotes()
def _product(p, q):
    a, u, b, v = p[..., 3:], p[..., :3], q[..., 3:], q[..., :3]
    across = jnp.cross(*jnp.broadcast_arrays(u, v))
    return jnp.concatenate([a * v + b * u + across, a * b - (u * v).sum(-1, keepdims=True)], -1)


@promotes()
def _conjugate(q):
    return q * jnp.array([-1, -1, -1, 1], q.dtype)


@composite
@promotes()
def _turned(q, v):
    """The vectors v, turned: v + 2 w (u x v) + 2 u x (u x v) for q = (u, w)."""
    u, v = jnp.broadcast_arrays(q[..., :3], v)
    across = 2 * jnp.cross(u, v)
    return v + q[..., 3:] * across + jnp.cross(u, across)


@composite
@promotes()
def _from_matrix(m):
    """For each of the four components as the largest, the quaternion; the best one has no cancellation.

    S. W. Shepperd, "Quaternion from rotation matrix", J. Guidance and Control 1, 1978.
    """
    d = jnp.stack([m[..., 0, 0], m[..., 1, 1], m[..., 2, 2]], -1)
    trace = d.sum(-1, keepdims=True)
    plus = lambda i, j: m[..., i, j] + m[..., j, i]
    minus = lambda i, j: m[..., i, j] - m[..., j, i]
    x2, y2, z2 = (1 + 2 * d[..., i] - trace[..., 0] for i in range(3))
    rows = jnp.stack([jnp.stack(row, -1) for row in (
        (x2, plus(0, 1), plus(0, 2), minus(2, 1)), (plus(0, 1), y2, plus(1, 2), minus(0, 2)),
        (plus(0, 2), plus(1, 2), z2, minus(1, 0)), (minus(2, 1), minus(0, 2), minus(1, 0),
                                                    1 + trace[..., 0]))], -2)
    largest = jnp.argmax(jnp.concatenate([d, trace], -1), -1)
    return _unit(jnp.take_along_axis(rows, largest[..., None, None], -2)[..., 0, :])


@composite
@promotes()
def _matrix(q):
    """The images of the axes are its columns."""
    return jnp.swapaxes(_turned(q[..., None, :], jnp.eye(3, dtype=q.dtype)), -1, -2)


@composite
@promotes()
def _from_rotvec(v):
    """(v sin(t/2) / t, cos(t/2)) for an angle t; near 0 by series, which have derivatives there."""
    square = (v * v).sum(-1, keepdims=True)
    small = square < 1e-3
    t = jnp.sqrt(jnp.where(small, 1, square))
    sine = jnp.where(small, 1 / 2 - square * (1 / 48 - square * (1 / 3840 - square / 645120)),
                     jnp.sin(t / 2) / t)
    cosine = jnp.where(small, 1 - square * (1 / 8 - square * (1 / 384 - square / 46080)), jnp.cos(t / 2))
    return jnp.concatenate([v * sine, cosine], -1)


@composite
@promotes()
def _rotvec(q):
    """The vector of the angle in [0, pi]: u times 2 atan(|u| / w) / |u|, by its series where |u| is small."""
    q = _canonical(q, zero=False)
    u, w = q[..., :3], q[..., 3:]
    square = (u * u).sum(-1, keepdims=True)
    small = square < 1e-3 * w * w
    length = jnp.sqrt(jnp.where(small, 1, square))
    r = jnp.where(small, square, 0) / jnp.where(small, w * w, 1)
    series = 2 / jnp.where(small, w, 1) * (1 - r * (1 / 3 - r * (1 / 5 - r * (1 / 7 - r * (1 / 9 - r / 11)))))
    return u * jnp.where(small, series, 2 * jnp.arctan2(length, w) / length)


def _canonical(q, zero=True):
    """The one of q and -q whose w is positive; with `zero`, where that is 0 whose z is, then y, x."""
    x, y, z, w = (q[..., i] for i in range(4))
    sign = jnp.where(w != 0, w, jnp.where(z != 0, z, jnp.where(y != 0, y, x))) if zero else w
    return jnp.where((sign < 0)[..., None], -q, q)


def _axes(name, seq):
    """(numbers of the axes, are they those of space?)."""
    if not isinstance(seq, str) or not 1 <= len(seq) <= 3 or set(seq) - set("xyz") and set(seq) - set("XYZ"):
        raise ValueError(f"Rotation.{name}: seq must be 1 to 3 of the letters x, y, z for axes of space, or "
                         f"of X, Y, Z for axes that turn with the body, got {seq!r}")
    if any(a == b for a, b in zip(seq, seq[1:])):
        raise ValueError(f"Rotation.{name}: consecutive axes in seq must be different, got {seq!r}")
    return tuple("xyz".index(letter) for letter in seq.lower()), seq.islower()


@composite(static=("axes", "extrinsic"))
@promotes()
def _from_euler(angles, *, axes, extrinsic):
    turns = [_from_rotvec(angles[..., k:k + 1] * jnp.eye(3, dtype=angles.dtype)[axis])
             for k, axis in enumerate(axes)]
    return functools.reduce(lambda p, q: _product(q, p) if extrinsic else _product(p, q), turns)


@composite(static=("axes", "extrinsic"))
@promotes()
def _euler(q, *, axes, extrinsic):
    """E. Bernardes & S. Viollet, "Quaternion to Euler angles conversion", PLoS ONE 17, 2022."""
    i, j, k = axes if extrinsic else axes[::-1]
    symmetric = i == k
    k = 3 - i - j if symmetric else k
    sign = (i - j) * (j - k) * (k - i) // 2
    a, b, c, d = q[..., 3], q[..., i], q[..., j], q[..., k] * sign
    if not symmetric:
        a, b, c, d = a - c, b + d, c + a, d - b
    middle = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
    half, other = jnp.arctan2(b, a), jnp.arctan2(d, c)
    blur = 8 * jnp.finfo(q.dtype).eps
    lower, upper = middle <= blur, middle >= jnp.pi - blur      # gimbal lock: the last of the two turns is 0
    locked = jnp.where(lower, 2 * half, -2 * other if extrinsic else 2 * other)
    first, last = half - other, half + other
    angles = [first, middle, last] if extrinsic else [last, middle, first]
    angles[0], angles[2] = jnp.where(lower | upper, locked, angles[0]), jnp.where(lower | upper, 0, angles[2])
    if not symmetric:
        angles[2 if extrinsic else 0] = angles[2 if extrinsic else 0] * sign
        angles[1] = middle - jnp.pi / 2
    return jnp.remainder(jnp.stack(angles, -1) + jnp.pi, 2 * jnp.pi) - jnp.pi


def _radians(angles, degrees):
    return jnp.deg2rad(angles) if degrees else angles


# --- as users call them ---------------------------------------------------------------------------

@boundaries
class Rotation(NamedTuple):
    """One rotation of space, or an array of them, as a named tuple: `quat`, unit quaternions (x, y, z, w).

    It is made by the functions from_quat, from_matrix, ... of the class; `Rotation(quat)` takes unit
    quaternions as they are.  Leading axes are batches, and broadcast.  Everything is differentiable, also at
    the identity.

    >>> turn = jax.scipy.spatial.transform.Rotation.from_euler('z', 90., degrees=True)
    >>> turn.apply(jnp.array([1., 0., 0.])).round(3)
    Array([0., 1., 0.], dtype=float32)
    >>> (turn * turn).magnitude()
    Array(3.1415927, dtype=float32)
    """
    quat: jnp.ndarray

    @classmethod
    def identity(cls, num=None, dtype=float):
        """The rotation that moves nothing; `num` of them."""
        return cls(jnp.broadcast_to(jnp.array([0, 0, 0, 1], dtype), (4,) if num is None else (num, 4)))

    @classmethod
    def random(cls, random_key, num=None):
        """A rotation drawn evenly; `num` of them."""
        return cls(_unit(normal(random_key, (4,) if num is None else (num, 4))))

    @classmethod
    def concatenate(cls, rotations):
        """A sequence of rotations, single ones or arrays, as one array."""
        return cls(jnp.concatenate([jnp.atleast_2d(r.quat) for r in rotations]))

    @classmethod
    def from_quat(cls, quat):
        """Of quaternions (..., 4), scalar last, which are brought to length 1."""
        return cls(_unit(_inexact("from_quat", quat, 4)))

    @classmethod
    def from_matrix(cls, matrix):
        """Of orthogonal matrices (..., 3, 3) with determinant 1."""
        return cls(_from_matrix(_inexact("from_matrix", matrix, 3, 3)))

    @classmethod
    def from_rotvec(cls, rotvec, degrees=False):
        """Of vectors (..., 3) along the axis, whose length is the angle."""
        return cls(_from_rotvec(_radians(_inexact("from_rotvec", rotvec, 3), degrees)))

    @classmethod
    def from_mrp(cls, mrp):
        """Of modified Rodrigues parameters (..., 3): vectors along the axis of length tan(angle / 4)."""
        mrp = _inexact("from_mrp", mrp, 3)
        square = (mrp * mrp).sum(-1, keepdims=True)
        return cls(jnp.concatenate([2 * mrp, 1 - square], -1) / (1 + square))

    @classmethod
    def from_euler(cls, seq, angles, degrees=False):
        """Of angles about axes, one after the other.

        Args:
            seq: 1 to 3 of x, y, z for axes of space, or of X, Y, Z for axes that turn with the body.
            angles: (..., len(seq)); for one axis also a scalar.
            degrees: the unit, radians by default.
        """
        axes, extrinsic = _axes("from_euler", seq)
        angles = jnp.asarray(angles)
        angles = angles[None] if len(axes) == 1 and not angles.ndim else angles
        return cls(_from_euler(_radians(_inexact("from_euler", angles, len(axes)), degrees), axes=axes,
                               extrinsic=extrinsic))

    def as_quat(self, canonical=False, scalar_first=False):
        """Quaternions (..., 4).

        Args:
            canonical: of q and -q, the one with positive scalar.
            scalar_first: as w, x, y, z.
        """
        quat = _canonical(self.quat) if canonical else self.quat
        return jnp.roll(quat, 1, -1) if scalar_first else quat

    def as_matrix(self):
        """Matrices (..., 3, 3)."""
        return _matrix(self.quat)

    def as_rotvec(self, degrees=False):
        """Vectors (..., 3) along the axis, whose length is the angle."""
        return jnp.rad2deg(_rotvec(self.quat)) if degrees else _rotvec(self.quat)

    def as_mrp(self):
        """Modified Rodrigues parameters (..., 3)."""
        quat = _canonical(self.quat, zero=False)
        return quat[..., :3] / (1 + quat[..., 3:])

    def as_euler(self, seq, degrees=False):
        """Angles (..., 3) about the three axes `seq`, as in `from_euler`; in gimbal lock the third is 0."""
        axes, extrinsic = _axes("as_euler", seq)
        if len(axes) != 3:
            raise ValueError(f"Rotation.as_euler: Expected 3 axes, got {seq!r}")
        angles = _euler(self.quat, axes=axes, extrinsic=extrinsic)
        return jnp.rad2deg(angles) if degrees else angles

    def apply(self, vectors, inverse=False):
        """Vectors (..., 3), turned; inverse: turned back."""
        check_arraylike("Rotation.apply", vectors)
        quat, vectors = promote_dtypes_inexact(self.quat, _inexact("apply", vectors, 3))
        return _turned(_conjugate(quat) if inverse else quat, vectors)

    def __mul__(self, other):
        """The rotation `other`, followed by this one."""
        if type(other) is not Rotation:
            return NotImplemented
        return Rotation(_product(*promote_dtypes_inexact(self.quat, other.quat)))

    def inv(self):
        """The rotation back."""
        return Rotation(_conjugate(self.quat))

    def magnitude(self):
        """The angles, in [0, pi]."""
        return 2 * jnp.arctan2(_length(self.quat[..., :3])[..., 0], abs(self.quat[..., 3]))

    def mean(self, weights=None):
        """The rotation that is nearest to all in the sense of squared chords, weighted.

        F. L. Markley et al., "Averaging quaternions", J. Guidance, Control, and Dynamics 30, 2007: the
        eigenvector of the largest eigenvalue of sum w q q^T.
        """
        quat = jnp.atleast_2d(self.quat)
        weighted = quat if weights is None else quat * jnp.asarray(weights)[..., None]
        return Rotation(jnp.linalg.eigh(jnp.einsum("ni,nj->ij", weighted, quat))[1][:, -1])

    @property
    def single(self):
        """Is it one rotation, not an array of them?"""
        return ndim_of(self.quat) == 1

    def __bool__(self):
        return True

    def __len__(self):
        if self.single:
            raise TypeError("Single rotation has no len().")
        return shape_of(self.quat)[0]

    def __getitem__(self, indexer):
        if self.single:
            raise TypeError("Single rotation is not subscriptable.")
        return Rotation(self.quat[indexer])


@boundaries
class Slerp(NamedTuple):
    """Rotations between given ones, turning evenly from each to the next.

    `Slerp.init(times, rotations)` makes one, a named tuple.  A call takes times, a scalar or (m,), and gives
    a Rotation; before the first and after the last time it turns on.

    >>> R, Slerp = jax.scipy.spatial.transform.Rotation, jax.scipy.spatial.transform.Slerp
    >>> turning = Slerp.init(jnp.array([0., 2.]), R.from_euler('x', jnp.array([[0.], [90.]]), degrees=True))
    >>> turning(1.).as_rotvec(degrees=True).round()
    Array([45.,  0.,  0.], dtype=float32)
    """
    times: jnp.ndarray
    timedelta: jnp.ndarray
    rotations: Rotation
    rotvecs: jnp.ndarray

    @classmethod
    def init(cls, times, rotations):
        """Between given rotations.

        Args:
            times: increasing, (n,).
            rotations: n > 1 of them.
        """
        if not isinstance(rotations, Rotation) or ndim_of(rotations.quat) != 2 or len(rotations) < 2:
            got = shape_of(rotations.quat)[:-1] if isinstance(rotations, Rotation) else type(rotations)
            raise ShapeError(f"Slerp.init: rotations must be a Rotation of at least 2 rotations, got {got}")
        times = jnp.asarray(times)
        if times.shape != (len(rotations),):
            raise ShapeError("Slerp.init: times must be a vector with a time for each of the rotations, of "
                             f"which there are {len(rotations)}, got shape {times.shape}")
        times, = promote_dtypes_inexact(times)
        starts = rotations[:-1]
        return cls(times, jnp.diff(times), starts, (starts.inv() * rotations[1:]).as_rotvec())

    def __call__(self, times):
        times, knots = promote_dtypes_inexact(jnp.asarray(times), self.times)
        i = jnp.clip(jnp.searchsorted(knots, times, side="right") - 1, 0, len(self.timedelta) - 1)
        share = (times - knots[i]) / self.timedelta[i]
        return self.rotations[i] * Rotation.from_rotvec(self.rotvecs[i] * share[..., None])


_offer(globals())

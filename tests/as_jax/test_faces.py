"""The faces of JAX's inside, `boxes.py`, `faces.py` and `jacobians.py`: in a process of their own, as
`hlotrace.as_jax` changes a process."""
import os
import subprocess
import sys

from places import ROOT, TESTS


def test_faces_helpers_and_jacobians():
    files = [TESTS / "as_jax" / f"checks_of_{name}.py"
             for name in ("boxes", "faces", "helpers", "inner_modules", "jacobians", "key_reuse_core")]
    ran = subprocess.run([sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", *files],
                         cwd=ROOT, text=True,
                         capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert ran.returncode == 0 and "passed" in ran.stdout, ran.stdout + ran.stderr

"""Every name that packages were seen to take from JAX resolves in a process for JAX; a few raise when they
are called."""
import forked
from places import TESTS

PROGRAM = """
import hlotrace.as_jax, importlib, sys, warnings
from hlotrace.as_jax.nothing import Nothing
from hlotrace.experimental.pallas.unsupported import KernelFunction
warnings.simplefilter("ignore")
wrong = []
for line in open(sys.argv[1]):
    if line.startswith("#"):
        continue
    name, *raises = line.split()
    found = importlib.import_module(name.partition(".")[0])
    for depth, part in enumerate(name.split(".")[1:], 2):
        try:
            found = getattr(found, part)
        except AttributeError:
            found = importlib.import_module(".".join(name.split(".")[:depth]))
    if isinstance(found, (Nothing, KernelFunction)) != bool(raises):
        wrong.append(line)
    elif raises:
        try:
            found(1)
        except NotImplementedError as error:
            if name.rpartition(".")[2] not in str(error):
                wrong.append(line)
assert not wrong, wrong
"""


def test_all_of_them_in_one_process():
    forked.run(PROGRAM, TESTS / "data" / "taken_names.txt", check=True, HLOTRACE_AS_JAX="1")

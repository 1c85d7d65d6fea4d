# `make` makes the environment and runs the main example; `make test` makes it and runs the tests.
# For another Python, beside the first: make test PYTHON=python3.13 VENV=.venv313
# The documentation, into build/site/html: make docs
# For some of the tests:                make test ARGS='-k grad'
# As XLA compiles for users, in twice the time: HLOTRACE_TEST_XLA=full make test
# Without programs that an earlier run compiled:        HLOTRACE_TEST_PROGRAMS= make test
# After a signature changed:           make stubs
# After a name, an option or a NotImplementedError came, went or changed its words: make differences
# After a program's text changed on purpose: make golden, and read what changed
# The array API standard's test suite: make array-api SUITE=path
# The suites of Flax, Optax, ... on hlotrace, without jax: make libraries ARGS='--only=optax,chex'
# Programs for GPUs that are not here: make gpu (with CUDA 13: make gpu CUDA=13)
# On a machine that has a GPU: make gpu-run; where there is none, the same on the CPU: make gpu-run PLATFORM=cpu
# Do the nearest tests catch faults that are planted? make faults ARGS='--only=core,numpy/fft.py'

PYTHON ?= python3
VENV ?= .venv
JOBS = 2
ARGS =

# What an environment was made for: a Python, and this checkout (in a copy, the first one's code would be run).
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
CHECKOUT := $(shell $(PYTHON) -c 'import os, zlib; print("%08x" % zlib.crc32(os.getcwd().encode()))')
installed = $(VENV)/.$(1)-$(VERSION)-$(CHECKOUT)
READY = $(call installed,examples)
TEST = $(call installed,test)
RUN = $(VENV)/bin/python
INSTALL = $(RUN) -m pip install --quiet --disable-pip-version-check --editable

.PHONY: run test quick lint types stubs differences chips golden performance docs array-api libraries gpu gpu-run faults clean

run: $(READY)
	@echo "running the main job: a digits classifier is trained, and a picture of it drawn"
	$(RUN) examples/digits.py

test: $(TEST)
	$(RUN) -m pytest -n $(JOBS) $(ARGS)

quick: $(TEST)
	$(RUN) -m pytest -n $(JOBS) -m 'quick and not compiles' $(ARGS)

lint: $(call installed,lint)
	$(RUN) -m ruff check
	$(RUN) -m isort --check-only hlotrace tests tools examples

types: $(call installed,lint) $(TEST)
	$(RUN) -m mypy
	$(RUN) -m pytest -q tests/house/test_types.py -k "stub or mistakes"

stubs: $(READY)
	$(RUN) tools/stubs.py

differences: $(READY)
	$(RUN) tools/missing.py
	$(RUN) tools/differences.py

chips: $(READY)
	$(RUN) tools/chips.py

golden: $(TEST)
	HLOTRACE_WRITE_GOLDEN=1 $(RUN) -m pytest -q tests/house/test_golden.py

# beside JAX, on a machine without other work; a part of it: make performance ARGS='--only import call'
performance: $(call installed,bench)
	$(RUN) tools/bench.py $(ARGS)
	$(RUN) tools/performance.py out/bench.json

docs: $(call installed,docs)
	$(RUN) tools/site.py

# SUITE: a checkout of data-apis/array-api-tests with its submodule
array-api: $(TEST)
	$(RUN) -m pip install --quiet --disable-pip-version-check -r "$(SUITE)/requirements.txt"
	cd "$(SUITE)" && JAX_ENABLE_X64=1 ARRAY_API_TESTS_VERSION=2024.12 ARRAY_API_TESTS_MODULE=hlotrace.numpy \
	  "$(abspath $(RUN))" -m pytest -c pytest.ini -q --max-examples 2 --derandomize --disable-deadline \
	  --skips-file "$(CURDIR)/tests/array_api_skips.txt" $(ARGS)

# an hour or more for all; SUITES: a folder of checkouts of libraries whose tests are not on PyPI
libraries: $(TEST)
	$(RUN) tools/libraries.py $(if $(SUITES),--suites="$(SUITES)") $(ARGS)

# the wheels that compile for NVIDIA GPUs without one, half a gigabyte, and the tests of what is compiled so
CUDA = 12
gpu: $(TEST)
	$(RUN) -m pip install --quiet --disable-pip-version-check --no-deps \
	  $$($(RUN) -c 'from hlotrace.runtime.devices import gpu_targets; print(*gpu_targets.wheels("$(CUDA)"))')
	HLOTRACE_TEST_GPU=1 HLOTRACE_TEST_XLA=full $(RUN) -m pytest -n $(JOBS) tests/distributed/test_gpu_topologies.py \
	  tests/distributed/test_gpu_compiles.py tests/inspection/test_gpu_kernels.py tests/tools/test_dump_hlo.py \
	  tests/api/test_frontend_attributes.py $(ARGS)

# the quick tests, and values on the devices of a platform: on a GPU, or anywhere with PLATFORM=cpu
PLATFORM = gpu
gpu-run: $(TEST)
	$(RUN) -m pytest -n $(JOBS) -m 'quick and not compiles' $(ARGS)
	HLOTRACE_TEST_PLATFORM=$(PLATFORM) $(RUN) -m pytest tests/distributed/test_gpu_run.py $(ARGS)

# faults planted in a copy, and which of the nearest tests catch them
faults: $(TEST)
	$(RUN) tools/plant_faults.py $(ARGS)

clean:
	rm -rf .venv .venv[0-9]* .venv-libraries .mypy_cache .pytest_cache .ruff_cache

# The environment with what the main job needs; what another target needs is added for it.
$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("hlotrace needs Python 3.11 or newer, and $(PYTHON) is $(VERSION): say make PYTHON=...")'
	@echo "making an environment of Python $(VERSION) in $(VENV)"
	@if [ -e $(VENV)/pyvenv.cfg ] && ! $(VENV)/bin/python$(VERSION) -c '' 2>/dev/null; then rm -rf $(VENV); fi
	@rm -f $(VENV)/.*-[0-9]*
	@$(PYTHON) -m venv $(VENV)
	@echo "installing hlotrace, jaxlib, numpy, scikit-learn and matplotlib there: a minute or two the first time"
	@$(INSTALL) '.[examples]'
	@touch $@

$(call installed,%): $(READY)
	@echo "installing what make $(@F:.%-$(VERSION)-$(CHECKOUT)=%) needs besides"
	@$(INSTALL) '.[$(@F:.%-$(VERSION)-$(CHECKOUT)=%)]'
	@touch $@

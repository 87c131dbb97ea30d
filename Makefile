# Every target makes its own environment in .venv; nothing needs to be installed by hand.
#   make reproduce   the paper's tables and figures beside ours
#   make test        lint, types, tests (TORCH=1, DASK=1, SPARK=1, BROWSER=1 add these and the tests that need them)
#   make bench       speed against the limit and against peers (TORCH=1 adds PyTorch to them)
#   make mutants     planted errors: does a test notice each?
#   make torture     kills, threads, full disks, mutated checkpoints (ARGS="--minutes 240" for longer)
#   make fuzz        forged checkpoints, stores, tables and requests (ARGS="--minutes 240" for longer)
#   make docs        the documentation site, into docs/_build/html
#   make pictures    every picture in docs and README, from the code and from studies/evidence (needs Chromium)
#   make dist        sdist and wheel, into dist; the wheel is tried in an empty environment

PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
VENV ?= .venv
BIN := $(VENV)/bin
TORCH ?=
DASK ?=
SPARK ?=
TORCH_VERSION ?= 2.13.0
BROWSER ?=
IN_BROWSER := $(filter 1,$(BROWSER))
ARGS ?=

.PHONY: test reproduce bench docs pictures dist clean mutants torture fuzz

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# A stamp per set of extras, so that pip runs only when pyproject.toml has changed.
$(VENV)/.has-%: pyproject.toml | $(BIN)/python
	@echo "Installing ccmem[$*] into $(VENV) (once) ..."
	$(BIN)/python -m pip install --disable-pip-version-check --editable ".[$*]"
	@touch $@

$(VENV)/.has-pytorch: | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "torch==$(TORCH_VERSION)"
	@touch $@

reproduce: $(VENV)/.has-reproduce
	$(BIN)/ccmem reproduce $(ARGS)

test: $(if $(TORCH),$(VENV)/.has-pytorch) $(VENV)/.has-test $(if $(DASK),$(VENV)/.has-dask) $(if $(SPARK),$(VENV)/.has-spark) $(if $(IN_BROWSER),$(VENV)/.has-browser)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	CCMEM_BROWSER=$(IN_BROWSER) $(BIN)/pytest --quiet -n auto $(ARGS)
ifndef ARGS
	@echo "Once more with the JIT off: the kernels as plain Python"
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest --quiet -n auto -m "not data" tests/kernels/test_competition.py tests/kernels/test_update.py tests/models/test_wta.py tests/models/test_gmm.py tests/models/test_artc2a.py tests/models/test_ccm.py
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest --quiet -n auto -m "not data" tests/test_every_model.py -k "naive_twin and not GrowingNeuralGas and not SOINN"
endif

bench: $(if $(TORCH),$(VENV)/.has-pytorch) $(VENV)/.has-bench
	$(BIN)/python -m benchmarks $(ARGS)

docs: $(VENV)/.has-docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

# Those of the gallery are made by make docs, those of the report by make reproduce. ARGS names some of these instead.
PICTURES := docs/make_architecture.py docs/make_pictures.py docs/make_hero.py docs/make_watch.py docs/make_living.py studies/make_charts.py
pictures: $(VENV)/.has-docs $(VENV)/.has-browser
	@for script in $(or $(ARGS),$(PICTURES)); do echo "$$script"; PYTHONPATH=. $(BIN)/python $$script || exit 1; done

dist: $(VENV)/.has-dist
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(PYTHON) -m venv --clear $(VENV)-wheel
	$(VENV)-wheel/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	$(VENV)-wheel/bin/python tests/try_wheel.py

mutants: $(VENV)/.has-test
	$(BIN)/python -m studies.mutants $(ARGS)

torture: $(VENV)/.has-test
	NUMBA_BOUNDSCHECK=1 $(BIN)/python -m studies.torture $(ARGS)

fuzz: $(VENV)/.has-test
	NUMBA_BOUNDSCHECK=1 $(BIN)/python -m studies.fuzz $(ARGS)

clean:
	rm -rf $(VENV) $(VENV)-wheel build dist docs/_build .mypy_cache .ruff_cache .hypothesis

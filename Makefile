# Needs: CPython 3.11 or newer with venv, a C compiler. Everything else is installed into $(VENV).
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PYTEST_ARGS ?=
WORKERS ?= 2

KERNELS := $(wildcard tensorcore_models/_kernels/*.pyx tensorcore_models/_kernels/*.pxd tensorcore_models/_kernels/*.h \
                      ascend/_kernels/*.pyx ascend/_kernels/*.pxd ascend/_kernels/*.h \
                      mpgemm/_kernels/*.pyx mpgemm/_kernels/*.pxd mpgemm/_kernels/*.h)
BUILD_INPUTS := pyproject.toml setup.py $(KERNELS)

.PHONY: evaluate test campaign bench docs sanitize mutation lint clean

$(VENV)/.created:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	touch $@

$(VENV)/.run-ready: $(VENV)/.created $(BUILD_INPUTS)
	$(BIN)/python -m pip install --quiet --editable ".[plot,cli]"
	touch $@

$(VENV)/.test-ready: $(VENV)/.created $(BUILD_INPUTS)
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	touch $@

# The main job on the matrices that ship with the project: table on the screen, figures and JSON in out/.
evaluate: $(VENV)/.run-ready
	$(BIN)/mpgemm evaluate --out out

# The whole suite.
test: $(VENV)/.test-ready
	$(BIN)/python -m pytest -n $(WORKERS) $(PYTEST_ARGS)

# The long campaigns (random twins by the million).
campaign: $(VENV)/.test-ready
	$(BIN)/python -m pytest -m slow $(PYTEST_ARGS)

# Pages that are generated from the tables.
docs: $(VENV)/.run-ready
	$(BIN)/python -m tensorcore_models.catalogue.page > docs/instructions.md

# The suite with every kernel under AddressSanitizer and UndefinedBehaviorSanitizer, in a clone of its own.
sanitize: $(VENV)/.test-ready
	rm -rf build/sanitize && git clone -q . build/sanitize
	cd build/sanitize && MPGEMM_SANITIZE=1 $(CURDIR)/$(BIN)/python setup.py -q build_ext --inplace
	cd build/sanitize && PYTHONPATH=. PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0 MPGEMM_SANITIZE=1 \
	  LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libubsan.so)" \
	  $(CURDIR)/$(BIN)/python -m pytest -q $(PYTEST_ARGS)

# Faults put in on purpose, each of which the suite must notice.
mutation: $(VENV)/.test-ready
	$(BIN)/python tests/mutation/run.py

lint:
	$(PYTHON) -m ruff check .

clean:
	rm -rf $(VENV) build dist out *.egg-info
	find tensorcore_models ascend mpgemm -name '*.so' -delete

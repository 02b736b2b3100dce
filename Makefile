# Needs: CPython 3.11 or newer with venv, a C compiler. Everything else is installed into $(VENV).
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PYTEST_ARGS ?=
WORKERS ?= 2
# Tests start hundreds of interpreters: each would compile the packages again.
unexport PYTHONDONTWRITEBYTECODE

# One environment and one build of the kernels for all targets; what follows it are dependency groups of pyproject.toml.
PREPARE := @$(PYTHON) tools/prepare.py $(VENV)

.PHONY: evaluate test test-all campaign bench cross pages docs site sanitize check-kernels mutation lint format clean

# The main job on the matrices that ship with the project: table on the screen, figures and JSON in out/.
evaluate:
	$(PREPARE)
	$(BIN)/mpgemm evaluate --out out

# The suite without its exhaustive variants: the aim is four minutes on two cores.
test:
	$(PREPARE) test
	$(BIN)/pytest -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

# The suite with its exhaustive variants: solvers, compilers, browser, notebooks, every instruction in every way.
test-all:
	$(PREPARE) test
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not slow" $(PYTEST_ARGS)

# The long campaigns (random twins by the million).
campaign:
	$(PREPARE) test
	$(BIN)/pytest -m slow $(PYTEST_ARGS)

# Every fast path beside numpy's SGEMM: table on the screen and in docs/performance.md, JSON in out/. QUICK=1 for less than a minute and
# no page, BENCH_ARGS="--threads 2".
bench:
	$(PREPARE)
	$(BIN)/python bench/run.py $(if $(filter 1,$(QUICK)),--quick,--page docs/performance.md) $(BENCH_ARGS)

# Arm's rows against qemu's instructions; the plain-C lanes compiled for aarch64 and run there by qemu, on cases made here.
CROSS_CC ?= aarch64-linux-gnu-gcc
CROSS_RUN ?= qemu-aarch64
UNITS_FLAGS := -O3 -ffp-contract=off -fno-strict-aliasing -Wno-unused-function $(addprefix -I ,$(wildcard tensorcore_models/_kernels/*/)) -I mpgemm/_kernels
cross:
	$(PREPARE) test
	@command -v $(CROSS_CC) >/dev/null || { echo "make cross needs $(CROSS_CC): install gcc-aarch64-linux-gnu"; exit 1; }
	@command -v $(CROSS_RUN) >/dev/null || { echo "make cross needs $(CROSS_RUN): install qemu-user"; exit 1; }
	$(BIN)/python tests/cross/compare_arm.py
	@echo '#include <stdio.h>' | $(CROSS_CC) -E - >/dev/null 2>&1 || { echo "make cross needs a C library for $(CROSS_CC): install libc6-dev-arm64-cross"; exit 1; }
	mkdir -p out
	$(BIN)/python tests/cross/make_cases.py out/lanes_cases.bin
	$(CROSS_CC) -O3 -ffp-contract=off -fno-strict-aliasing -Wno-unused-function -static $(addprefix -I ,$(wildcard tensorcore_models/_kernels/*/)) \
		tests/cross/lanes_selftest.c -o out/lanes_selftest -lm
	$(CROSS_RUN) out/lanes_selftest out/lanes_cases.bin
	$(BIN)/python tests/cross/make_group_cases.py out/group_cases.bin
	$(CROSS_CC) -O3 -ffp-contract=off -fno-strict-aliasing -Wno-unused-function -static $(addprefix -I ,$(wildcard tensorcore_models/_kernels/*/)) \
		tests/cross/groups_selftest.c -o out/groups_selftest -lm
	$(CROSS_RUN) out/groups_selftest out/group_cases.bin
	$(CROSS_CC) -O3 -ffp-contract=off -fno-strict-aliasing -Wno-unused-function -static $(addprefix -I ,$(wildcard tensorcore_models/_kernels/*/)) \
		tests/cross/chains_selftest.c -o out/chains_selftest -lm
	$(CROSS_RUN) out/chains_selftest
	$(CC) $(UNITS_FLAGS) tests/cross/units_selftest.c -o out/units_here -lm
	$(CROSS_CC) $(UNITS_FLAGS) -static tests/cross/units_selftest.c -o out/units_there -lm
	here=$$(out/units_here) && there=$$($(CROSS_RUN) out/units_there) && echo "emulated units: $$here here, $$there there" \
		&& test "$$here" = "$$there"

SITE ?= out/site
HOSTED ?= out/hosted
SPHINX = PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m sphinx -W --keep-going -q

pages:
	$(PREPARE) docs
	$(BIN)/python docs/_ext/instructions_page.py > docs/instructions.md
	$(BIN)/python docs/_ext/families_page.py > docs/families.md
	$(BIN)/python docs/_ext/units_page.py > docs/units.md
	$(BIN)/python docs/_ext/audit_page.py > docs/audit.md
	$(BIN)/python docs/_ext/accuracy_page.py > docs/accuracy.md
	$(BIN)/python docs/_ext/commands_page.py > docs/commands.md

# The generated pages, and the site in out/site: its code runs, its pictures are made, warnings are errors, links are checked. The
# playground needs clang and wasm-ld; without them the site is built without it, and a line says so.
docs: pages
	$(SPHINX) -d out/doctrees docs $(SITE)
	$(BIN)/python docs/_ext/check_site.py $(SITE)

# A folder for a static host: the site of this version beside those of others that are there already, and a switch between them.
site: pages
	$(SPHINX) -t hosted -d out/doctrees-hosted docs \
		$(HOSTED)/$$($(BIN)/python -c "from importlib.metadata import version; print(version('mpgemm'))")
	$(BIN)/python docs/_ext/hosting.py $(HOSTED)
	$(BIN)/python docs/_ext/check_site.py $(HOSTED)

# The suite with every kernel under AddressSanitizer and UndefinedBehaviorSanitizer, in a clone of its own.
sanitize:
	$(PREPARE) test
	rm -rf build/sanitize && git clone -q . build/sanitize
	cd build/sanitize && MPGEMM_SANITIZE=1 $(CURDIR)/$(BIN)/python setup.py -q build_ext --inplace --parallel 2
	cd build/sanitize && PYTHONPATH=. PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 MPGEMM_SANITIZE=1 \
	  LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libubsan.so)" \
	  $(CURDIR)/$(BIN)/python -m pytest -q -k "not nvcc and not formal" -m "not slow and not full and not unsanitized" $(PYTEST_ARGS)  # no nvcc under the preloaded libraries, and no memory left for solvers

# The kernels' tests where each operation of their lanes ends the program outside of its domain, in a clone of its own.
CHECKED := fast_kernels fast_kernels_ends fast_groups fast_lanes_of_32_bits edges small_products promotion padding
check-kernels:
	$(PREPARE) test
	rm -rf build/checked && git clone -q . build/checked
	cd build/checked && MPGEMM_CHECK=1 $(CURDIR)/$(BIN)/python setup.py -q build_ext --inplace --parallel 2
	cd build/checked && PYTHONPATH=. $(CURDIR)/$(BIN)/python -m pytest -q -n $(WORKERS) $(CHECKED:%=tests/tensorcore_models/test_%.py) tests/mpgemm/test_bf16x9.py $(PYTEST_ARGS)

# Faults put in on purpose, each of which the suite must notice.
mutation:
	$(PREPARE) test
	$(BIN)/python tests/mutation/run.py

C_FILES = $$(git ls-files '*.h' '*.c')

# What every change must pass, besides the tests: the linters, the formatters and the spell checker.
lint:
	$(PREPARE) test lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(C_FILES)
	PATH="$(abspath $(BIN)):$$PATH" cython-lint tensorcore_models ascend mpgemm  # it calls pycodestyle by name
	$(BIN)/codespell
	$(BIN)/mypy

# Formats everything in place.
format:
	$(PREPARE) lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(C_FILES)

clean:
	rm -rf $(VENV) build dist out *.egg-info
	find tensorcore_models ascend mpgemm -name '*.so' -delete -o -path '*/_kernels/*.c' -delete

# Two commands matter: `make demo` and `make test`. Each sets everything up by itself, in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready

# Tests start hundreds of Pythons, and each would compile all of Kerf and of the tests anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test test-controlplane gate test-all check bench controlplane image playground generated lock clean

setup: $(STAMP)

# The lock carries hashes, so that what is installed is what was tested.
$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "kerf needs Python 3.11 or newer; set PYTHON=python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "setting up $(VENV) ..." >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(STAMP)
	@PATH="$(abspath $(BIN)):$$PATH" sh examples/demo.sh

# What fails is run once more; a test that passes then is named at the end.
FAST := $(BIN)/python tools/second_try.py -n 2 --dist worksteal --ignore=tests/controlplane --durations=40
# Three control planes load two cores well; with more, tests that wait for a scheduler wait in vain now and then.
CONTROL := $(BIN)/python tools/second_try.py -n 3 --dist loadscope --no-loadscope-reorder --durations=40 tests/controlplane

# Of the control plane tier what counts pods by the hundred: beside other clusters, waits would end in vain.
ALONE := $(BIN)/python -m pytest -m alone --durations=40 tests/controlplane

# The fast tier. What it leaves out, and what shows the same in it, is in CONTRIBUTING.md.
test: $(STAMP)
	@$(FAST) -m "not long" --tier "fast tier"

# The tests against a real API server run where `make controlplane` has been run once; elsewhere they are skipped, and
# the last line says so.
test-controlplane: $(STAMP)
	@$(CONTROL) -m "not long" --tier "control plane tier"

# What has to pass before anything lands.
gate: export KERF_GATE_BEGAN := $(shell date +%s)
gate: $(STAMP)
	@$(MAKE) --no-print-directory check
	@echo "check: $$(( $$(date +%s) - KERF_GATE_BEGAN )) s"
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory test-controlplane

# Everything: every crash of the exhaustive runs, all examples of the properties, and whatever else is long.
test-all: export KERF_EXAMPLES := all
test-all: $(STAMP)
	@$(FAST) --tier "all but the control plane"
	@$(CONTROL) -m "not alone" --tier "control plane tier"
	@$(ALONE) --tier "control plane, one test at a time"

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/check_words.py

# ROWS="disruption groups": some of them only.
bench: $(STAMP)
	$(BIN)/python -m benchmarks.run $(ROWS)

# kube-apiserver, etcd and what else a cluster needs, from source into a cache of the user; prints the folder. Before
# that, what manifests of ours are tried with: definitions of other projects, promtool, and metrics-server.
controlplane:
	@$(PYTHON) controlplane/definitions.py > /dev/null
	@$(PYTHON) controlplane/programs.py promtool > /dev/null
	@$(PYTHON) controlplane/programs.py metrics-server > /dev/null
	@$(PYTHON) controlplane/build.py

# The container image, without a daemon or a registry; on Debian, as root. Prints its digest and its file tree.
image:
	@$(PYTHON) container/build.py

# A cluster to play with until Ctrl-C. ARGS=--empty: without Kerf, to install it yourself; ARGS=--fast: no waiting.
playground: $(STAMP)
	@$(BIN)/python -m tools.playground $(ARGS)

# What follows from the code: the chart's roles, definitions, settings and schema, and pages of the reference.
generated: $(STAMP)
	@$(BIN)/python tools/generate_chart.py
	@$(BIN)/python tools/document_run.py
	@$(BIN)/python tools/document_lint.py
	@$(BIN)/python tools/document_modules.py
	@$(BIN)/python tools/document_manpage.py
	@$(BIN)/python tools/document_crds.py > docs/reference/.crds.md
	@mv docs/reference/.crds.md docs/reference/crds.md && echo docs/reference/crds.md

# Needs uv; only a maintainer who changes dependencies runs it.
lock:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate \
	  --all-extras --group dev pyproject.toml -o requirements.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate \
	  --extra aws --constraint requirements.lock pyproject.toml -o container/run.lock
	echo hatchling | uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --no-annotate --constraint requirements.lock - -o container/build.lock

clean:
	rm -rf $(VENV) dist build

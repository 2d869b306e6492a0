# Everything a developer or CI does. A machine needs Python 3.11+ and make; the rest is installed into .hatch/.
PYTHON ?= python3
BOOT := .hatch/boot
HATCH := HATCH_DATA_DIR=$(CURDIR)/.hatch/data $(BOOT)/bin/hatch
RUN := $(HATCH) run
DISTRIBUTIONS := pydantic_ai_slim tool_approval
ANSWERS ?=
MODEL ?=
PYTEST_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help install install-system demo test test-slow test-hosts test-core format format-check lint typecheck imports \
	examples docs docs-serve build recordings bench-loop bench-approval bench-tools corpus all clean

help: ## Show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(BOOT)/bin/hatch:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'Python 3.11 or newer is needed; say which: make PYTHON=python3.12 ...'; exit 1; }
	@$(PYTHON) -m venv $(BOOT) || \
		{ echo 'Python lacks its venv module; on Debian: apt-get install python3-venv'; rm -rf $(BOOT); exit 1; }
	@$(BOOT)/bin/python -m pip install --quiet 'hatch>=1.16'

.hatch/.installed: pyproject.toml pydantic_ai_slim/pyproject.toml tool_approval/pyproject.toml | $(BOOT)/bin/hatch
	@$(HATCH) env create default
	@# As it is published, without the partner it names: the compatibility layer takes that one's place.
	@$(RUN) python -m pip install --quiet --no-deps 'pydantic-ai-filesystem-sandbox==0.9.0'
	@touch $@

install: .hatch/.installed ## Create the development environment

install-system: ## Install what needs the system's package manager (Debian), as root
	apt-get update
	apt-get install --yes --no-install-recommends bubblewrap iproute2

demo: install ## Play the demo; ANSWERS=yn answers for you, MODEL=openai:... takes a real model
	@$(RUN) python examples/port_story.py $(if $(ANSWERS),--answers '$(ANSWERS)') $(if $(MODEL),--model '$(MODEL)')

test: install ## Run the tests, with complete branch coverage
	@$(RUN) pytest -m 'not slow' --cov --cov-report=term $(PYTEST_ARGS)

test-slow: install ## Run the tests that take minutes
	@$(RUN) pytest -m slow $(PYTEST_ARGS)

test-hosts: install ## Run what runs on pydantic-ai-slim on other releases of it
	@$(HATCH) run host:pytest tests/loop tests/approval/integrations/pydantic_ai -m 'not slow' $(PYTEST_ARGS)

test-core: install ## Run the tests of tool_approval's core where nothing but pydantic is installed
	@$(HATCH) run core:pytest tests/approval --ignore tests/approval/integrations --ignore tests/approval/compat \
		--ignore tests/approval/tools --ignore tests/approval/os_sandbox $(PYTEST_ARGS)

corpus: install ## Print how the guarded tools decide the sample attacks
	@$(RUN) python -m tests.corpus.shell
	@$(RUN) python -m tests.corpus.paths

format: install ## Format the code
	@$(RUN) ruff check --fix --quiet --select I . && $(RUN) ruff format .

format-check: install ## Check the format
	@$(RUN) ruff format --check .

lint: install ## Lint the code
	@$(RUN) ruff check .

typecheck: install ## Check the types, strictly
	@$(RUN) pyright
	@$(RUN) mypy

imports: install ## Check who imports whom
	@$(RUN) lint-imports

examples: install ## Run every example
	@$(RUN) pytest tests/examples $(PYTEST_ARGS)

docs: install ## Build the documentation, strictly
	@$(RUN) env NO_MKDOCS_2_WARNING=1 mkdocs build --strict

docs-serve: install ## Serve the documentation
	@$(RUN) mkdocs serve

build: install ## Build wheel and sdist of both distributions and import them from clean environments
	@$(RUN) python tests/release/build_and_install.py $(DISTRIBUTIONS)

recordings: install ## Record the demo for README and docs
	@$(RUN) python docs/recordings/record.py

bench-loop: install ## Measure the loop against the host's own ways
	@$(RUN) python -m benchmarks.loop

bench-approval: install ## Measure what the approval layer adds to a call
	@$(RUN) python -m benchmarks.approval

bench-tools: install ## Measure the shell rules' decisions and the OS sandbox's start
	@$(RUN) python -m benchmarks.tools_shell
	@$(RUN) python -m benchmarks.os_sandbox

all: format-check lint typecheck imports docs build test-core test-hosts test ## Everything CI requires

clean: ## Remove what the other targets made
	rm -rf .hatch build dist site .coverage .hypothesis .mypy_cache .ruff_cache

# Everything a developer or CI does. A machine needs Python 3.11+ and make; the rest is installed into .hatch/.
PYTHON ?= python3
BOOT := .hatch/boot
DEMO := .hatch/demo
HATCH := HATCH_DATA_DIR=$(CURDIR)/.hatch/data HATCH_CONFIG=$(CURDIR)/.hatch/config.toml $(BOOT)/bin/hatch
RUN := $(HATCH) run
BARE := $(RUN) python -m tests.bare env
RELEASE := $(HATCH) run release:python -m maintainers.release
DISTRIBUTIONS := pydantic_ai_slim tool_approval
ANSWERS ?=
STORY ?= port
TEST_HOST = pytest tests/loop tests/approval/integrations/pydantic_ai -m 'not slow and not thorough' $(PYTEST_ARGS)
RELEASE_ARGS ?=
VERSION ?=
MODEL ?=
PYTEST_ARGS ?=
# Two more than there are processors: many tests wait for another process.
WORKERS ?= $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN) + 2 )))
TEST = pytest -m 'not slow and not thorough' --numprocesses $(WORKERS) --dist worksteal
# Where `make all` does not have to repeat the tests bare: two targets run them so, in environments of their own.
ELSEWHERE_BARE = tests/loop tests/approval/integrations/pydantic_ai \
	$(addprefix tests/approval/,audit core display storage testing)
# Of use only where every test runs.
COVERAGE = $(if $(filter required,$(SYSTEM_PACKAGES)),--cov --cov-report=term)

# Neither pip nor what runs here writes into the user's home.
export XDG_CACHE_HOME := $(CURDIR)/.hatch/cache
# Hundreds of processes of the tests import the same modules, and would compile each of them again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help help-all budget prose install install-system demo test test-thorough test-bare test-slow test-hosts test-core test-published format format-check lint typecheck imports \
	examples docs docs-serve build recordings bench-loop bench-approval bench-tools bench-inbox bench-durable bench-peers corpus corpus-terminal \
	upstream-patch test-patched typecheck-patched upstream-newest release-check release-version release-tag lock test-sets licences audit-dependencies \
	sbom bench-terminal all checks clean

help: ## Show the targets that most changes need
	@grep -E '^[a-z-]+:.* ## ' $(MAKEFILE_LIST) | sed -E 's/:.* ## /\t/' | expand -t 20

help-all: ## Show all targets
	@grep -E '^[a-z-]+:.* #[#-] ' $(MAKEFILE_LIST) | sed -E 's/:.* #[#-] /\t/' | expand -t 20

define make_venv
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo 'Python 3.11 or newer is needed; say which: make PYTHON=python3.12 ...'; exit 1; }
@$(PYTHON) -m venv $(1) || \
	{ echo 'Python lacks its venv module; on Debian: apt-get install python3-venv'; rm -rf $(1); exit 1; }
endef

# Hatch writes its defaults into the user's configuration if it has no file.
.hatch/config.toml:
	@mkdir -p .hatch
	@touch $@

$(BOOT)/bin/hatch: | .hatch/config.toml
	$(call make_venv,$(BOOT))
	@$(BOOT)/bin/python -m pip install --quiet 'hatch>=1.16'

.hatch/.installed: pyproject.toml pydantic_ai_slim/pyproject.toml tool_approval/pyproject.toml | $(BOOT)/bin/hatch
	@$(HATCH) env create default
	@# As it is published, without the partner it names: the compatibility layer takes that one's place.
	@$(RUN) python -m pip install --quiet --no-deps 'pydantic-ai-filesystem-sandbox==0.9.0'
	@touch $@

install: .hatch/.installed ## Create the development environment

install-system: ## Install what needs the system's package manager (Debian), as root
	apt-get update
	@# A Node.js that is not Debian's brings npm along, and conflicts with its package.
	apt-get install --yes --no-install-recommends bubblewrap chromium curl git iproute2 openssl postgresql procps $$(command -v npm >/dev/null || echo npm)

$(DEMO)/.installed: pydantic_ai_slim/pyproject.toml tool_approval/pyproject.toml
	$(call make_venv,$(DEMO))
	@$(DEMO)/bin/python -m pip install --quiet --editable ./pydantic_ai_slim --editable './tool_approval[cli]'
	@touch $@

# What the story of durable runs needs beyond the others.
$(DEMO)/.durable: $(DEMO)/.installed
	@$(DEMO)/bin/python -m pip install --quiet --editable './tool_approval[cli,durable]'
	@touch $@

# Providers with a library of their own; Pydantic AI reaches the others through OpenAI's.
OWN_LIBRARY := anthropic bedrock cohere google groq huggingface mistral typesafe xai
MODEL_EXTRA = $(or $(filter $(OWN_LIBRARY),$(firstword $(subst :, ,$(subst -, ,$(MODEL:gateway/%=%))))),openai)

demo: $(DEMO)/.installed $(if $(filter restart,$(STORY)),$(DEMO)/.durable) ## Play a demo, STORY=port, edit, nested, batch or restart; ANSWERS=yn answers for you, MODEL=openai-chat:... takes a real model
	@$(if $(MODEL),$(DEMO)/bin/python -m pip install --quiet 'pydantic-ai-slim[$(MODEL_EXTRA)]')
	@$(DEMO)/bin/tool-approval demo $(STORY) $(if $(ANSWERS),--answers '$(ANSWERS)') $(if $(MODEL),--model '$(MODEL)')

test: install ## Run the tests
	@$(RUN) $(TEST) $(PYTEST_ARGS)

test-thorough: install ## Run more tests; with SYSTEM_PACKAGES=required none may be skipped, and all branches must be covered
	@$(RUN) $(TEST) -m 'not slow' $(COVERAGE) tests maintainers $(PYTEST_ARGS)

test-bare: install #- Run `make test` as on a machine without the packages of `make install-system`
	@$(RUN) python -m tests.bare $(MAKE) --no-print-directory test PYTEST_ARGS='$(PYTEST_ARGS)'

test-slow: install ## Run the tests that take minutes
	@$(RUN) pytest -m slow $(PYTEST_ARGS)

test-hosts: install #- Run what runs on pydantic-ai-slim on other releases of it, and on Python 3.13 where present
	@$(BARE) $(HATCH) run -on host:$(TEST_HOST)
	@HATCH_PYTHON=$$($(RUN) python -m maintainers.release.environments 3.13) $(BARE) $(HATCH) run +on=newer-python host:$(TEST_HOST)

test-core: install #- Run the tests of tool_approval's core where nothing but pydantic is installed
	@$(BARE) $(HATCH) run core:pytest tests/approval --ignore tests/approval/integrations --ignore tests/approval/compat \
		--ignore tests/approval/tools --ignore tests/approval/os_sandbox --ignore tests/approval/settings \
		--ignore tests/approval/cli --ignore tests/approval/assistant --ignore tests/approval/durable --ignore tests/approval/inbox --ignore tests/approval/ui $(PYTEST_ARGS)

test-published: install #- Run the published tests of the packages that the compatibility layer serves; it needs the network
	@$(RUN) python -m tests.approval.compat.published

corpus-terminal: install #- Print how the terminal's renderer stands up to the sample attacks
	@$(RUN) python -m tests.corpus.terminal

corpus: install ## Print how the guarded tools decide the sample attacks
	@$(RUN) python -m tests.corpus.shell
	@$(RUN) python -m tests.corpus.paths

format: install ## Format the code
	@$(RUN) ruff check --fix --quiet --select I . && $(RUN) ruff format .

format-check: install #- Check the format
	@$(RUN) ruff format --check .

lint: install ## Lint the code
	@$(RUN) ruff check .

typecheck: install ## Check the types, strictly
	@$(RUN) pyright
	@$(RUN) mypy

imports: install ## Check who imports whom
	@$(RUN) lint-imports

budget: install ## Report the lines and modules of each part, and what one approved call passes through
	@$(RUN) python -m maintainers.budget

prose: install ## Check the wording and the spelling of docs, docstrings, comments and messages
	@$(RUN) python -m maintainers.prose
	@$(RUN) typos

examples: install ## Run every example
	@$(RUN) pytest tests/examples $(PYTEST_ARGS)

docs: install ## Build the documentation, strictly
	@$(RUN) env NO_MKDOCS_2_WARNING=1 mkdocs build --strict

docs-serve: install ## Serve the documentation
	@$(RUN) mkdocs serve

build: install #- Build wheel and sdist of both distributions and import them from clean environments
	@$(RUN) python -m maintainers.release.build_and_install $(DISTRIBUTIONS)

release-check: $(BOOT)/bin/hatch #- Check the artefacts on every Python that is present, with every extra
	@$(RELEASE).check $(RELEASE_ARGS)

release-version: $(BOOT)/bin/hatch #- Set the version to VERSION=... wherever it is stated
	@$(RELEASE).versions --set '$(VERSION)'

release-tag: $(BOOT)/bin/hatch #- Check whether the signed tag TAG=... may be released
	@$(RELEASE).tag $(RELEASE_ARGS)

lock: $(BOOT)/bin/hatch #- Resolve the sets of dependencies in requirements/ anew
	@$(RELEASE).dependency_sets --lock

test-sets: $(BOOT)/bin/hatch #- Run the tests on the minimal and the newest dependencies
	@$(RELEASE).dependency_sets

licences: $(BOOT)/bin/hatch #- Check the licences of everything that the extras bring
	@$(RELEASE).licences

audit-dependencies: $(BOOT)/bin/hatch #- Look for known vulnerabilities of the locked dependencies
	@$(RELEASE).audit requirements/newest.txt

sbom: $(BOOT)/bin/hatch #- Write a bill of materials for each distribution to dist/sbom
	@$(RELEASE).sbom dist/sbom

recordings: install #- Record the demo for README and docs
	@$(RUN) python docs/recordings/record.py

bench-loop: install #- Measure the loop against the host's own ways
	@$(RUN) python -m benchmarks.loop

bench-peers: install #- Measure other systems that ask, each in its own environment
	@$(RUN) python -m maintainers.peers

bench-inbox: install #- Measure the inbox under load, on both stores
	@$(RUN) python -m benchmarks.inbox

bench-durable: install #- Measure durable runs, on both stores
	@$(RUN) python -m benchmarks.durable

bench-terminal: install #- Measure how long a large request takes to be drawn
	@$(RUN) python -m benchmarks.terminal

bench-approval: install #- Measure what the approval layer adds to a call
	@$(RUN) python -m benchmarks.approval

bench-tools: install #- Measure the shell rules' decisions and the OS sandbox's start
	@$(RUN) python -m benchmarks.tools_shell
	@$(RUN) python -m benchmarks.os_sandbox

upstream-patch: install #- Apply the commits for Pydantic AI to the installed release
	@$(RUN) python -m maintainers.upstream

test-patched: install #- Run the tests of these commits and of the proposal on the patched tree
	@$(RUN) python -m maintainers.upstream test $(PYTEST_ARGS)

typecheck-patched: install #- Check the types of the patched interface
	@$(RUN) python -m maintainers.upstream typecheck

upstream-newest: install #- Apply the commits to the newest published release
	@$(RUN) python -m maintainers.upstream newest

all: install ## Everything CI requires, two targets at a time
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target --keep-going checks
	@$(MAKE) --no-print-directory test-thorough
	@$(MAKE) --no-print-directory test-bare PYTEST_ARGS='$(addprefix --ignore=,$(ELSEWHERE_BARE)) $(PYTEST_ARGS)'

# What takes longest is started first. The documentation is built, strictly, by a test (tests/docs/test_site.py).
checks: test-hosts build typecheck test-core test-published test-patched typecheck-patched imports lint format-check prose

clean: ## Remove what the other targets made
	rm -rf .hatch build dist site .coverage .hypothesis .mypy_cache .ruff_cache

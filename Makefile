.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
LOWEST := .venv-lowest/bin
NEWEST := .venv-newest/bin
WORKERS ?= auto
PARALLEL = -n $(WORKERS) --dist worksteal -q
PORT ?= 8080
ARGS ?=
DAY ?= $(shell date +%F)

.PHONY: help run test prove lowest newest lint check fmt docs bench attack compat mutants screenshots dist lock

help:  ## List the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

EDITABLE := --no-deps --no-build-isolation -e .
SERVER := -e './.[server,tls]'
install = $(1)/pip install --quiet --disable-pip-version-check $(2)

NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
TOO_OLD := The sandbox needs Python 3.11 or newer, and $(PYTHON) is not; try: make $(MAKECMDGOALS) PYTHON=python3.12

define environment  # an incomplete environment has no stamp, and is recreated
@$(PYTHON) -c '$(NEW_ENOUGH)' || { echo '$(TOO_OLD)' >&2; exit 1; }
@echo 'Installing $(2) into $(1), which takes up to two minutes, and only happens once'
@$(PYTHON) -m venv $(if $(wildcard $(1)/*.stamp),,--clear) $(1)
endef

.venv/serve.stamp: requirements.lock pyproject.toml
	$(call environment,.venv,the server)
	@$(call install,$(BIN),--no-compile hatchling -c requirements-dev.lock)
	@$(call install,$(BIN),--no-compile --no-build-isolation $(SERVER) -c requirements.lock)
	@touch $@

.venv/develop.stamp: requirements-dev.lock pyproject.toml
	$(call environment,.venv,the packages for development)
	@$(call install,$(BIN),-r requirements-dev.lock)
	@$(call install,$(BIN),$(EDITABLE))
	@touch $@ .venv/serve.stamp

.venv-lowest/develop.stamp: requirements-dev.lock requirements-lowest.lock pyproject.toml
	$(call environment,.venv-lowest,the lowest supported versions)
	@$(call install,$(LOWEST),-r requirements-dev.lock)
	@$(call install,$(LOWEST),-r requirements-lowest.lock)
	@$(call install,$(LOWEST),$(EDITABLE))
	@touch $@

.venv-newest/develop.stamp: pyproject.toml  # remove the folder to get newer versions
	$(call environment,.venv-newest,the newest versions)
	@$(NEWEST)/python tests/requirements.py dev > .venv-newest/requirements.in
	@$(call install,$(NEWEST),--upgrade -r .venv-newest/requirements.in)
	@$(call install,$(NEWEST),$(EDITABLE))
	@touch $@

run: .venv/serve.stamp  ## Serve the sandbox on http://127.0.0.1:8080; PORT=8090, ARGS="--tls"
	@exec $(BIN)/python -m payment_sandbox serve --port $(PORT) $(ARGS)

# The fast tests wait for a quarter of their time, so three workers use two processors.
test prove: export DAY := $(DAY)
test: WORKERS = $(shell echo $$(( ($$(getconf _NPROCESSORS_ONLN) * 3 + 1) / 2 )))
test: .venv/develop.stamp  ## Run the fast tests, which cover every feature; ARGS=tests/web
	$(BIN)/pytest $(PARALLEL) --durations=10 $(ARGS)

prove: .venv/develop.stamp  ## Run the slow tests: containers, attacks, seeded bugs, builds, the mutants of the day
	$(BIN)/pytest $(PARALLEL) -m prove
	$(BIN)/python -m tests.mutants --sample 8 --seed $(DAY)

lowest: .venv-lowest/develop.stamp  ## Run all tests with the lowest supported versions of the dependencies
	$(LOWEST)/pytest $(PARALLEL) -m "not compat"

newest: .venv-newest/develop.stamp  ## Run the fast tests with the newest versions of the dependencies
	$(NEWEST)/pip list --disable-pip-version-check
	$(NEWEST)/pytest $(PARALLEL) $(ARGS)

lint: .venv/develop.stamp  ## Check format, lint, types and import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

check: lint test  ## Check format, lint, types and import contracts, and run the fast tests

fmt: .venv/develop.stamp  ## Format the code, and apply automatic fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: .venv/develop.stamp  ## Run the benchmarks, relative to a reference in the same run
	$(BIN)/python -m tests.bench

attack: .venv/develop.stamp  ## Attack a server for up to an hour, and report the results; ARGS="-k requests"
	ATTACK=full $(BIN)/pytest tests/attack -m prove -s -p no:randomly $(ARGS)

compat: .venv/develop.stamp  ## Meet clients, frameworks and tools, and write the table of results; ARGS="-k flask"
	$(BIN)/pytest tests/compat -m compat -rs $(ARGS)

docs: .venv/develop.stamp  ## Write the generated parts of the documentation into its files
	$(BIN)/python -m tests.documentation

screenshots: .venv/develop.stamp  ## Retake the screenshot in the README
	$(BIN)/python -m tests.screenshots

mutants: .venv/develop.stamp  ## Break the rules of the ledger one at a time; a test must fail for each; ARGS=CAP-04
	$(BIN)/python -m tests.mutants $(ARGS)

.venv-dist/stamp: requirements-dev.lock
	$(PYTHON) -m venv .venv-dist
	.venv-dist/bin/pip install --quiet --disable-pip-version-check -c requirements-dev.lock hatchling shiv twine check-wheel-contents
	@touch $@

dist: .venv-dist/stamp  ## Build the wheel, the sdist and the single file payment-sandbox.pyz into dist/
	.venv-dist/bin/python tests/dist.py

COMPILE := $(BIN)/pip-compile --quiet --strip-extras --no-emit-index-url --no-emit-find-links --no-emit-options --no-annotate --no-header

lock: .venv/develop.stamp  ## Update the pinned dependencies
	$(BIN)/python -m tests.requirements serve | $(COMPILE) -o requirements.lock -
	$(BIN)/python -m tests.requirements dev | $(COMPILE) --allow-unsafe -o requirements-dev.lock -

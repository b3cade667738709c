.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= auto

.PHONY: help run test check fmt bench rules lock

help:  ## Show what there is to do
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

.venv/serve.stamp: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.lock
	@echo '$(CURDIR)/sandbox' > $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/payment-sandbox.pth
	@touch $@

.venv/develop.stamp: requirements-dev.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-dev.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@ .venv/serve.stamp

run: .venv/serve.stamp  ## Serve the sandbox on http://127.0.0.1:8080
	@exec $(BIN)/python -m payment_sandbox serve

test: .venv/develop.stamp  ## Run every test
	$(BIN)/pytest -n $(WORKERS) -q

check: .venv/develop.stamp  ## Format, lint, types, import contracts, tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/pytest -n $(WORKERS) -q

fmt: .venv/develop.stamp  ## Format and mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: .venv/develop.stamp  ## Measure, as ratios to a reference of the same run
	$(BIN)/python -m tests.bench

rules: .venv/develop.stamp  ## Print the rules of the fidelity ledger that no test proves yet
	$(BIN)/python -m tests.rules

lock: .venv/develop.stamp  ## Pin the dependencies anew
	$(BIN)/pip-compile --quiet --strip-extras --no-emit-index-url --no-emit-find-links --no-emit-options --no-annotate --no-header -o requirements.lock pyproject.toml
	$(BIN)/pip-compile --quiet --strip-extras --no-emit-index-url --no-emit-find-links --no-emit-options --no-annotate --no-header --extra dev --allow-unsafe -o requirements-dev.lock pyproject.toml

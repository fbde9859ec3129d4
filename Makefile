# `make test` is all there is to know: it makes its own environment, then checks and tests everything.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.dev-$(shell cksum requirements-dev.lock 2>/dev/null | cut -d' ' -f1)

.PHONY: help env lint test model demo bench lock clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 18

env: $(STAMP)  ## makes .venv with everything that the tests need

$(STAMP):
	@echo "Making $(VENV) from requirements-dev.lock (once; about a minute) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@rm -f $(VENV)/.dev-*
	@touch $@

lint: env  ## ruff and mypy --strict
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

test: lint  ## everything: lint, types, import arrows, the model's quick set, all tests
	@$(BIN)/python -m pytest -q -n logical tests/unit tests/contract tests/model
	@$(BIN)/python -m pytest -q tests/system tests/chaos  # alone: servers see the crawler's clock here

model: env  ## the protocol's model: every scenario and every deliberate bug, as tables
	@$(BIN)/python -m tests.model.protocol_model $(ARGS)

demo: env  ## serves a synthetic web on this machine and crawls it: everything to be seen, without internet
	@$(BIN)/python -m bench.demo $(ARGS)

bench: env  ## the ledger's cost per page, in CPU time
	@$(BIN)/python -m bench.ledger $(ARGS)

lock: env  ## compiles both lock files anew from pyproject.toml (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --extra crawler -o requirements.lock pyproject.toml
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --extra crawler --extra dev -o requirements-dev.lock pyproject.toml

clean:  ## removes what make made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis

# `make test` is all there is to know: it makes its own environment, then checks and tests everything.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.dev-$(shell cksum requirements-dev.lock 2>/dev/null | cut -d' ' -f1)
PEERS := $(VENV)-peers
PEERS_STAMP := $(PEERS)/.made-$(shell cksum bench/peers/requirements.txt 2>/dev/null | cut -d' ' -f1)

.PHONY: help env lint test test-compose model demo bench bench-ledger bench-external bench-frontier bench-similarity bench-killed bench-share bench-steps profile hostile crash chaos lock clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 25

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
	@$(BIN)/python -m pytest -q tests/hostile  # a process of its own: its memory is measured

test-compose: env  ## the stack of containers, as operators run it (needs Docker; about ten minutes)
	@$(BIN)/python -m pytest -q tests/compose

model: env  ## the protocol's model: every scenario and every deliberate bug, as tables
	@$(BIN)/python -m tests.model.protocol_model $(ARGS)

hostile: env  ## what broken and hostile peers do, case by case: outcome, time and memory (ARGS: numbers, such as 13 28a)
	@$(BIN)/python -m tests.hostile $(ARGS)

chaos: env  ## a crawl in a storm: all that it stands on is killed, frozen, cut off; what was lost (SEED=7 DURATION=600, in seconds)
	@$(BIN)/python -m tests.chaos.storm --duration $(or $(DURATION),600) $(addprefix --seed ,$(SEED)) $(ARGS)

crash: env  ## a crawl dies at every crash point, on both engines, goes on, and is compared (ARGS: --points, --engine, --seed, --sample, --minutes)
	@$(BIN)/python -m tests.chaos.crash $(ARGS)

demo: env  ## serves a synthetic web on this machine and crawls it: everything to be seen, without internet
	@$(BIN)/python -m bench.demo $(ARGS)

$(PEERS_STAMP):
	@echo "Making $(PEERS) from bench/peers/requirements.txt (once; about a minute) ..."
	@mkdir -p $(PEERS)
	@{ test -x $(PEERS)/bin/pip || $(PYTHON) -m venv $(PEERS); } >$(PEERS)/log 2>&1 \
		&& $(PEERS)/bin/python -m pip install --disable-pip-version-check -r bench/peers/requirements.txt >>$(PEERS)/log 2>&1 \
		|| { echo "The peers' environment can't be made: $$(grep -m 1 -i error $(PEERS)/log || tail -n 1 $(PEERS)/log)" >&2; exit 1; }
	@rm -f $(PEERS)/.made-*
	@touch $@

bench: env $(PEERS_STAMP)  ## CPU, memory and mistakes of a crawl, beside Scrapy's and others' (twenty minutes; QUICK=1: under five; makes .venv-peers)
	@$(BIN)/python -m bench.compare --peers $(PEERS)/bin/python --json out/bench.json \
		$(if $(QUICK),--quick,--results bench/RESULTS.md --plot docs/performance.png) $(ARGS)

bench-steps: env  ## what each step of a page costs, beside the least that it can cost (ARGS: --pages, --json; --external: on servers too)
	@$(BIN)/python -m bench.steps $(ARGS)

profile: env  ## where a crawl's CPU time goes: by area and function, and a flame graph in out/ (ARGS: --pages, flags of the crawl)
	@$(BIN)/python -m bench.profile $(ARGS)

bench-ledger: env  ## the ledger's cost per page, in CPU time
	@$(BIN)/python -m bench.ledger $(ARGS)

bench-external: env  ## a crawl on RabbitMQ, Redis and S3: round trips and CPU time a page, of roles and servers
	@$(BIN)/python -m bench.external $(ARGS)

bench-frontier: env  ## the frontier's order, draws, fairness and throughput, with their bounds (ten minutes)
	@$(BIN)/python -m bench.frontier $(ARGS)

bench-similarity: env  ## near-duplicates: which pairs of pages are taken for one, and what that costs; fails if a bound is broken
	@$(BIN)/python -m bench.similarity $(ARGS)

bench-share: env  ## the ledger's share of a crawl's CPU time, on both engines
	@$(BIN)/python -m bench.share $(ARGS)

bench-killed: env $(PEERS_STAMP)  ## what `kill -9` costs Scrapy, scrapy-redis and us, on the same web (half an hour; makes .venv-peers)
	@$(BIN)/python -m bench.killed --peers $(PEERS)/bin/python $(ARGS)

lock: env  ## compiles the lock files anew from pyproject.toml (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --extra crawler -o requirements.lock pyproject.toml
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --extra crawler --extra parquet --extra dev -o requirements-dev.lock pyproject.toml
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --extra parquet -c requirements.lock -o requirements-parquet.lock pyproject.toml

clean:  ## removes what make made
	rm -rf $(VENV) $(PEERS) .mypy_cache .ruff_cache .pytest_cache .hypothesis

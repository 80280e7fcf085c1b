# The verbs of this project. `make demo` and `make test` set everything up by themselves.
.PHONY: demo test check format lint types soak bench lock setup clean
BIN := .venv/bin
WORKERS ?= auto

demo: setup        ## a whole session without key or network
	@$(BIN)/holdfast demo

test: setup        ## every test, short form
	@$(BIN)/python -m tests.warming
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not soak"

check: setup       ## format, lint, types, tests
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(MAKE) --no-print-directory test

format: setup      ## write the code in the house format
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

lint: setup
	@$(BIN)/ruff check .

types: setup
	@$(BIN)/mypy

soak: setup        ## the long form of crash storms, fuzzing and simulations
	@$(BIN)/python -m tests.warming
	@$(BIN)/python -m pytest -n $(WORKERS) -m soak --timeout 3600

bench:             ## figures against peers, side by side in one run; NAME=store for one of them
	@scripts/setup .venv-bench bench/requirements.lock
	@.venv-bench/bin/python -m bench $(NAME)

LOCK := uv pip compile --quiet --universal --generate-hashes --no-header --no-emit-index-url --no-emit-find-links \
  --python-version 3.11
ALL := --extra wasi --extra acp --group dev

lock:              ## make the lock files anew (needs uv)
	$(LOCK) $(ALL) --output-file requirements.lock pyproject.toml
	$(LOCK) $(ALL) --no-annotate --output-file bench/requirements.lock pyproject.toml bench/requirements.in
	$(LOCK) --no-annotate --output-file bench/wasm-requirements.lock bench/wasm-requirements.in

setup:             ## install everything into .venv
	@scripts/setup

clean:
	rm -rf .venv .venv-bench .mypy_cache .ruff_cache .hypothesis

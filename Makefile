# The verbs of this project. `make demo` and `make test` set everything up by themselves.
.PHONY: demo test check format lint types soak bench lock setup clean
BIN := .venv/bin
WORKERS ?= auto

demo: setup        ## a whole session without key or network
	@$(BIN)/holdfast demo

test: setup        ## every test, short form
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
	@$(BIN)/python -m pytest -n $(WORKERS) -m soak --timeout 3600

bench: setup       ## figures against peers, side by side in one run
	@$(BIN)/python -m bench

lock:              ## make requirements.lock anew (needs uv)
	uv pip compile --quiet --universal --generate-hashes --no-header --no-emit-index-url --no-emit-find-links \
	  --extra wasi --group dev --python-version 3.11 --output-file requirements.lock pyproject.toml

setup:
	@scripts/setup

clean:
	rm -rf .venv .mypy_cache .ruff_cache .hypothesis

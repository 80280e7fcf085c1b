# `make demo` and `make test` install what they need into .venv.
.PHONY: demo test check format lint types soak bench labels lock screenshots setup clean
BIN := .venv/bin
WORKERS ?= auto
# Compiled once and kept: the tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE
TESTS := $(if $(PACKAGE),tests/$(PACKAGE),)

demo:              ## a whole session without a key or a network; installs the runtime dependencies only
	@scripts/setup .venv requirements.lock
	@$(BIN)/holdfast demo

test: setup        ## every test, short form; PACKAGE=gate runs the tests of one package
	@$(BIN)/python -m tests.prepare
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not soak" $(TESTS)

check: setup       ## format, lint, types, tests
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(MAKE) --no-print-directory test

format: setup      ## format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

lint: setup
	@$(BIN)/ruff check .

types: setup
	@$(BIN)/mypy

soak: setup        ## the long form of crash storms, fuzzing and simulations; PACKAGE=gate as above
	@$(BIN)/python -m tests.prepare
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: \
	  --requirement tests/fuzz/requirements.lock || echo "*** NOT INSTALLED: atheris; the random mutator runs the fuzz targets ***"
	@$(BIN)/python -m pytest -n $(WORKERS) -m soak --timeout 3600 $(TESTS)

bench:             ## figures against peers, side by side in one run; NAME=store runs one benchmark
	@scripts/setup .venv-bench bench/requirements.lock
	@.venv-bench/bin/python -m bench $(NAME)

labels:            ## labels on AgentDojo, in an environment of its own, and on scenarios of our own
	@scripts/setup .venv-agentdojo bench/agentdojo/requirements.lock
	@.venv-agentdojo/bin/python -m bench.agentdojo
	@.venv-agentdojo/bin/python -m bench.label_scenarios
	@.venv-agentdojo/bin/python -m bench.second_turn

LOCK := uv pip compile --quiet --universal --generate-hashes --no-header --no-emit-index-url --no-emit-find-links \
  --no-annotate --python-version 3.11
ALL := --extra google --extra wasi --extra acp --extra scale --extra scale-procrastinate --extra slack --extra notify --group dev

lock:              ## rewrite the lock files after a change of dependencies (needs uv)
	$(LOCK) --group build --output-file requirements.lock pyproject.toml
	$(LOCK) $(ALL) --constraint requirements.lock --output-file requirements-dev.lock pyproject.toml
	$(LOCK) $(ALL) --output-file bench/requirements.lock pyproject.toml bench/requirements.in
	$(LOCK) --output-file bench/wasm-requirements.lock bench/wasm-requirements.in
	$(LOCK) --group build --output-file bench/agentdojo/requirements.lock pyproject.toml bench/agentdojo/requirements.in
	$(LOCK) --output-file tests/fuzz/requirements.lock tests/fuzz/requirements.in

screenshots: setup ## the pages of `holdfast web` as pictures in screenshots/, and the one of the README
	@$(BIN)/python -m tests.prepare
	@$(BIN)/python scripts/make_screenshots.py screenshots
	@$(BIN)/python scripts/make_screenshots.py docs/pictures picture

setup:             ## install the runtime and development dependencies into .venv
	@scripts/setup

clean:
	rm -rf .venv .venv-bench .venv-agentdojo .mypy_cache .ruff_cache .hypothesis

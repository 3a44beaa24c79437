# `make demo` and `make test` each work alone on a fresh clone: they create .venv and install.
# Needs Python >= 3.11, g++, make and git.

PYTHON ?= python3
BIN := .venv/bin
JOBS ?= 2

.PHONY: demo test test-long formal records lint types imports clean

demo: .venv/ready
	$(BIN)/vdla compare resnet18-convs -c paper --out out
	$(BIN)/vdla compare resnet18 -c paper --out out
	$(BIN)/vdla run resnet18 --device sim -c paper --trace out/resnet18-paper.trace.json
	@echo "Pictures and timelines are in out/; open the traces at https://ui.perfetto.dev"

test: lint types imports
	$(BIN)/pytest -n $(JOBS) --dist worksteal -m "not long"

test-long: .venv/ready
	$(BIN)/pytest -n $(JOBS) --dist worksteal -m long

formal: .venv/ready
	$(BIN)/pytest -n $(JOBS) --dist worksteal tests/hw/formal

# The tuned schedules that ship with the package; goes on from build/records.jsonl.
records: .venv/ready
	mkdir -p build
	for model in resnet18 resnet18-convs mobilenet digits; do \
	  $(BIN)/vdla tune $$model -c paper --vthreads 1,2 --workers $(JOBS) \
	    --log build/records.jsonl --export compiler/tune/data/best.jsonl || exit 1; \
	done

lint: .venv/ready
	$(BIN)/ruff check .

types: .venv/ready build/mypy
	MYPYPATH=build/mypy $(BIN)/mypy -p vdla.isa -p vdla.sim -p vdla.compiler

imports: .venv/ready build/mypy
	cd build/mypy && ../../$(BIN)/lint-imports --config ../../pyproject.toml

# mypy and import-linter can't follow an editable install's finder: they get a folder of symlinks.
build/mypy:
	mkdir -p build/mypy/vdla
	for room in isa sim hw compiler runtime; do ln -sfn ../../../$$room build/mypy/vdla/$$room; done
	for part in vdla/*.py vdla/commands; do ln -sfn ../../../$$part build/mypy/vdla/; done

.venv/ready: pyproject.toml setup.py
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

clean:
	rm -rf .venv build out

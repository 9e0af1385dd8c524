# The front doors. `make help` lists them.
PRESET ?= release
BUILD := build/$(PRESET)
PY := .venv/bin/python
JOBS ?= $(shell nproc)
CXX_SOURCES = $(shell git ls-files 'src/*.cpp' 'src/*.h' 'include/*.h' 'tests/*.cpp' 'tests/*.h' 'tools/*.cpp' 'examples/*.cpp')
PY_SOURCES := python tools bench tests examples
# On all cores where pytest-xdist is installed.
PYTEST = $(PY) -m pytest -q -p no:cacheprovider $(shell $(PY) -c 'import xdist' 2>/dev/null && echo --numprocesses=$(JOBS) --dist=worksteal)

.DEFAULT_GOAL := help
.PHONY: help setup setup-demo build demo test test-full test-core test-cpp test-python bench gpu gpu-sanitizers fmt lint golden fuzz size asan wheel clean asan-python

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | expand -t 16

setup:  ## system packages and .venv for everything here; quick when nothing is missing
	@bash tools/setup.sh test

setup-demo:  # without the tools of tests
	@bash tools/setup.sh demo

build: setup  ## compile everything into build/, the Python module into python/cresset (PRESET=debug, asan)
	@cmake --preset $(PRESET) $(if $(wildcard $(BUILD)/build.ninja),>/dev/null,)
	@cmake --build $(BUILD) -j $(JOBS)

demo: setup-demo  ## BERT, GPT-2 and ResNet-50 against eager and torch.compile; a few minutes
	@cmake --preset $(PRESET) $(if $(wildcard $(BUILD)/build.ninja),>/dev/null,)
	@cmake --build $(BUILD) -j $(JOBS) --target cresset_python
	@$(PY) -m cresset.demo $(DEMO)

test: test-core test-cpp test-python  ## what CI runs

test-core: build
	@ctest --preset $(PRESET) -j $(JOBS) --no-tests=error
	@$(PY) tools/check_layers.py
	@$(PY) tools/size.py --check

# The installed C++ package, used as a user would: found by CMake from another project, no Python in the process.
test-cpp: build
	@cmake --install $(BUILD) --component cpp --prefix $(BUILD)/installed >/dev/null
	@cmake -G Ninja -S examples/cpp -B $(BUILD)/example -DCMAKE_BUILD_TYPE=Release \
	  -DCMAKE_PREFIX_PATH="$(CURDIR)/$(BUILD)/installed;$$($(PY) -c 'import torch; print(torch.utils.cmake_prefix_path)')" >/dev/null
	@cmake --build $(BUILD)/example
	@$(BUILD)/example/example

test-python: build
	@$(PYTEST) tests/python

test-full: test-core  ## all dtypes of op_db, more fuzzing, the real configurations, the wheel, the sanitizers
	@CRESSET_TEST_FULL=1 $(PYTEST) tests/python
	@PYTHONMALLOC=debug $(PYTEST) tests/python/semantics  # what is read after its death is found
	@$(BUILD)/tests/fuzz/sym_fuzz 25000 1 2500  # 100,000 cases: four properties of each; Z3 proves those of 2,500
	@$(MAKE) --no-print-directory asan asan-python

asan: setup  ## the core's tests under the sanitizers
	@$(MAKE) --no-print-directory build PRESET=asan
	@ctest --preset asan -j $(JOBS) --no-tests=error

asan-python: setup  ## the Python tests of operators, models and semantics under the sanitizers; ASAN_TESTS=... for others
	@bash tools/asan_python.sh $(ASAN_TESTS)

bench: build  ## compile and run time against eager and torch.compile; BENCH='--quick' for the short form
	@$(PY) bench/run.py $(BENCH)

gpu: build  ## the tests and the benchmark of CUDA, on this machine's GPU (a CUDA build of torch); writes bench/results
	@$(BUILD)/tests/unit/gpu_kernel_test --gtest_brief=1
	@$(PY) -m pytest -q -p no:cacheprovider tests/python/gpu
	@$(PY) bench/gpu.py $(BENCH) --json bench/results/$(shell date +%F)-gpu.json
	@$(PY) bench/gpu_graphs.py --json bench/results/$(shell date +%F)-gpu-graphs.json
	@$(PY) bench/gpu_kernels.py --json bench/results/$(shell date +%F)-gpu-kernels.json
	@$(PY) bench/gpu_decode.py --json bench/results/$(shell date +%F)-gpu-decode.json

gpu-sanitizers: build  ## the kernel tests under CUDA's memcheck and racecheck, on this machine's GPU
	@bash tools/gpu_sanitizers.sh $(BUILD)/tests/unit/gpu_kernel_test

golden: build  ## the golden text tests only
	@$(BUILD)/tests/unit/compile_test --gtest_filter='*Golden*:*golden*'

fuzz: build  ## random tensor programs against eager; FUZZ=n programs (default 300), SEED=s
	@CRESSET_FUZZ=$(or $(FUZZ),300) CRESSET_FUZZ_SEED=$(or $(SEED),0) $(PYTEST) -s tests/python/operators/test_fuzz.py

fmt:  ## format C++ and Python in place
	@clang-format-19 -i $(CXX_SOURCES)
	@$(PY) -m ruff format -q $(PY_SOURCES)
	@$(PY) -m ruff check -q --fix $(PY_SOURCES)

lint:  ## formatting, ruff, clang-tidy on the core where installed, layers, sizes
	@clang-format-19 --dry-run --Werror $(CXX_SOURCES)
	@$(PY) -m ruff format -q --check $(PY_SOURCES)
	@$(PY) -m ruff check -q $(PY_SOURCES)
	@$(PY) tools/check_layers.py
	@$(PY) tools/size.py --check
	@if command -v clang-tidy-19 >/dev/null && [ -f $(BUILD)/compile_commands.json ]; then \
	  clang-tidy-19 -quiet -p $(BUILD) $$(git ls-files 'src/cresset/*.cpp'); \
	else echo "clang-tidy-19 or $(BUILD)/compile_commands.json missing: skipped"; fi

size:  ## functions and files that have outgrown their limits, and the diff's size
	@$(PY) tools/size.py

wheel: setup-demo  ## an audited wheel in dist/, built against the torch in .venv; WHEEL='--matrix' for other environments
	@CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) $(PY) tools/wheels.py $(WHEEL)

clean:  ## remove build products (not .venv)
	rm -rf build dist python/cresset/_C.*.so

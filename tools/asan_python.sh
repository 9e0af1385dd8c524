#!/usr/bin/env bash
# Builds the Python module under the address and undefined-behaviour sanitizers in build/asan-python, and runs Python tests
# with it.
#
#   asan_python.sh [arguments of pytest]      default: the tests of operators, models, views and semantics
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python
cmake --preset asan-python >/dev/null
cmake --build --preset asan-python -j "${JOBS:-$(nproc)}"

# The package is the checkout's, but for the module.
package=build/asan-python/package
for file in python/cresset/*; do
  case "$file" in *.so | *__pycache__) ;; *) ln -sfn "$PWD/$file" "$package/cresset/" ;; esac
done

# libtorch is not instrumented: containers that it filled have no red zones, and vtables of it are not ours. Python's own
# allocations at its end are no leaks of ours. A CUDA driver wants the gap in the shadow memory.
export ASAN_OPTIONS=detect_leaks=0:protect_shadow_gap=0:detect_container_overflow=0:detect_odr_violation=0:alloc_dealloc_mismatch=0:${ASAN_OPTIONS:-}
export UBSAN_OPTIONS=print_stacktrace=1:${UBSAN_OPTIONS:-}
export PYTHONMALLOC=malloc PYTHONPATH="$PWD/$package" CRESSET_CACHE_DIR="$PWD/build/asan-python/cache"
# The runtime comes first in a process, and the C++ library with it: its functions that throw are intercepted.
preload="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libubsan.so) $(g++ -print-file-name=libstdc++.so)"
tests=("$@")
[ ${#tests[@]} -gt 0 ] || tests=(tests/python/semantics tests/python/operators/test_ops.py tests/python/models/test_models.py
  tests/python/autograd/test_gradients_ops.py tests/python/operators/test_operators_without_results.py)
jobs=()
"$python" -c 'import xdist' 2>/dev/null && jobs=(--numprocesses="${JOBS:-$(nproc)}" --dist=worksteal)
LD_PRELOAD="$preload" "$python" -m pytest -q -p no:cacheprovider "${jobs[@]}" "${tests[@]}"

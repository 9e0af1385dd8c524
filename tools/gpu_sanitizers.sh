#!/usr/bin/env bash
# gpu_sanitizers.sh TEST [SHARDS]: the kernel tests under CUDA's compute-sanitizer, memcheck and racecheck, in SHARDS
# processes of each at once (default 6). Prints the errors; the exit status is that of the worst process. The timed
# tests (GpuBench) are left out.
set -uo pipefail
test=$1; shards=${2:-6}
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer 2>/dev/null | head -n 1)
[ -n "$sanitizer" ] || { echo "compute-sanitizer is not installed (it comes with the CUDA toolkit)" >&2; exit 2; }
logs=$(mktemp -d); trap 'rm -rf "$logs"' EXIT
worst=0; declare -A running
for tool in memcheck racecheck; do
  for ((i = 0; i < shards; ++i)); do
    GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$i "$sanitizer" --tool "$tool" --error-exitcode 9 \
      "$test" --gtest_brief=1 --gtest_filter=-GpuBench.* >"$logs/$tool.$i" 2>&1 &
    running[$tool.$i]=$!
  done
done
for name in $(printf '%s\n' "${!running[@]}" | sort); do
  wait "${running[$name]}"; status=$?
  [ "$status" -gt "$worst" ] && worst=$status
  echo "$name: exit status $status, $(grep -aoE '\[  (PASSED|FAILED)  \] [0-9]+ tests?' "$logs/$name" | head -n 1)," \
    "$(grep -aE '(ERROR|RACECHECK) SUMMARY' "$logs/$name" | sed 's/=* *//')"
  grep -aE '^=========' "$logs/$name" | grep -avE 'SUMMARY|COMPUTE-SANITIZER' | head -n 20
done
exit "$worst"

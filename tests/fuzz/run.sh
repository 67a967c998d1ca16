#!/usr/bin/env bash
# Builds the fuzzers (clang, ASan, UBSan) and runs each on its corpus. What it finds is added to a scratch folder, not to corpus/.
#
#   tests/fuzz/run.sh [SECONDS] [NAME ...]     60 seconds each, of what strangers' bytes reach first; `all` for every fuzzer
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds="${1:-60}"
shift || true
names=("$@")
[ ${#names[@]} -eq 0 ] && names=(http_request sse canonical_json key store_entry config dialect)
[ "${names[0]}" = all ] && mapfile -t names < <(basename -s _fuzz.cpp -a tests/fuzz/*_fuzz.cpp)

cmake --preset fuzz >/dev/null
cmake --build --preset fuzz -j "$(nproc)" -t "${names[@]/%/_fuzz}" >/dev/null

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# A crash leaves its input beside the log; nproc fuzzers run at a time.
fuzz() {
  mkdir -p "$scratch/$1"
  local corpus=()
  [ -d "tests/fuzz/corpus/$1" ] && corpus=("tests/fuzz/corpus/$1")
  "build/fuzz/tests/$1_fuzz" "$scratch/$1" "${corpus[@]}" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 \
    -artifact_prefix="$scratch/$1-" -print_final_stats=1 >"$scratch/$1.log" 2>&1 || {
    tail -n 40 "$scratch/$1.log"
    for input in "$scratch/$1"-*; do [ -f "$input" ] && { echo "input:"; base64 "$input" | head -n 50; }; done
    return 1
  }
  awk -v name="$1" '/number_of_executed_units/ {print name ": " $2 " inputs"}' "$scratch/$1.log"
}
failed=0
while [ ${#names[@]} -gt 0 ]; do
  jobs=()
  for name in "${names[@]:0:$(nproc)}"; do
    fuzz "$name" &
    jobs+=($!)
  done
  for job in "${jobs[@]}"; do wait "$job" || failed=1; done
  names=("${names[@]:$(nproc)}")
done
exit "$failed"

#!/usr/bin/env bash
# Installs what the tests need, builds in several ways and runs every test.
#
#   ./tests/run.sh              all of it: GCC, ASan+UBSan, clang, a minute of each fuzzer
#   ./tests/run.sh ci|asan|clang|tsan|fuzz ...   only these
#
# Debian alone is enough. Tests that need PyPI, npm or the default model say so when they skip.
set -euo pipefail
cd "$(dirname "$0")/.."

deploy/install_packages.sh --tests

# One compiler cache for every clone of the repository.
export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1

presets=("$@")
[ ${#presets[@]} -eq 0 ] && presets=(ci asan clang fuzz)
jobs=$(nproc)
failed=()
log=$(mktemp)
trap 'rm -f "$log"' EXIT

step() {  # name, command...
  local name="$1" from=$SECONDS
  shift
  printf '== %s\n' "$name"
  if ! "$@" >"$log" 2>&1; then
    tail -n 80 "$log" >&2
    printf '   FAILED: %s\n' "$name" >&2
    failed+=("$name")
    return 1
  fi
  tail -n 7 "$log" | sed 's/^/   /'
  printf '   %d s\n' $((SECONDS - from))
}

for lint in tests/lint/*.py; do step "$(basename "$lint")" /usr/bin/python3 "$lint" || true; done
step "clang-format" tests/lint/format.sh || true

# Warnings are errors in the plain builds only: GCC says itself that sanitizers make it warn falsely.
for preset in "${presets[@]}"; do
  if [ "$preset" = fuzz ]; then
    step "fuzz: what strangers' bytes reach first" tests/fuzz/run.sh "${FUZZ_SECONDS:-60}" || true
    continue
  fi
  step "$preset: configure" cmake --preset "$preset" || break
  step "$preset: build" cmake --build --preset "$preset" -j "$jobs" || break
  step "$preset: unit tests" ctest --preset "$preset" -j "$jobs" --output-on-failure || break
  # Sanitized and plain programs meet the same scripted scenarios; real clients meet the first build.
  clients=()
  [ "$preset" = "${presets[0]}" ] && clients=(--clients)
  printf '== %s: integration tests\n' "$preset"
  # The scenarios are the same bytes whoever compiled: clang's build meets the proxy's only.
  only=()
  [ "$preset" = clang ] && only=(-k test_proxy.)
  /usr/bin/python3 tests/integration/run.py --build "build/$preset" "${clients[@]}" "${only[@]}" || failed+=("$preset: integration tests")
done

if [ ${#failed[@]} -gt 0 ]; then
  printf '\nFAILED: %s\n' "${failed[@]}" >&2
  exit 1
fi
printf '\nAll tests passed (%s).\n' "${presets[*]}"

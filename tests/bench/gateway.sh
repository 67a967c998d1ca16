#!/usr/bin/env bash
# Cache hits per second with latency percentiles, and what proxying adds to a direct call. Run by hand:
# client, gateway and mock upstream share the machine, so only ratios within one run mean anything.
#
#   tests/bench/gateway.sh [BUILD_FOLDER]      (default build/bench; needs wrk and curl)
set -euo pipefail
cd "$(dirname "$0")/../.."
build="${1:-build/bench}"
seconds="${SECONDS_EACH:-5}" port="${PORT:-18080}"
command -v wrk >/dev/null || { echo "error: wrk is not installed (apt-get install wrk)" >&2; exit 1; }

work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; wait 2>/dev/null; rm -rf "$work"' EXIT

"$build/tests/fixpoint_mock_upstream" --port 0 >"$work/mock" &
until [ -s "$work/mock" ]; do sleep 0.05; done
upstream=$(cat "$work/mock")
cat >"$work/config.yaml" <<YAML
server: {listen: "127.0.0.1:$port"}
access_log: {level: warning}
data_dir: $work
upstreams: [{name: mock, base_url: "$upstream", api_key: none}]
routes: [{model: "*", upstream: mock}]
YAML
"$build/gateway/fixpoint" serve --config "$work/config.yaml" 2>"$work/log" &
gateway_pid=$!
gateway="http://127.0.0.1:$port/v1"
until curl -sf -o /dev/null "http://127.0.0.1:$port/readyz"; do
  kill -0 "$gateway_pid" || { cat "$work/log" >&2; exit 1; }
  sleep 0.05
done

cpu_us() { awk -v hz="$(getconf CLK_TCK)" '{print ($14 + $15) * 1000000 / hz}' "/proc/$gateway_pid/stat"; }

# name, url, connections, SIZE, TEMPERATURE, STREAM
measure() {
  local before after out requests
  before=$(cpu_us)
  out=$(SIZE="$4" TEMPERATURE="$5" STREAM="$6" wrk -t1 -c"$3" -d"${seconds}s" --latency -s tests/bench/post.lua "$2/chat/completions")
  after=$(cpu_us)
  requests=$(awk '/requests in/ {print $1}' <<<"$out")
  awk -v name="$1" -v c="$3" -v size="$4" -v cpu="$((${after%.*} - ${before%.*}))" -v n="$requests" '
    $1 == "50%" {p50 = $2} $1 == "90%" {p90 = $2} $1 == "99%" {p99 = $2}
    /Requests\/sec/ {rps = $2} /Non-2xx/ {bad = $NF}
    END {printf "| %-12s | %5d | %3d | %8.0f | %9s | %9s | %9s | %6.1f |%s\n", name, size, c, rps, p50, p90, p99, cpu / n, bad ? " NOT ALL 200: " bad : ""}
  ' <<<"$out"
}

echo "| what         | bytes |   c |      RPS |       p50 |       p90 |       p99 | CPU us of the gateway per request |"
echo "|---|---|---|---|---|---|---|---|"
for size in 1024 16384; do
  for connections in 1 64; do
    measure direct "$upstream" "$connections" "$size" 1 false
    measure proxy "$gateway" "$connections" "$size" 1 false
    measure hit "$gateway" "$connections" "$size" 0 false
    measure hit-stream "$gateway" "$connections" "$size" 0 true
  done
done

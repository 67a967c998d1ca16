#!/usr/bin/env bash
# Cache hits and proxying against nginx, all in one run: the same client, payloads and mock upstream, access logs off.
# Run by hand: client, contenders and mock share the machine, so only ratios within one run mean anything. The CPU time
# per request is steadier than wall time.
#
#   tests/bench/gateway.sh [BUILD_FOLDER]      (default build/bench; needs wrk, curl and nginx)
#   SECONDS_EACH=5 ROUNDS=3                    medians of so many rounds of so many seconds
set -euo pipefail
cd "$(dirname "$0")/../.."
build="${1:-build/bench}"
seconds="${SECONDS_EACH:-3}" rounds="${ROUNDS:-3}" port="${PORT:-18080}" threads="${THREADS:-2}"
for tool in wrk curl nginx; do
  command -v "$tool" >/dev/null || { echo "error: $tool is not installed (apt-get install $tool)" >&2; exit 1; }
done

work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; wait 2>/dev/null; rm -rf "$work"' EXIT

"$build/tests/fixpoint_mock_upstream" --port 0 >"$work/mock" &
until [ -s "$work/mock" ]; do sleep 0.05; done
upstream=$(cat "$work/mock")

cat >"$work/config.yaml" <<YAML
server: {listen: "127.0.0.1:$port", threads: $threads}
access_log: {level: warning}
data_dir: $work
upstreams: [{name: mock, base_url: "$upstream", api_key: none}]
routes: [{model: "*", upstream: mock}]
YAML
"$build/gateway/fixpoint" serve --config "$work/config.yaml" 2>"$work/log" &
fixpoint_pid=$!
fixpoint="http://127.0.0.1:$port/v1"

# The body is the cache key's larger part, so it has to stay in memory.
cat >"$work/nginx.conf" <<NGINX
daemon off; user $(id -un); worker_processes $threads; pid $work/nginx.pid; error_log $work/nginx.log;
events { worker_connections 1024; }
http {
  access_log off; client_body_buffer_size 64k; client_body_temp_path $work/body; proxy_temp_path $work/temp;
  fastcgi_temp_path $work/f; uwsgi_temp_path $work/u; scgi_temp_path $work/s; keepalive_requests 10000000;
  proxy_cache_path $work/cache keys_zone=answers:16m;
  upstream mock { server ${upstream#http://}; keepalive 128; keepalive_requests 10000000; }
  server {
    listen 127.0.0.1:$((port + 1)); tcp_nodelay on;
    proxy_http_version 1.1; proxy_set_header Connection "";
    location /v1/ { proxy_buffering off; proxy_pass http://mock/v1/; }
    location /cached/ {
      proxy_pass http://mock/v1/; proxy_cache answers; proxy_cache_methods POST; proxy_cache_valid 200 1h;
      proxy_cache_key "\$request_uri \$http_authorization \$request_body";
    }
  }
}
NGINX
sed -i "s#server ${upstream#http://};#server $(sed 's#.*//##; s#/.*##' <<<"$upstream");#" "$work/nginx.conf"
nginx -c "$work/nginx.conf" &
nginx_pid=$!
nginx_url="http://127.0.0.1:$((port + 1))"
until curl -sf -o /dev/null "http://127.0.0.1:$port/readyz"; do
  kill -0 "$fixpoint_pid" || { cat "$work/log" >&2; exit 1; }
  sleep 0.05
done
until curl -s -o /dev/null "$nginx_url/"; do sleep 0.05; done

# CPU time of a process and its children, in microseconds.
cpu_us() {
  local pid total=0
  for pid in $1 $(pgrep -P "$1" || true); do
    total=$(awk -v hz="$(getconf CLK_TCK)" -v t="$total" '{printf "%d", t + ($14 + $15) * 1000000 / hz}' "/proc/$pid/stat")
  done
  echo "$total"
}

# name, url, pid (0: none), connections, SIZE, TEMPERATURE, STREAM, MODEL: one round, one line "rps p50 p99 cpu bad".
round() {
  local before=0 after=0 out
  [ "$3" = 0 ] || before=$(cpu_us "$3")
  out=$(SIZE="$5" TEMPERATURE="$6" STREAM="$7" MODEL="$8" wrk -t1 -c"$4" -d"${seconds}s" --latency -s tests/bench/post.lua "$2/chat/completions")
  [ "$3" = 0 ] || after=$(cpu_us "$3")
  awk -v cpu="$((after - before))" '
    function us(t) { return t ~ /us$/ ? t + 0 : t ~ /ms$/ ? t * 1000 : t * 1000000 }
    $1 == "50%" {p50 = us($2)} $1 == "99%" {p99 = us($2)} /requests in/ {n = $1}
    /Requests\/sec/ {rps = $2} /Non-2xx/ {bad = $NF}
    END {printf "%.0f %.0f %.0f %.1f %d\n", rps, p50, p99, cpu / n, bad}' <<<"$out"
}
median() { sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }

measure() {
  local lines="" i
  for ((i = 0; i < rounds; i++)); do lines+="$(round "$@")"$'\n'; done
  column() { awk -v c="$1" 'NF {print $c}' <<<"$lines" | median; }
  local note=""
  [ "$(column 5)" = 0 ] || note=" NOT ALL 200"
  printf '| %-22s | %5d | %3d | %7s | %7s | %7s | %6s |%s\n' "$1" "$5" "$4" "$(column 1)" "$(column 2)" "$(column 3)" "$(column 4)" "$note"
}

echo "| what | bytes | c | requests/s | p50 us | p99 us | CPU us each |"
echo "|---|---|---|---|---|---|---|"
for size in 1024 16384; do
  for c in 1 64; do
    measure direct "$upstream" 0 "$c" "$size" 1 false mock
    measure "proxy nginx" "$nginx_url/v1" "$nginx_pid" "$c" "$size" 1 false mock
    measure "proxy fixpoint" "$fixpoint" "$fixpoint_pid" "$c" "$size" 1 false mock
    measure "hit nginx" "$nginx_url/cached" "$nginx_pid" "$c" "$size" 0 false mock
    measure "hit fixpoint" "$fixpoint" "$fixpoint_pid" "$c" "$size" 0 false mock
    measure "stream direct" "$upstream" 0 "$c" "$size" 1 true mock-stream-64-0
    measure "stream nginx" "$nginx_url/v1" "$nginx_pid" "$c" "$size" 1 true mock-stream-64-0
    measure "stream fixpoint" "$fixpoint" "$fixpoint_pid" "$c" "$size" 1 true mock-stream-64-0
    measure "hit stream nginx" "$nginx_url/cached" "$nginx_pid" "$c" "$size" 0 true mock-stream-64-0
    measure "hit stream fixpoint" "$fixpoint" "$fixpoint_pid" "$c" "$size" 0 true mock-stream-64-0
  done
done
echo
printf 'resident memory, MiB: fixpoint %s, nginx %s\n' "$(awk '/VmRSS/ {printf "%.0f", $2 / 1024}' "/proc/$fixpoint_pid/status")" \
  "$(for pid in $nginx_pid $(pgrep -P "$nginx_pid"); do awk '/VmRSS/ {print $2}' "/proc/$pid/status"; done | awk '{s += $1} END {printf "%.0f", s / 1024}')"

#!/usr/bin/env bash
# From a fresh Debian 12 to a running gateway: installs packages, builds, fetches the default model,
# writes a configuration, starts the gateway, asks it one question twice and keeps serving.
# Safe to run again: what is there is kept.
#
#   ./deploy/quickstart.sh [--port N] [--once]     --once: stop after the demonstration
set -euo pipefail
cd "$(dirname "$0")/.."

port=8080
once=false
while [ $# -gt 0 ]; do
  case "$1" in
    --port) port="${2:?--port needs a number}"; shift 2 ;;
    --once) once=true; shift ;;
    *) sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done

say() { printf '\n== %s\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

say "Packages"
deploy/install_packages.sh || die "the packages could not be installed"

say "Building (a few minutes the first time)"
mkdir -p build
if ! { cmake --preset release && cmake --build --preset release; } >build/quickstart.log 2>&1; then
  tail -n 30 build/quickstart.log >&2
  die "the build failed; everything it said is in build/quickstart.log"
fi
fixpoint="$PWD/build/release/gateway/fixpoint"

say "Model smollm2-135m (SmolLM2-135M-Instruct, Apache-2.0, 98 MB)"
model=smollm2-135m
example=deploy/config.local.yaml
"$fixpoint" model pull smollm2-135m || {
  model=fixpoint-tiny
  example=deploy/config.proxy.yaml
  cat >&2 <<TXT
The model could not be fetched, so fixpoint-tiny answers: the small model that is part of this repository.
To have the larger one later: bring SmolLM2-135M-Instruct.Q4_1.gguf to this machine, then run
  $fixpoint model pull smollm2-135m --from FILE
and this script again.
TXT
}

config="${XDG_CONFIG_HOME:-$HOME/.config}/fixpoint/config.yaml"
say "Configuration $config"
mkdir -p "$(dirname "$config")"
if [ -e "$config" ] && ! grep -q "$model" "$config"; then
  echo "it has no $model and stays as it is; this run uses its own file beside it"
  config="$(dirname "$config")/quickstart.yaml"
  cp "$example" "$config"
elif [ -e "$config" ]; then
  echo "kept as it is"
else
  cp "$example" "$config"
fi
"$fixpoint" check-config --config "$config" || die "the configuration is not valid: see above"

say "Starting fixpoint serve on 127.0.0.1:$port"
url="http://127.0.0.1:$port"
if curl -s -o /dev/null --max-time 2 "$url/healthz"; then
  die "something already listens on port $port; stop it, or choose another with --port"
fi
log="$PWD/build/gateway.log"
"$fixpoint" serve --config "$config" --listen "127.0.0.1:$port" 2>"$log" &
server=$!
trap 'kill "$server" 2>/dev/null; wait "$server" 2>/dev/null' EXIT
for _ in $(seq 120); do
  kill -0 "$server" 2>/dev/null || { tail -n 5 "$log" >&2; die "the gateway stopped; its last lines above say why"; }
  [ "$(curl -s -o /dev/null -w '%{http_code}' --max-time 2 "$url/readyz")" = 200 ] && break
  sleep 0.5
done
[ "$(curl -s -o /dev/null -w '%{http_code}' --max-time 2 "$url/readyz")" = 200 ] || die "the gateway was not ready within a minute"

question='{"model": "'"$model"'", "temperature": 0, "messages": [{"role": "user", "content": "What is the capital of France?"}]'
headers=$(mktemp)
show='import json, sys
for line in sys.stdin:
    if not line.startswith("data: ") or line.startswith("data: [DONE]"): continue
    for choice in json.loads(line[6:])["choices"]:
        print(choice["delta"].get("content", ""), end="", flush=True)
print()'

say "One question, streamed: What is the capital of France?"
curl -sSN -D "$headers" "$url/v1/chat/completions" -H 'Content-Type: application/json' -H 'x-fixpoint-repro: required' \
  -d "$question, \"stream\": true}" | python3 -u -c "$show"
grep -i '^cache-status' "$headers" || die "no answer came; see $log"

say "The same question again, plain: answered from the cache"
curl -sS -D "$headers" "$url/v1/chat/completions" -H 'Content-Type: application/json' -H 'x-fixpoint-repro: required' \
  -d "$question}" | python3 -c 'import json, sys; print(json.load(sys.stdin)["choices"][0]["message"]["content"])'
grep -i -e '^cache-status' -e '^x-fixpoint' "$headers" || die "no answer came; see $log"
generation=$(sed -n 's/^x-fixpoint-generation: *//Ip' "$headers" | tr -d '\r')
rm -f "$headers"

say "The thinnest top-2 margins of that answer: where it came closest to going another way"
"$fixpoint" log margins "$generation" --config "$config" -n 5 || die "the token log has no such generation"

cat <<TXT

== Point a client at it
   export OPENAI_BASE_URL=$url/v1 OPENAI_API_KEY=unused
   configuration: $config
   the gateway's log: $log
TXT
[ "$once" = true ] && exit 0
echo "   serving; Ctrl-C stops"
trap 'kill "$server" 2>/dev/null' INT TERM
wait "$server"

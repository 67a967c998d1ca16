#!/usr/bin/env bash
# Installs the Debian packages that Fixpoint is built from (and tested with, given --tests).
# Does nothing when they are all there. Runs as root or with sudo.
set -euo pipefail

build=(g++ cmake ninja-build ccache mold pkg-config
  libboost1.81-dev libssl-dev libsqlite3-dev nlohmann-json3-dev libyaml-cpp-dev
  libcli11-dev libpcre2-dev libutf8proc-dev libhwy-dev libexpected-dev libzstd-dev libhiredis-dev
  ca-certificates curl python3 python3-pip)
tests=(libgtest-dev libgmock-dev librapidcheck-dev clang-14 libclang-rt-14-dev clang-format-19
  python3-jinja2 python3-venv redis-server git)

packages=("${build[@]}")
[ "${1:-}" = --tests ] && packages+=("${tests[@]}")

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || {
    echo "error: these packages are missing, and installing them needs root or sudo: ${missing[*]}" >&2
    exit 1
  }
  as_root=(sudo)
fi
echo "== installing with apt: ${missing[*]}"
"${as_root[@]}" apt-get update -qq || echo "warning: apt-get update failed; trying the lists that are there" >&2
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null || {
  echo "error: apt could not install: ${missing[*]} (Fixpoint is built on Debian 12)" >&2
  exit 1
}

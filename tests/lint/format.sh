#!/usr/bin/env bash
# Every C++ file is laid out as .clang-format says.
set -euo pipefail
cd "$(dirname "$0")/../.."
git ls-files '*.cpp' '*.hpp' | xargs -r clang-format-19 --dry-run -Werror
echo "all files are formatted"

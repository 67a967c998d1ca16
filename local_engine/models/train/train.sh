#!/bin/sh
# Retrains fixpoint-tiny on one GPU: data, tokenizer, training, export, evaluation, golden file, check with transformers.
# usage: train.sh OUT [train.py arguments]     OUT/tiny is the model; OUT/*.json are the results.
set -eu
out=${1:?usage: train.sh OUT [--steps N] [--seed N]}
shift
cd "$(dirname "$0")"
python3 train.py --out "$out/tiny" "$@"
python3 golden.py --model "$out/tiny" --out "$out/greedy.json"
python3 check_transformers.py --model "$out/tiny" --golden "$out/greedy.json"
python3 evaluate.py --model "$out/tiny" --out "$out/results.json"
size=$(cat "$out"/tiny/* | wc -c)
echo "model folder: $size bytes"
[ "$size" -le 8000000 ] || { echo "the model folder is larger than 8 MB" >&2; exit 1; }

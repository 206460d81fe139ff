#!/usr/bin/env bash
# On a fresh machine with Python 3.11 or newer, installs into .venv and builds a dataset from the
# small logs in data/.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/venv.sh
echo "Installing into .venv, once: under a minute with uv, two to four minutes with pip …"
# Some platforms have no wheels for the extra `fast`; without it, builds take longer.
install_extra fast,capture || {
  echo "The extras cannot be installed here: installing without them …"
  install_extra ""
}
out="${1:-out/quickstart}"
.venv/bin/builder build data -o "$out"
.venv/bin/builder verify "$out"
cat <<TEXT

Look at:
  $out/data/train-00000-of-00001.jsonl   the training samples
  $out/report.html                       the dataset at a glance, in a browser
  $out/rejects.jsonl                     what was not used, and why
  $out/README.md                         the dataset card
Try:
  .venv/bin/builder view $out
  .venv/bin/builder inspect data/claude-code/parallel.jsonl
  .venv/bin/builder build ~/.claude/projects -o out/mine
TEXT

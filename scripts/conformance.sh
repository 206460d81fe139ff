#!/usr/bin/env bash
# Compares with other implementations, on any machine with Python 3.11 or newer: TRL's own trainer
# with a tiny random model on the CPU, PrimeIntellect's renderers, and every published template of
# the family. Creates .venv-conformance (some gigabytes: torch) and .cache/packages (140 MB).
set -euo pipefail
cd "$(dirname "$0")/.."
VENV="${VENV:-.venv-conformance}"
. scripts/venv.sh
install_extra test,trl,conformance
export BUILDER_CONFORMANCE=1
exec "$VENV/bin/python" -m pytest -p no:xdist \
  tests/trainers tests/qwen3/test_renderers.py tests/verify/test_family.py "$@"

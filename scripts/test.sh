#!/usr/bin/env bash
# All tests, on a fresh machine with Python 3.11 or newer: makes .venv if missing, installs, runs.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/venv.sh
install_extra test
exec .venv/bin/python -m pytest -n "${BUILDER_TEST_WORKERS:-2}" "$@"

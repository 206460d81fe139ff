#!/usr/bin/env bash
# All tests, on a fresh machine with Python 3.11 or newer: makes .venv if missing, installs, runs.
# With --quick first, without the tests that are marked slow. Other arguments are pytest's.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/venv.sh
quick=()
if [ "${1:-}" = --quick ]; then
  shift
  quick=(-m "not slow")
fi
if [ -z "${quick[*]-}" ] || [ ! -x .venv/bin/pytest ]; then
  install_extra test
fi
# The tests start many processes: compile once what all of them import, whatever the environment says.
unset PYTHONDONTWRITEBYTECODE
.venv/bin/python -m compileall -q -j 0 builder
# worksteal: each worker begins with a run of neighbours, which share what a module's fixtures start.
exec .venv/bin/python -m pytest -n "${BUILDER_TEST_WORKERS:-2}" --dist worksteal \
  ${quick[@]+"${quick[@]}"} "$@"

#!/usr/bin/env bash
# Runs all tests, on a fresh machine with Python 3.11 or newer: creates .venv if missing and installs.
# --quick as the first argument skips tests marked slow and draws fewer random examples. Other
# arguments are passed to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/venv.sh
quick=()
if [ "${1:-}" = --quick ]; then
  shift
  quick=(-m "not slow")
  export HYPOTHESIS_PROFILE="${HYPOTHESIS_PROFILE:-quick}"
fi
if [ -z "${quick[*]-}" ] || [ ! -x .venv/bin/pytest ]; then
  install_extra test
fi
# The tests start many processes: compile once what they all import, whatever the environment says.
unset PYTHONDONTWRITEBYTECODE
.venv/bin/python -m compileall -q -j 0 builder
# Two workers: CI has two cores, and a third worker makes the tests take longer.
# worksteal: each worker starts with consecutive tests, which share module-scoped fixtures.
exec .venv/bin/python -m pytest -n "${BUILDER_TEST_WORKERS:-2}" --dist worksteal \
  ${quick[@]+"${quick[@]}"} "$@"

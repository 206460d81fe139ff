#!/usr/bin/env bash
# Compares with other implementations, on any machine with Python 3.11 or newer: TRL's own trainer
# with a tiny random model on the CPU, PrimeIntellect's renderers, llama.cpp's Jinja, the parsers of
# SGLang and vLLM, xgrammar, canitoolcall's fixtures, and every published template, on the
# conversations in LOGS (default: data/). Creates .venv-conformance (some gigabytes: torch) and
# .cache/packages (500 MB: vLLM's wheel, whose parsers are read from it, is 340).
set -euo pipefail
cd "$(dirname "$0")/.."
VENV="${VENV:-.venv-conformance}"
. scripts/venv.sh
install_extra test,trl,conformance
# It pins an older transformers and xgrammar, so only what its parsers import is installed with it.
"$VENV/bin/python" -m pip install -q --no-deps llm-router-utils
"$VENV/bin/python" -m pip install -q openai partial-json-parser msgspec pydantic mistral-common xgrammar
export BUILDER_CONFORMANCE=all
export BUILDER_LOADERS="${BUILDER_LOADERS:-$PWD/.venv-loaders}" # the other trainers
"$VENV/bin/python" scripts/close_loop.py
PYTHONPATH=. "$VENV/bin/python" scripts/templates.py "${LOGS:-data}" --count "${COUNT:-300}"
exec "$VENV/bin/python" -m pytest -p no:xdist tests/trainers tests/verify/test_family.py \
  tests/qwen3/test_renderers.py tests/qwen3/test_templates.py tests/qwen3/test_canitoolcall.py \
  tests/verify/test_witnesses.py tests/verify/test_vllm_parsers.py "$@"

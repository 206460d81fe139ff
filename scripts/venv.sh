# Sourced by the other scripts: creates $VENV (.venv) and installs this project into it.
VENV="${VENV:-.venv}"
if [ ! -x "$VENV/bin/python" ]; then
  python=""
  for candidate in python3.14 python3.13 python3.12 python3.11 python3 python; do
    if command -v "$candidate" >/dev/null 2>&1 &&
      "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      python="$candidate"
      break
    fi
  done
  if [ -z "$python" ]; then
    echo "Python 3.11 or newer is needed" >&2
    exit 1
  fi
  "$python" -m venv "$VENV"
fi

# install_extra NAMES: the project, editable, with the named extras. Uses uv where it is present, which
# is several times faster than pip. Prints the seconds that have passed, and the log if it fails.
install_extra() {
  local spec="." log started=$SECONDS install
  [ -n "$1" ] && spec=".[$1]"
  log="$(mktemp)"
  if command -v uv >/dev/null 2>&1; then
    install=(uv pip install --python "$VENV/bin/python" -e "$spec")
  else
    install=("$VENV/bin/python" -m pip install --disable-pip-version-check -e "$spec")
  fi
  "${install[@]}" >"$log" 2>&1 &
  local job=$! code=0
  while kill -0 "$job" 2>/dev/null; do
    if [ -t 2 ]; then
      printf '\r%4d s  %.70s\033[K' "$((SECONDS - started))" "$(tail -n 1 "$log" | tr -d '\r')" >&2
    elif [ "$(((SECONDS - started) % 20))" = 19 ]; then
      printf '%4d s  installing\n' "$((SECONDS - started))" >&2
    fi
    sleep 1
  done
  wait "$job" || code=$?
  [ -t 2 ] && printf '\r\033[K' >&2
  [ "$code" = 0 ] && echo "Installed in $((SECONDS - started)) s." >&2 || cat "$log" >&2
  rm -f "$log"
  return "$code"
}

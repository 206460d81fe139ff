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

# install_extra NAMES: the project, editable, with the named extras; quiet unless it fails.
install_extra() {
  local spec="."
  [ -n "$1" ] && spec=".[$1]"
  local log
  log="$(mktemp)"
  if ! "$VENV/bin/python" -m pip install --disable-pip-version-check -q -e "$spec" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
}

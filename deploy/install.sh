#!/bin/sh
# Make a virtual environment with this project in it: install.sh VENV EXTRAS [PYTHON]. Quick when nothing changed.
set -eu
venv=$1 extras=$2 python=${3:-}

# The tree's place counts too: an editable install and the scripts in bin/ hold absolute paths.
state=$({ pwd; echo "$extras"; cat pyproject.toml constraints.txt; } | cksum | tr ' ' '-')
stamp=$venv/.installed-$state
if [ -f "$stamp" ] && "$venv/bin/python" -c '' 2>/dev/null; then exit 0; fi

apt=
if command -v apt-get >/dev/null 2>&1; then
    if [ "$(id -u)" = 0 ]; then
        apt="apt-get"
    elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
        apt="sudo -n apt-get"
    fi
fi

# By running it: a name on PATH may be a shim of a Python that is not there.
runs() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }
can_venv() { "$1" -c 'import venv, ensurepip' >/dev/null 2>&1; }

choose() {
    for name in python3.13 python3.12 python3.11 python3; do
        if runs "$name" && "$1" "$name"; then python=$name; return; fi
    done
}

if [ -n "$python" ]; then
    runs "$python" || { echo "PYTHON=$python does not run, or is older than 3.11" >&2; exit 1; }
else
    choose can_venv
    [ -n "$python" ] || choose runs
fi
if [ -z "$python" ] || ! can_venv "$python"; then
    case $python in
        "" | python3) wanted="python3 python3-venv" ;;
        *) wanted="$(basename "$python")-venv" ;;
    esac
    if [ -z "$apt" ]; then
        echo "No Python 3.11 or newer that can make a virtual environment. As root: apt-get install $wanted" >&2
        exit 1
    fi
    echo "Installing $wanted (apt) ..."
    log=$(mktemp)
    # Several words are meant:
    # shellcheck disable=SC2086
    { $apt update -q && DEBIAN_FRONTEND=noninteractive $apt install -y -q -o DPkg::Lock::Timeout=400 \
        --no-install-recommends $wanted; } >"$log" 2>&1 || { tail -n 20 "$log" >&2; exit 1; }
    rm -f "$log"
    python=${python:-python3}
    runs "$python" && can_venv "$python" || {
        echo "This system's Python is too old: 3.11 or newer is needed. Give one: make install PYTHON=..." >&2
        exit 1
    }
fi

version=$("$python" -c 'import platform; print(platform.python_version())')
echo "Making $venv with Python $version ..."
[ -x "$venv/bin/python" ] && "$venv/bin/python" -c "import platform; assert platform.python_version() == '$version'" \
    2>/dev/null || "$python" -m venv --clear "$venv"
log=$venv/install.log
packages=$(grep -c '==' constraints.txt)
echo "Installing up to $packages packages into it, a minute or two (log: $log) ..."
# In the environment, so that what builds the package is held to the same versions.
PIP_CONSTRAINT=$PWD/constraints.txt PIP_BUILD_CONSTRAINT=$PWD/constraints.txt \
    "$venv/bin/python" -m pip install --disable-pip-version-check --no-input --progress-bar off \
    -e ".[$extras]" >"$log" 2>&1 &
pip=$!
trap 'kill $pip 2>/dev/null || true; exit 130' INT TERM
seconds=0
while kill -0 "$pip" 2>/dev/null; do
    sleep 1
    seconds=$((seconds + 1))
    [ $((seconds % 15)) -ne 0 ] || echo "  $seconds s: $(tail -n 1 "$log" | cut -c 1-80)"
done
if ! wait "$pip"; then
    tail -n 30 "$log" >&2
    echo "Installing failed: the whole log is $log" >&2
    exit 1
fi
rm -f "$venv"/.installed-*
: >"$stamp"
echo "Installed in $seconds s."

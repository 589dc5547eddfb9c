#!/bin/sh
# The unit and contract tests on Python 3.13, in a virtual environment of their own; says so where there is no 3.13.
set -eu
python=
for candidate in python3.13 "$HOME"/.pyenv/versions/3.13*/bin/python3.13; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 13))' 2>/dev/null; then
        python=$candidate
        break
    fi
done
[ -n "$python" ] || { echo "No Python 3.13 here: this leg is left out."; exit 0; }
sh "$(dirname "$0")/install.sh" .venv-313 service,camoufox,postgres,otel,dev "$python"
.venv-313/bin/python -m pytest -q -m "not soak and not measured" -n 3 --dist loadfile tests/unit tests/contract
echo "Passed on $(.venv-313/bin/python --version). Next: commit."

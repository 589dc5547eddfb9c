#!/bin/sh
# Hold the coverage of the last `make test` against its thresholds: coverage.sh PYTHON. Nothing to say without one.
set -eu
python=$1
[ -f .coverage ] || { echo "coverage: not measured yet (make test does)"; exit 0; }
newer=$(find arachne_pool api -name '*.py' -newer .coverage | head -n 1)
[ -z "$newer" ] || { echo "coverage: $newer changed since the last make test, so it says nothing"; exit 0; }
"$python" -m coverage report --skip-covered
# The heart is pure: every line and branch of it can be reached by a test.
"$python" -m coverage report --skip-covered --fail-under=100 --include='arachne_pool/slot.py,arachne_pool/ledger.py'

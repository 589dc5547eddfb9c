#!/bin/sh
# Run the tests: first, alone, those that compare times; then the rest side by side. test.sh PYTHON WORKERS COVERAGE [ARGS]
set -eu
python=$1 workers=$2 coverage=$3
shift 3

# pytest's 5 is "no test was chosen", which is no failure for one part of two.
part() { "$python" -m pytest "$@" || { code=$?; [ "$code" = 5 ] || exit "$code"; }; }

if [ $# -gt 0 ]; then
    # The options of coverage are several words
    # shellcheck disable=SC2086
    exec "$python" -m pytest -m "not soak" $coverage "$@"
fi
rm -f .coverage .coverage.*
echo "Tests that measure, one at a time:"
part -q -m "measured and not soak"
echo "All others, $workers at a time:"
# shellcheck disable=SC2086
"$python" -m pytest -q -m "not measured and not soak" -n "$workers" --dist loadfile $coverage
[ -z "$coverage" ] || sh "$(dirname "$0")/coverage.sh" "$python"

#!/bin/sh
# All checks that need no browser. Every one runs, so that one go shows all there is to mend.
set -u
failed=
look() {
    name=$1
    shift
    if out=$("$@" 2>&1); then
        echo "ok    $name"
    else
        failed="$failed $name"
        printf '%s\nFAIL  %s: %s\n' "$out" "$name" "$*"
    fi
}
look format ruff format --check .
look style ruff check .
look types mypy
look imports lint-imports
look loops python -m arachne_pool.lint arachne_pool api
look dependencies deptry .
look coverage sh deploy/coverage.sh python
[ -z "$failed" ] || { echo "Not right yet:$failed (make format mends form and order)" >&2; exit 1; }

#!/bin/sh
# Firefox stands in for Camoufox in the tests, and Xvfb shows it: install both where we may, say so where not.
set -eu
wanted=
command -v firefox-esr >/dev/null 2>&1 || wanted="firefox-esr"
command -v Xvfb >/dev/null 2>&1 || wanted="$wanted xvfb xauth"
[ -n "$wanted" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Installing $wanted (apt) ..."
    log=$(mktemp)
    # Several words are meant:
    # shellcheck disable=SC2086
    { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q -o DPkg::Lock::Timeout=400 \
        --no-install-recommends $wanted; } >"$log" 2>&1 || { tail -n 20 "$log" >&2; exit 1; }
    rm -f "$log"
else
    echo "Not installed, so the tests that need it are skipped: $wanted (as root: apt-get install $wanted)"
fi

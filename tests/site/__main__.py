"""Run the site by itself: `python -m tests.site --host 127.0.0.1 --port 8001`."""

from __future__ import annotations

import argparse
import signal
import sys

from tests.site.server import Site

ENDS = {signal.SIGINT, signal.SIGTERM}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.site", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", default=8001, type=int, help="0 takes a free one (default: %(default)s)")
    given = parser.parse_args()
    # Blocked before any thread starts, so that no signal is lost and only sigwait gets them.
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)
    site = Site(given.host, given.port)
    try:
        site.start()
    except (OSError, OverflowError) as error:
        print(f"can't listen on {given.host}:{given.port} ({error}): try another --port", file=sys.stderr)
        return 1
    print(f"sample site on {site.url('/')} (Ctrl-C ends it)", file=sys.stderr, flush=True)
    signal.sigwait(ENDS)
    site.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Run the service beside a small sample site, until Ctrl-C or until one of them ends: `make serve`."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable

STARTING = 60.0
STOPPING = 40.0
"""Longer than the service's ARACHNE_DRAIN_TIMEOUT, so that it ends by itself."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="make serve", description=__doc__)
    parser.add_argument("--site-port", default=8001, type=int)
    site_port = parser.parse_args().site_port
    host, port = os.environ.get("ARACHNE_HOST", "127.0.0.1"), int(os.environ.get("ARACHNE_PORT", "8000"))
    # The sample site is on this machine, where browsers may not go unless it is allowed.
    environment = {"ARACHNE_EGRESS_ALLOW": f"127.0.0.1:{site_port}"} | os.environ
    stopped: list[int] = []
    for ask in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ask, lambda number, _: stopped.append(number))
    give_back = take_terminal()
    # In sessions of their own: they hear of the end from us alone, once, in the right order.
    site = subprocess.Popen(
        [sys.executable, "-m", "tests.site", "--port", str(site_port)], start_new_session=True
    )
    service = subprocess.Popen(
        [sys.executable, "-m", "api", "serve"], start_new_session=True, env=environment
    )
    parts = {"the sample site": site, "the service": service}
    address = f"http://{'127.0.0.1' if host == '0.0.0.0' else host}:{port}"
    try:
        if not wait_until_ready(address, site_port, parts, stopped):
            return report(parts, stopped)
        print(
            f"Ready. Next: open {address}/ in a browser, or, in another terminal:\n"
            f"  curl {address}/v1/scrape -H 'content-type: application/json' "
            f"""-d '{{"url": "http://127.0.0.1:{site_port}/", "formats": ["markdown"]}}'\n"""
            "Ctrl-C ends both.",
            flush=True,
        )
        while not stopped and all(part.poll() is None for part in parts.values()):
            time.sleep(0.2)
        return report(parts, stopped)
    finally:
        for part in (service, site):
            end(part)
        give_back()
        if stopped:
            print("Both ended. Next: make test, or read README.md.", flush=True)


def wait_until_ready(
    address: str, site_port: int, parts: dict[str, subprocess.Popen[bytes]], stopped: list[int]
) -> bool:
    """True once the site listens and the service says that it is ready."""
    deadline = time.monotonic() + STARTING
    while time.monotonic() < deadline and not stopped:
        if any(part.poll() is not None for part in parts.values()):
            return False
        try:
            with urllib.request.urlopen(f"{address}/readyz", timeout=2):
                socket.create_connection(("127.0.0.1", site_port), 2).close()
                return True
        except OSError:  # not there yet, or not ready: both end with the deadline
            time.sleep(0.3)
    return False


def report(parts: dict[str, subprocess.Popen[bytes]], stopped: list[int]) -> int:
    """The exit code: 0 when somebody ended it, 1 with a word when it ended by itself."""
    if stopped:
        print("\nEnding both ...", flush=True)
        return 0
    ended = [name for name, part in parts.items() if part.poll() is not None]
    if ended:
        other = (
            " (another port for the site: make serve SITE_PORT=8002)" if "the sample site" in ended else ""
        )
        print(f"{' and '.join(ended)} ended: what is above says why{other}.", file=sys.stderr)
    else:
        print(f"not ready after {STARTING:.0f} s: arachne doctor may say why.", file=sys.stderr)
    return 1


def end(part: subprocess.Popen[bytes]) -> None:
    part.terminate()
    try:
        part.wait(STOPPING)
    except subprocess.TimeoutExpired:
        part.kill()
        part.wait()


def take_terminal() -> Callable[[], None]:
    """Be the terminal's foreground group, so that Ctrl-C comes here and not to make, which would fail by it.

    Returns the call that gives the terminal back.
    """
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
        group = os.tcgetpgrp(terminal)
    except OSError:
        return lambda: None  # no terminal: nobody presses Ctrl-C
    if group != os.getpgrp():  # in the background, where Ctrl-C does not come anyway
        os.close(terminal)
        return lambda: None
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # giving a terminal away from outside would stop us
    os.setpgid(0, 0)
    os.tcsetpgrp(terminal, os.getpgrp())
    return lambda: os.tcsetpgrp(terminal, group)


if __name__ == "__main__":
    sys.exit(main())

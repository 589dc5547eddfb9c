"""The port that the service listens on: taken before anything starts, or said who has it."""

from __future__ import annotations

import errno
import socket
from pathlib import Path

from arachne_pool import BadRequest, Conflict

BACKLOG = 2048
_LISTENS = "0A"


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens. Raises Conflict when the port is taken, BadRequest when it can't be had."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise BadRequest(
            f"ARACHNE_HOST {host!r} is no address of this machine ({error.strerror}): give one, "
            "such as 127.0.0.1 or 0.0.0.0",
            field="ARACHNE_HOST",
        ) from error
    taken = socket.socket(family, kind, protocol)
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(address)
        taken.listen(BACKLOG)
    except OSError as error:
        taken.close()
        raise _refused(host, port, error) from error
    taken.setblocking(False)
    return taken


def _refused(host: str, port: int, error: OSError) -> Conflict | BadRequest:
    if error.errno == errno.EADDRINUSE:
        pid = holder(port)
        who = f"process {pid}" if pid else "another process"
        return Conflict(
            f"port {port} on {host} is taken by {who}: stop that, or set ARACHNE_PORT (or --port) to another"
        )
    if error.errno == errno.EACCES:
        return BadRequest(
            f"port {port} needs more rights than this user has: set ARACHNE_PORT to 1024 or more",
            field="ARACHNE_PORT",
        )
    return BadRequest(
        f"ARACHNE_HOST {host!r} can't be listened on ({error.strerror}): give an address of this machine, "
        "such as 127.0.0.1 or 0.0.0.0",
        field="ARACHNE_HOST",
    )


def holder(port: int) -> int | None:
    """The process that listens on this port, where the system lets us see it (Linux, our own processes)."""
    sockets = {f"socket:[{inode}]" for inode in _inodes(port)}
    if not sockets:
        return None
    for process in Path("/proc").glob("[0-9]*"):
        try:
            descriptors = list((process / "fd").iterdir())
        except OSError:
            continue  # it ended, or it is somebody else's
        if any(_target(one) in sockets for one in descriptors):
            return int(process.name)
    return None


def _inodes(port: int) -> set[str]:
    """The sockets that listen on this port, from the kernel's tables (proc(5))."""
    found = set()
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            continue
        for columns in map(str.split, lines):
            if columns[3] == _LISTENS and int(columns[1].rpartition(":")[2], 16) == port:
                found.add(columns[9])
    return found


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""

"""Pids, process trees, memory, kills: the only file that knows the operating system.

A process is named by pid *and* start time, so that a pid that was given to somebody else is never hit.
Everything here reads files or waits: call it in a worker thread.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """One process, told apart from a later one of the same pid by its start time (clock ticks)."""

    pid: int
    started: int

    def __str__(self) -> str:
        return f"pid {self.pid}"


def _stat(pid: int) -> tuple[str, int, int, int] | None:
    """State letter, parent's pid, process group and start time, or None when there is none."""
    try:
        text = (PROC / str(pid) / "stat").read_text()
    except (OSError, ValueError):
        return None
    # The name may hold blanks and parentheses: everything of use comes after the last one.
    fields = text.rpartition(")")[2].split()
    return fields[0], int(fields[1]), int(fields[2]), int(fields[19])


def identify(pid: int) -> Process | None:
    """The process that has this pid now."""
    stat = _stat(pid)
    return Process(pid, stat[3]) if stat else None


def alive(process: Process) -> bool:
    """Whether it runs; a zombie does not."""
    stat = _stat(process.pid)
    return stat is not None and stat[3] == process.started and stat[0] not in "ZX"


def descendants(pid: int) -> list[Process]:
    """All processes below this one, the nearest first."""
    children: dict[int, list[Process]] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit() and (stat := _stat(int(entry.name))):
            children.setdefault(stat[1], []).append(Process(int(entry.name), stat[3]))
    found: list[Process] = []
    queue = [pid]
    while queue:
        for child in children.get(queue.pop(0), ()):
            found.append(child)
            queue.append(child.pid)
    return found


def tree(process: Process) -> list[Process]:
    """The process and all below it; empty when it has ended."""
    return [process, *descendants(process.pid)] if alive(process) else []


def pss(process: Process) -> int:
    """Its proportional share of memory in bytes; 0 when it has ended."""
    try:
        text = (PROC / str(process.pid) / "smaps_rollup").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("Pss:")), 0)


def tree_pss(process: Process) -> int:
    """Memory in bytes of the process and all below it."""
    return sum(map(pss, tree(process)))


def kill(process: Process, wait: float) -> bool:
    """SIGKILL the process, its group if it leads one, and all below it; True once it has ended.

    Waits up to ``wait`` seconds for the end.
    """
    doomed = tree(process)
    stat = _stat(process.pid)
    try:
        if stat and stat[2] == process.pid and stat[3] == process.started:
            os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it ended by itself meanwhile
    for each in filter(alive, doomed):
        try:
            os.kill(each.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # likewise
    deadline = time.monotonic() + wait
    while any(map(alive, doomed)):
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.01)  # a worker thread's wait: the kernel tells the end of foreign children to nobody
    return True


def environment(process: Process) -> dict[str, str]:
    """The environment it was started with; empty when it may not be read."""
    try:
        text = (PROC / str(process.pid) / "environ").read_bytes().decode("utf-8", "replace")
    except OSError:
        return {}
    return dict(line.split("=", 1) for line in text.split("\0") if "=" in line)

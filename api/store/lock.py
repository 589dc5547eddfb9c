"""Locks on files: one process for each data folder, and one of several that does a thing."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from arachne_pool import BadRequest, Conflict

POLL = 0.05
"""Seconds between two tries for a lock that somebody else holds."""


class DataDirLock:
    """The right to use one data folder, held by one process at a time.

    The kernel holds it (flock) and drops it when the process ends, however it ends: what the file says
    is for people, and an old pid in it means nothing. Blocks for a moment: not for a loop.
    """

    def __init__(self, data_dir: str | Path) -> None:
        self.data_dir = Path(data_dir)
        self.path = self.data_dir / "arachne.lock"
        self._descriptor: int | None = None

    def __repr__(self) -> str:
        return f"<lock of {self.data_dir}; {'free' if self._descriptor is None else 'held'}>"

    def acquire(self) -> None:
        """Take the lock, making the folder where there is none. Twice is quiet.

        Raises Conflict, with the holder's pid, when another process has it; BadRequest when the folder
        can't be used.
        """
        if self._descriptor is not None:
            return
        try:
            # Pages and screenshots may be private.
            self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise self._unusable(error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError as error:
            holder = _pid_in(descriptor)
            os.close(descriptor)
            raise Conflict(
                f"ARACHNE_DATA_DIR {self.data_dir} is in use by {holder}: one process at a time may use "
                "it; stop that one, or set ARACHNE_DATA_DIR to another folder"
            ) from error
        except OSError as error:
            os.close(descriptor)
            raise self._unusable(error) from error
        self._descriptor = descriptor

    def release(self) -> None:
        """Give it back. The file stays: removing it would let two processes lock two files of one name."""
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # closing alone would leave it to a forked child
        os.close(descriptor)

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _unusable(self, error: OSError) -> BadRequest:
        return BadRequest(
            f"ARACHNE_DATA_DIR {self.data_dir} can't be used ({error.strerror or error}): give a folder "
            "on a local disk that this user may write to",
            field="ARACHNE_DATA_DIR",
        )


def _pid_in(descriptor: int) -> str:
    # The holder writes its pid just after it got the lock: for a moment the file may be empty or old.
    text = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
    return f"process {text}" if text.isdecimal() else "another process"


@contextmanager
def file_lock(path: Path, *, timeout: float) -> Iterator[None]:
    """Wait until nobody else holds the lock of this file, in any thread or process; then hold it."""
    deadline = time.monotonic() + timeout
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise Conflict(f"{path} is held by another process for {timeout:g} s: end it") from None
                time.sleep(POLL)
        yield
    finally:
        os.close(descriptor)

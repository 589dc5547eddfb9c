"""One process for each data folder: who is refused, what is said, and when the lock is free again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from api.store.lock import DataDirLock, file_lock
from arachne_pool import BadRequest, Conflict

HOLD = (
    "import sys; from api.store.lock import DataDirLock; lock = DataDirLock(sys.argv[1]); lock.acquire();"
    "print('held', flush=True); sys.stdin.read()"
)


@contextmanager
def held_by_another_process(data_dir: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(data_dir)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        yield other
        if other.poll() is None:
            other.kill()


def test_a_second_process_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    lock = DataDirLock(tmp_path)
    with held_by_another_process(tmp_path) as other:
        with pytest.raises(Conflict) as refused:
            lock.acquire()

        assert f"in use by process {other.pid}:" in str(refused.value)
        assert "set ARACHNE_DATA_DIR to another folder" in str(refused.value)
        assert repr(lock) == f"<lock of {tmp_path}; free>"


def test_a_killed_process_holds_nothing_and_its_pid_in_the_file_means_nothing(tmp_path: Path) -> None:
    with held_by_another_process(tmp_path) as other:
        other.send_signal(signal.SIGKILL)
        other.wait(10)
    assert (tmp_path / "arachne.lock").read_text() == f"{other.pid}\n"

    with DataDirLock(tmp_path) as lock:
        assert repr(lock) == f"<lock of {tmp_path}; held>"
        assert (tmp_path / "arachne.lock").read_text() == f"{os.getpid()}\n"


@pytest.mark.parametrize("stale", [b"", b"1\n", b"12345678901234567890\n", b"\xff\x00 no pid at all" * 100])
def test_what_an_old_file_says_does_not_matter(tmp_path: Path, stale: bytes) -> None:
    (tmp_path / "arachne.lock").write_bytes(stale)
    with DataDirLock(tmp_path):
        assert (tmp_path / "arachne.lock").read_text() == f"{os.getpid()}\n"


def test_a_second_lock_in_this_process_is_refused_too(tmp_path: Path) -> None:
    second = DataDirLock(tmp_path)
    with DataDirLock(tmp_path), pytest.raises(Conflict, match=f"process {os.getpid()}:"):
        second.acquire()
    with second:
        assert "held" in repr(second)


def test_acquire_and_release_are_quiet_twice(tmp_path: Path) -> None:
    lock = DataDirLock(tmp_path)
    lock.release()
    lock.acquire()
    lock.acquire()
    lock.release()
    lock.release()

    with DataDirLock(tmp_path):
        assert repr(lock) == f"<lock of {tmp_path}; free>"


def test_the_folder_is_made_for_this_user_alone(tmp_path: Path) -> None:
    with DataDirLock(tmp_path / "a" / "b"):
        assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700


FORK = """
import os, sys
from api.store.lock import DataDirLock
lock = DataDirLock(sys.argv[1])
lock.acquire()
read, write = os.pipe()
child = os.fork()
if child == 0:
    os.close(write)
    os.read(read, 1)  # until the parent ends
    os._exit(0)
lock.release()
with DataDirLock(sys.argv[1]) as again:
    print(repr(again))
"""


def test_a_released_lock_is_free_although_a_forked_child_has_the_file_open(tmp_path: Path) -> None:
    # In a process of its own: this one has threads, and does not fork.
    done = subprocess.run(
        [sys.executable, "-c", FORK, str(tmp_path)], capture_output=True, text=True, timeout=30
    )
    assert (done.stdout, done.stderr) == (f"<lock of {tmp_path}; held>\n", "")


def test_a_folder_that_cannot_be_one_is_named_with_its_setting(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    lock = DataDirLock(tmp_path / "file")
    with pytest.raises(BadRequest, match=r"ARACHNE_DATA_DIR .* can't be used") as refused:
        lock.acquire()
    assert refused.value.field == "ARACHNE_DATA_DIR"


def test_a_file_lock_gives_up_after_its_timeout(tmp_path: Path) -> None:
    with file_lock(tmp_path / "a", timeout=1), pytest.raises(Conflict, match=r"held by another .* 0\.1 s"):
        file_lock(tmp_path / "a", timeout=0.1).__enter__()
    with file_lock(tmp_path / "a", timeout=0):
        pass

"""CrossLoopOnce where loops come and go all the time, and in a forked process."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from arachne_pool.once import CrossLoopOnce
from tests.unit.loop_words import IN_TURN, run

ROOT = Path(__file__).parents[2]

FORK = """
import os, threading
from arachne_pool.once import CrossLoopOnce

gate, entered = threading.Event(), threading.Event()
done, running = CrossLoopOnce(os.getpid), CrossLoopOnce(lambda: (entered.set(), gate.wait(5), os.getpid())[2])
done.sync()
threading.Thread(target=running.sync).start()
entered.wait(5)
running._lock.acquire()  # as if another thread were in there when the process forks
child = os.fork()
if not child:
    gate.set()
    os._exit(not (done.sync(5) == running.sync(5) == os.getpid()))
running._lock.release()
gate.set()
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert done.sync() == running.sync(5) == os.getpid()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
def test_a_forked_child_starts_afresh():
    command = [sys.executable, "-W", "ignore", "-c", FORK]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")


def test_many_loops_that_come_and_go_with_cancels_and_errors():
    """Eight threads with loops of both kinds, and failing runs: every caller ends with an error that a run
    raised, its own cancel, or the one result; runs never overlap."""
    chance = random.Random(7)
    running, runs = [], []

    def work():
        running.append(1)
        assert len(running) == 1
        runs.append(1)
        threading.Event().wait(chance.random() / 500)
        running.pop()
        if len(runs) < 12:
            raise OSError(f"run {len(runs)}")
        return "result"

    once = CrossLoopOnce(work)

    def caller(index):
        own = random.Random(index)

        async def main():
            tasks = [asyncio.create_task(once()) for _ in range(6)]
            for _ in range(own.randrange(4)):
                await asyncio.sleep(own.random() / 1000)
            for task in own.sample(tasks, 2):
                task.cancel()
            if own.random() < 0.3:
                return []  # asyncio.run cancels them and closes the loop
            return await asyncio.gather(*tasks, return_exceptions=True)

        ends = []
        for turn in range(15):
            ends += run(IN_TURN[turn % 2], main)
            if turn % 5 == 0:
                try:
                    ends.append(once.sync(5))
                except OSError as error:
                    ends.append(error)
        return ends

    with ThreadPoolExecutor(8) as threads:
        ends = [end for each in list(threads.map(caller, range(8))) for end in each]
    assert once.sync(5) == "result"
    assert len(runs) == 12
    assert all(end == "result" or isinstance(end, OSError | asyncio.CancelledError) for end in ends)
    assert ends.count("result") > 50

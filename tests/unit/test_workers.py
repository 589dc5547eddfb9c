"""Threads that compute: bounded, counted, and honest about those that are stuck (API-06)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from api.workers import Workers, WorkersStatus
from arachne_pool import PoolClosed, QueueFull
from tests.services import until


@pytest.fixture
def workers() -> Iterator[Workers]:
    workers = Workers(2, waiting_limit=3)
    yield workers
    workers.close()


async def test_results_and_errors_come_back(workers: Workers) -> None:
    assert await workers.run(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        await workers.run(divmod, 7, 0)
    await until(lambda: workers.status() == WorkersStatus(2, 0, 0, 0))


async def test_what_ends_a_program_does_not_end_a_thread(workers: Workers) -> None:
    for _ in range(4):
        with pytest.raises(SystemExit):
            await workers.run(exit_now)
    assert await workers.run(abs, -1) == 1


def exit_now() -> None:
    raise SystemExit(3)


async def test_stuck_threads_are_counted_refused_and_forgiven(workers: Workers) -> None:
    let_go = threading.Event()
    stuck = [asyncio.create_task(workers.run(let_go.wait, 10)) for _ in range(2)]
    await until(lambda: workers.status().busy == 2)
    for task in stuck:
        task.cancel()
    await asyncio.wait(stuck)
    assert workers.status() == WorkersStatus(threads=2, busy=2, stuck=2, waiting=0)
    with pytest.raises(QueueFull) as caught:
        await workers.run(abs, -1)
    assert caught.value.stage == "extract"
    assert "<workers 2 threads; 2 busy, 2 stuck, 0 waiting>" in caught.value.message
    let_go.set()
    await until(lambda: workers.status().stuck == 0)
    assert await workers.run(abs, -1) == 1


async def test_work_that_waits_is_bounded_and_may_be_given_up(workers: Workers) -> None:
    let_go = threading.Event()
    ran: list[int] = []
    busy = [asyncio.create_task(workers.run(let_go.wait, 10)) for _ in range(2)]
    await until(lambda: workers.status().busy == 2)
    waiting = [asyncio.create_task(workers.run(ran.append, number)) for number in range(3)]
    await until(lambda: workers.status().waiting == 3)
    with pytest.raises(QueueFull):
        await workers.run(abs, -1)
    waiting[1].cancel()
    await asyncio.wait([waiting[1]])
    assert workers.status().waiting == 2
    let_go.set()
    await asyncio.gather(*busy, waiting[0], waiting[2])
    assert sorted(ran) == [0, 2]


async def test_after_the_end_nothing_is_taken(workers: Workers) -> None:
    await workers.run(abs, -1)
    workers.close()
    workers.close()
    with pytest.raises(PoolClosed):
        await workers.run(abs, -1)


async def test_what_waits_at_the_end_is_told_so(workers: Workers) -> None:
    let_go = threading.Event()
    busy = [asyncio.create_task(workers.run(let_go.wait, 10)) for _ in range(2)]
    await until(lambda: workers.status().busy == 2)
    waiting = asyncio.create_task(workers.run(abs, -1))
    await until(lambda: workers.status().waiting == 1)
    workers.close()
    with pytest.raises(PoolClosed):
        await waiting
    let_go.set()
    assert await asyncio.gather(*busy) == [True, True]


def test_several_loops_share_them(workers: Workers) -> None:
    assert [asyncio.run(workers.run(abs, -number)) for number in range(3)] == [0, 1, 2]

"""Starts one browser, and books how that went."""

from __future__ import annotations

import asyncio
import copy
from functools import partial
from typing import TYPE_CHECKING

from arachne_pool.config import LaunchKey
from arachne_pool.driver import Driver
from arachne_pool.errors import BrowserError, EngineMissing, LaunchFailed
from arachne_pool.events import BrowserLaunched, LaunchGivenUp

if TYPE_CHECKING:
    from arachne_pool.shell import Shell


def begin(shell: Shell, browser_id: str, key: LaunchKey) -> None:
    launch = shell.tasks.spawn(_launch(shell, browser_id, key), f"launch {browser_id}")
    shell.launches[browser_id] = launch
    launch.add_done_callback(partial(_ended, shell, browser_id))


def driver_of(shell: Shell, key: LaunchKey) -> Driver:
    driver = shell.drivers.get(key.engine)
    if driver is None:
        raise EngineMissing(f"the pool has no driver for engine {key.engine!r}")
    return driver


async def _launch(shell: Shell, browser_id: str, key: LaunchKey) -> None:
    since = shell.now()
    try:
        driver = driver_of(shell, key)
        async with asyncio.timeout(shell.config.timeouts.launch):
            browser = await driver.launch(key)
    except Exception as error:  # noqa: BLE001 - whatever a driver raises, those who wait are told
        failure = _told(key, shell.config.timeouts.launch, error)
        shell.last_error = f"{failure.code}: {failure.message}"
        shell.events.emit(LaunchGivenUp(browser_id, key.engine, shell.now() - since, failure))
        _book_failure(shell, browser_id, failure)
    else:
        shell.browsers[browser_id] = browser
        browser.on_lost(partial(shell.lose, browser_id))
        shell.ledger.launched(browser_id, shell.now())
        took = shell.now() - since
        shell.events.emit(BrowserLaunched(browser_id, key.engine, took, browser.version, browser.pid))
        if not browser.connected:
            shell.lose(browser_id)
    shell.turn()


def _ended(shell: Shell, browser_id: str, launch: asyncio.Task[None]) -> None:
    """Also one that was cancelled, be it before its first step: the pool stops."""
    del shell.launches[browser_id]
    if launch.cancelled():
        _book_failure(shell, browser_id, LaunchFailed("the launch was cancelled"))


def _book_failure(shell: Shell, browser_id: str, failure: BrowserError) -> None:
    missing = isinstance(failure, EngineMissing)
    for waiter in shell.ledger.launch_failed(browser_id, shell.now(), missing=missing):
        # An error of their own for each: a shared one would gather everybody's traceback.
        own = copy.copy(failure)
        own.__cause__ = failure.__cause__
        shell.fail(waiter.lease_id, own)


def _told(key: LaunchKey, seconds: float, error: Exception) -> BrowserError:
    if isinstance(error, BrowserError):
        return error
    late = isinstance(error, TimeoutError)
    text = f"no answer within {seconds:g} s" if late else f"{type(error).__name__}: {error}"
    failure = LaunchFailed(f"{key.engine} did not start: {text}")
    failure.__cause__ = error
    return failure

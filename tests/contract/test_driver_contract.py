"""What the pool relies on in a driver, on the fake and on Chromium: the fake does not lie."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from arachne_pool import Driver, PoolConfig, SessionOptions
from arachne_pool.chromium import ChromiumDriver
from arachne_pool.testing import FakeDriver

KEY = PoolConfig().launch_key("chromium")


@pytest.fixture(params=[FakeDriver, pytest.param(ChromiumDriver, marks=pytest.mark.browser)])
async def driver(request: pytest.FixtureRequest) -> AsyncIterator[Driver]:
    driver: Any = request.param()
    yield driver
    await driver.stop()
    await driver.stop()  # twice is quiet


async def test_a_browser_opens_sessions_proves_itself_and_closes(driver: Driver) -> None:
    browser = await driver.launch(KEY)
    assert browser.connected
    session = await browser.open_session(SessionOptions())
    assert session.page.url == "about:blank"
    await browser.probe()
    await session.close()
    await session.close()  # twice is quiet
    await browser.close()
    assert not browser.connected

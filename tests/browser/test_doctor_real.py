"""The doctor on the Chromium of this machine: it works, and says so in numbers."""

from __future__ import annotations

import pytest

from api.cli.examine import examine

pytestmark = pytest.mark.browser


async def test_the_chromium_of_this_machine_works() -> None:
    report = await examine("chromium")
    assert report.works, report
    assert report.pid is not None
    assert report.pss_mb is not None
    assert report.pss_mb > 30
    assert report.version
    assert report.version[0].isdigit()

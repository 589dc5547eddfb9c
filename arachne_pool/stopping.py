"""The end of a pool: politely for a while, then by force, and in time whatever hangs."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from arachne_pool.slot import Reason, State
from arachne_pool.tasks import in_time

if TYPE_CHECKING:
    from arachne_pool.shell import Shell

log = logging.getLogger("arachne_pool")

POLITE, KILL, FREED, DRIVERS, REST = 0.35, 0.1, 0.1, 0.25, 0.05
"""The parts of ``timeouts.stop`` that each phase may take; what they leave is the portal's."""


async def wind_up(shell: Shell) -> None:
    """End every lease, browser and driver within ``timeouts.stop`` seconds."""
    seconds = shell.config.timeouts.stop
    shell.running = False
    shell.drain()
    shell.refuse_all()
    for lease_id in list(shell.held):
        shell.release(lease_id, "stopped")
    for launch in shell.launches.values():
        launch.cancel()
    shell.ledger.close_all()
    shell.turn()
    if not await shell.tasks.ended(seconds * POLITE):
        log.warning("the pool did not end in time (%s): killing", shell.ledger)
        killed = [in_time(browser.kill, seconds * KILL) for browser in shell.browsers.values()]
        shell.doomed.update(shell.browsers)
        for browser_id in shell.doomed:
            shell.lose(browser_id, Reason.CLOSED)
        await asyncio.gather(*killed)
        await shell.tasks.ended(seconds * FREED)  # what waited for them is free now
    await asyncio.gather(*(in_time(driver.stop, seconds * DRIVERS) for driver in shell.drivers.values()))
    await shell.tasks.cancel(seconds * REST)
    for slot in list(shell.ledger.slots.values()):
        # Its end was not seen, but with its driver it is gone.
        if slot.state is not State.CLOSING:
            shell.ledger.lost(slot.id, Reason.CLOSED)
        if slot.id in shell.browsers:
            shell.closed(slot.id, killed=True)
        else:
            shell.ledger.closed(slot.id)

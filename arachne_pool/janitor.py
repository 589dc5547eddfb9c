"""The one background round: take back what was left behind, carry out what is due, ask for proofs of life."""

from __future__ import annotations

import asyncio
import logging

from arachne_pool.events import Ticked
from arachne_pool.shell import Shell
from arachne_pool.slot import State

log = logging.getLogger("arachne_pool")

PROVEN_FOR = 10.0
"""Seconds for which a proof of life counts; then the janitor asks again."""


async def rounds(shell: Shell) -> None:
    """Tick until cancelled."""
    while True:
        await asyncio.sleep(shell.config.tick)
        try:
            await tick(shell)
        except Exception:
            # The janitor must outlive any single fault, or nothing would be collected any more.
            log.exception("a round of the janitor failed")


async def tick(shell: Shell) -> None:
    """One round."""
    since = shell.now()
    shell.reclaim()
    shell.turn()
    due = [
        slot.id
        for slot in shell.ledger.slots.values()
        if slot.state is State.READY and (slot.proven is None or since - slot.proven >= PROVEN_FOR)
    ]
    await asyncio.gather(*map(shell.probe, due))
    shell.last_tick = shell.now()
    shell.events.emit(Ticked(shell.last_tick - since))

"""Launches of one key that failed in a row: they say when the next may be tried."""

from __future__ import annotations

from dataclasses import dataclass

LONGEST_WAITED_FOR = 2.0
LONGEST_WARM = 30.0
"""Longest backoff, in seconds, when somebody waits for the browser and when nobody does."""


@dataclass(slots=True)
class Luck:
    """Kept from a key's first failed launch to its next good one."""

    failures: int = 0
    failed_at: float = 0.0
    missing: bool = False
    """No such browser is installed."""

    def fail(self, now: float, *, missing: bool) -> None:
        self.failures, self.failed_at, self.missing = self.failures + 1, now, missing

    def next_try(self, backoff: float, *, waited_for: bool) -> float:
        """The moment of the next launch: after ``backoff`` seconds, doubled with each failure."""
        if waited_for and self.missing:
            return self.failed_at  # who waits for a browser that isn't installed learns it at once
        longest = LONGEST_WAITED_FOR if waited_for else LONGEST_WARM
        return self.failed_at + min(longest, backoff * 2.0 ** min(self.failures - 1, 10))

"""What a site has seen so far: requests, hits, answers that the client gave up, the gauge."""

from __future__ import annotations

from collections import Counter, deque
from typing import Final

from tests.site.request import Request

KEPT_REQUESTS: Final = 10_000
"""A site that runs for weeks must not grow: older requests are forgotten, their hits are not."""


class Counts:
    """Written by the site's own loop alone; read from any thread."""

    def __init__(self) -> None:
        self.hits: Counter[str] = Counter()
        self.aborted: Counter[str] = Counter()
        self.running: Counter[str] = Counter()
        self.requests: deque[Request] = deque(maxlen=KEPT_REQUESTS)
        self.total = 0
        self.gauge = 0
        self.gauge_max = 0

    def arrived(self, request: Request) -> None:
        self.total += 1
        self.hits[request.path] += 1
        self.running[request.path] += 1
        if request.target != request.path:
            self.hits[request.target] += 1
        self.requests.append(request)

    def gauge_up(self) -> None:
        self.gauge += 1
        self.gauge_max = max(self.gauge_max, self.gauge)

    def gauge_down(self) -> None:
        self.gauge -= 1

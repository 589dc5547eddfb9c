"""The local site: ordinary pages worth scraping, beside every way in which a site can misbehave."""

from __future__ import annotations

from tests.site.request import Request
from tests.site.server import Site
from tests.site.wire import Exchange, Reply

__all__ = ["Exchange", "Reply", "Request", "Site"]

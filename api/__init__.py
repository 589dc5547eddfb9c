"""The service on the pool: scraping, visual regression testing, workflows, web pages, command line."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("arachne-pool")
except PackageNotFoundError:
    __version__ = "0+source"  # run from a checkout that is not installed

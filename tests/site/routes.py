"""A table of routes: which address is answered by what, with a line about each for the front page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.site.wire import Handler


@dataclass(frozen=True, slots=True)
class Route:
    """``path`` ends with ``*`` if it stands for all that begin so; ``example`` is what a reader may click."""

    path: str
    about: str
    example: str
    handler: Handler


class Routes:
    """Routes of one kind, filled by a decorator: ``@ROUTES.at("/ok", "A page.")``."""

    def __init__(self, title: str, about: str) -> None:
        self.title = title
        self.about = about
        self.all: list[Route] = []

    def at(self, path: str, about: str, *, example: str = "") -> Callable[[Handler], Handler]:
        def register(handler: Handler) -> Handler:
            self.all.append(Route(path, about, example or path, handler))
            return handler

        return register

    def give(self, path: str, about: str, handler: Handler, *, example: str = "") -> None:
        """The same without a decorator, for an answer that needs no function of its own."""
        self.at(path, about, example=example)(handler)

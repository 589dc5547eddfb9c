"""The one tree of errors: what went wrong, at which stage, and whether trying again helps."""

from __future__ import annotations

import re
from typing import ClassVar


class ArachneError(Exception):
    """Any error of ours.

    ``code`` is the class name in snake case, stable, and the same in JSON. ``retryable`` says whether
    the same request may succeed later. ``stage`` names what was being done (``queue``, ``launch``,
    ``session``, ``navigate``, ``wait``, ``read``, ``close``, ``request``).
    """

    code: ClassVar[str] = "arachne_error"
    retryable: bool = False
    stage: str = "request"

    def __init__(
        self,
        message: str,
        *,
        stage: str | None = None,
        retryable: bool | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        if stage is not None:
            self.stage = stage
        if retryable is not None:
            self.retryable = retryable
        self.retry_after = retry_after
        """Seconds after which another try makes sense, where that is known."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.code = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()

    @property
    def message(self) -> str:
        return str(self.args[0])


# What a caller asked for ------------------------------------------------------------------------


class RequestError(ArachneError):
    """The request itself can't be served."""


class BadRequest(RequestError):
    """A field is wrong; ``field`` is its path, the message says how to mend it."""

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class Unauthorized(RequestError):
    """No key, or one that is not known."""


class Forbidden(RequestError):
    """The key lacks a scope."""


class NotFound(RequestError):
    """There is no such thing, or not for this caller."""


class Conflict(RequestError):
    """It contradicts what is there already."""


class SessionGone(RequestError):
    """The session has ended; the message says why."""


class QuotaExceeded(RequestError):
    """The caller used up what it may use."""

    retryable = True


# What the pool could not give ----------------------------------------------------------------------


class PoolError(ArachneError):
    """The pool could not lend a session."""

    retryable = True
    stage = "queue"


class PoolClosed(PoolError):
    """The pool is stopping or has stopped."""


class QueueFull(PoolError):
    """As many callers wait as may wait."""


class LeaseTimeout(PoolError):
    """No lease before the deadline; the message shows the room."""


# What happened to a browser ------------------------------------------------------------------------


class BrowserError(ArachneError):
    """A browser did not do its part."""

    retryable = True


class LaunchFailed(BrowserError):
    """A browser did not start."""

    stage = "launch"


class EngineMissing(BrowserError):
    """No such browser is installed."""

    retryable = False
    stage = "launch"


class BrowserLost(BrowserError):
    """The browser ended or stopped answering during the work."""

    stage = "session"


class PageCrashed(BrowserError):
    """The page's own process died."""

    stage = "session"


# What the visited site did -------------------------------------------------------------------------


class VisitError(ArachneError):
    """The visit did not come off."""

    stage = "navigate"


class BlockedByPolicy(VisitError):
    """The egress policy forbids the address; ``rule`` names the rule."""

    def __init__(self, message: str, *, rule: str = "") -> None:
        super().__init__(message)
        self.rule = rule


class VisitTimeout(VisitError):
    """The deadline passed during the visit."""

    retryable = True


class TargetFailed(VisitError):
    """The site could not be reached or answered wrongly.

    ``reason``: dns, refused, reset, tls, redirects, invalid_response, encoding, truncated, or other.
    """

    retryable = True

    def __init__(self, message: str, *, reason: str = "other", stage: str | None = None) -> None:
        super().__init__(message, stage=stage, retryable=reason not in ("tls", "redirects"))
        self.reason = reason


class ResponseTooLarge(VisitError):
    """More bytes than may be taken."""

    stage = "read"


class ScriptFailed(VisitError):
    """The caller's own script raised."""

    stage = "read"


class SelectorNotFound(VisitError):
    """No element for a selector that had to match."""

    stage = "wait"


# Visual regression testing -------------------------------------------------------------------------


class VrtError(ArachneError):
    """A comparison could not be made."""


class ShotUnsettled(VrtError):
    """The page never stood still; the message names what moved."""

    retryable = True


class BaselineInvalid(VrtError):
    """The baseline is not a picture that can be compared."""

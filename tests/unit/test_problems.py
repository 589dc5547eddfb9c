"""The table of problems: every error has a row, and every answer all that a caller needs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

import arachne_pool
from api import problems
from api.fields import FieldError, field_errors
from api.problems import TABLE, of_error, row_of
from arachne_pool import (
    ArachneError,
    BadRequest,
    BlockedByPolicy,
    EngineMissing,
    LeaseTimeout,
    PoolError,
    QueueFull,
    TargetFailed,
)


def error_classes() -> Iterator[type[ArachneError]]:
    for name in arachne_pool.__all__:
        thing = getattr(arachne_pool, name)
        if isinstance(thing, type) and issubclass(thing, ArachneError):
            yield thing


LEAVES = [kind for kind in error_classes() if not kind.__subclasses__()]

STATUSES = {
    "bad_request": 422,
    "unauthorized": 401,
    "forbidden": 403,
    "not_found": 404,
    "conflict": 409,
    "session_gone": 410,
    "quota_exceeded": 429,
    "pool_closed": 503,
    "queue_full": 429,
    "lease_timeout": 503,
    "launch_failed": 503,
    "engine_missing": 503,
    "browser_lost": 502,
    "page_crashed": 502,
    "blocked_by_policy": 403,
    "visit_timeout": 504,
    "target_failed": 502,
    "response_too_large": 413,
    "script_failed": 422,
    "selector_not_found": 422,
    "shot_unsettled": 422,
    "baseline_invalid": 422,
}


def told(error: ArachneError, scope: dict[str, Any] | None = None) -> tuple[dict[str, Any], Any]:
    answer = of_error(scope or {"path": "/v1/scrape", "state": {"request_id": "r1"}}, error)
    assert answer.media_type == "application/problem+json"
    body = json.loads(bytes(answer.body))
    assert body["status"] == answer.status_code
    return body, answer.headers


def test_there_are_errors_to_test() -> None:
    assert {kind.code for kind in LEAVES} == set(STATUSES)


@pytest.mark.parametrize("kind", LEAVES, ids=lambda kind: kind.code)
def test_every_error_has_a_row_of_its_own_with_the_designs_status(kind: type[ArachneError]) -> None:
    row = TABLE[kind.code]
    assert row.status == STATUSES[kind.code]
    assert row.fix.endswith(".")
    body, _ = told(kind("it went wrong"))
    assert body["code"] == kind.code
    assert body["type"] == f"/problems/{kind.code}"
    assert body["title"] == row.title
    assert body["detail"] == "it went wrong"
    assert body["retryable"] is kind("x").retryable
    assert body["stage"] == kind("x").stage
    assert (body["request_id"], body["instance"]) == ("r1", "/v1/scrape")


def test_an_error_without_a_row_is_told_as_the_nearest_above_it() -> None:
    class Unheard(LeaseTimeout):
        pass

    assert row_of(Unheard("x")) is TABLE["lease_timeout"]
    assert row_of(PoolError("x")) is TABLE["arachne_error"]
    assert told(Unheard("x"))[0]["code"] == "unheard"


def test_what_only_some_errors_have() -> None:
    assert told(BadRequest("x", field="a.b"))[0]["field"] == "a.b"
    assert told(TargetFailed("x", reason="dns"))[0]["reason"] == "dns"
    assert told(BlockedByPolicy("x", rule="loopback"))[0]["rule"] == "loopback"
    assert {"field", "reason", "rule", "errors"}.isdisjoint(told(LeaseTimeout("x"))[0])


@pytest.mark.parametrize(("seconds", "header"), [(0.2, "1"), (1.0, "1"), (1.01, "2"), (30, "30"), (0.0, "1")])
def test_retry_after_is_whole_seconds_rounded_up(seconds: float, header: str) -> None:
    assert told(QueueFull("x", retry_after=seconds))[1]["retry-after"] == header


@pytest.mark.parametrize("kind", LEAVES, ids=lambda kind: kind.code)
def test_retry_after_is_there_where_another_try_may_help(kind: type[ArachneError]) -> None:
    _, headers = told(kind("x"))
    helps = TABLE[kind.code].status in (429, 503) and kind is not EngineMissing
    assert ("retry-after" in headers) is helps


def test_an_unexpected_error_keeps_its_text_to_itself(caplog: pytest.LogCaptureFixture) -> None:
    scope = {"path": "/x", "state": {"request_id": "r7"}}
    answer = problems.of_unexpected(scope, RuntimeError("password is hunter2"))
    body = json.loads(bytes(answer.body))
    assert (body["status"], body["code"], body["request_id"]) == (500, "internal_error", "r7")
    assert "hunter2" not in bytes(answer.body).decode()


# The fields of a request ----------------------------------------------------------------------------


class Click(BaseModel):
    model_config = ConfigDict(extra="forbid")
    type: Literal["click"]
    selector: str


class Wait(BaseModel):
    model_config = ConfigDict(extra="forbid")
    type: Literal["wait"]
    seconds: float = Field(gt=0)


class Order(BaseModel):
    model_config = ConfigDict(extra="forbid")
    url: str
    wait_until: str = "load"
    actions: list[Annotated[Click | Wait, Field(discriminator="type")]] = []
    either: Click | Wait | None = None


def errors_of(value: Any) -> list[FieldError]:
    with pytest.raises(ValidationError) as caught:
        Order.model_validate(value)
    found = [{**error, "loc": ("body", *error["loc"])} for error in caught.value.errors()]
    return field_errors(found, Order)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({}, "url: it is missing (give it)"),
        ({"url": "x", "waitUntil": "y"}, "waitUntil: there is no such field (did you mean wait_until?)"),
        ({"url": "x", "zzz": 1}, "zzz: there is no such field (known: actions, either, url, wait_until)"),
        ({"url": 3}, "url: it must be a valid string"),
        (
            {"url": "x", "actions": [{"type": "click", "selctor": "a", "selector": "b"}]},
            "actions.0.selctor: there is no such field (did you mean selector?)",
        ),
        (
            {"url": "x", "actions": [{"type": "wait", "seconds": 1}, {"type": "wait", "seconds": 0}]},
            "actions.1.seconds: it must be greater than 0",
        ),
    ],
)
def test_a_field_is_named_as_the_caller_wrote_it(value: Any, said: str) -> None:
    assert str(errors_of(value)[0]) == said


def test_a_union_without_a_tag_is_told_without_names_of_classes() -> None:
    fields = {error.field for error in errors_of({"url": "x", "either": {"type": "wait", "secs": 1}})}
    assert "either.secs" in fields
    assert not any("Click" in field or "Wait" in field for field in fields)


def test_what_was_sent_is_not_repeated() -> None:
    assert "hunter2" not in str(errors_of({"url": ["hunter2"]}))


def test_a_body_that_is_no_object() -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(Order).validate_python(b"x")
    found = [{**error, "loc": ("body",)} for error in caught.value.errors()]
    assert "must be a JSON object" in str(field_errors(found, Order)[0])

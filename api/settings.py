"""The settings: read from ARACHNE_* variables, each with its unit, its default and what it does."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from api.guard.urls import EgressPolicy
from api.words import did_you_mean, nearest
from arachne_pool import PoolConfig

PREFIX = "ARACHNE_"


class BadSettings(ValueError):
    """Settings that can't be used; the message has a line for each, with its variable and the fix."""


def _setting(default: Any, description: str, *, unit: str, shown: str = "", **limits: Any) -> Any:
    """A field of the table: ``shown`` stands for a default that says nothing or depends on the machine."""
    extra: dict[str, JsonValue] = {"unit": unit, "shown": shown}
    return Field(default=default, description=description, json_schema_extra=extra, **limits)


class Settings(BaseSettings):
    """Everything that may be set: keywords go before the environment. Raises BadSettings."""

    # An empty variable is one that is not set: Compose files write `ARACHNE_WARM=${WARM:-}`.
    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, extra="forbid", frozen=True, allow_inf_nan=False
    )

    host: str = _setting("127.0.0.1", "Address that the service listens on.", unit="address", min_length=1)
    port: int = _setting(8000, "Port that the service listens on.", unit="port", ge=1, le=65535)
    data_dir: Path = _setting(
        Path(".arachne"), "Folder for everything the service writes; one process at a time.", unit="folder"
    )
    pool_size: int | None = _setting(
        None,
        "Browsers at most, of all engines together.",
        unit="browsers",
        shown="half the cores and one, from 1 to 4",
        ge=1,
    )
    sessions_per_browser: int = _setting(4, "Sessions at a time in one browser.", unit="sessions", ge=1)
    queue_limit: int = _setting(
        500, "Callers that may wait for a session; one more is refused at once.", unit="callers", ge=0
    )
    warm: int = _setting(1, "Chromium browsers kept running when nobody asks.", unit="browsers", ge=0)
    idle_timeout: float = _setting(
        300.0, "After this an idle browser beyond the warm ones is closed.", unit="seconds", gt=0
    )
    chromium_path: str = _setting("", "Chromium's program.", unit="file", shown="found by itself")
    camoufox_path: str = _setting("", "Camoufox's program.", unit="file", shown="found by itself")
    egress_allow: Annotated[tuple[str, ...], NoDecode] = _setting(
        (),
        "Where browsers may go besides the public internet: host:port or a network (10.1.0.0/16), "
        "separated by commas.",
        unit="list",
        shown="nothing",
    )
    max_timeout: float = _setting(300.0, "Longest timeout that a request may ask for.", unit="seconds", gt=0)
    ready_within: float = _setting(
        30.0, "When callers wait longer than this for a session, /readyz says no.", unit="seconds", gt=0
    )
    drain_timeout: float = _setting(
        25.0, "How long requests that run may go on after a signal to stop.", unit="seconds", ge=0
    )
    log_format: Literal["auto", "console", "json"] = _setting(
        "auto", "auto: console in a terminal, JSON lines otherwise.", unit="auto, console, json"
    )
    log_level: Literal["debug", "info", "warning", "error"] = _setting(
        "info", "Lines less grave than this are left out.", unit="debug, info, warning, error"
    )

    def __init__(self, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise BadSettings("\n".join(_explained(error))) from error

    @field_validator("egress_allow", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("egress_allow")
    @classmethod
    def _known_entries(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        EgressPolicy(value)
        return value

    @field_validator("log_format", "log_level", mode="before")
    @classmethod
    def _any_case(cls, value: Any) -> Any:
        return value.strip().lower() if isinstance(value, str) else value

    @model_validator(mode="after")
    def _fits_together(self) -> Settings:
        size = self.pool_config(warm=0).size
        if self.warm > size:
            raise ValueError(
                f"{PREFIX}WARM is {self.warm} and {PREFIX}POOL_SIZE {size}: "
                "more browsers can't be kept than there may be; lower the one or raise the other"
            )
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings

    def pool_config(self, *, warm: int | None = None) -> PoolConfig:
        """The pool's part; ``warm`` stands in for the setting."""
        return PoolConfig(
            size=self.pool_size or PoolConfig().size,
            sessions_per_browser=self.sessions_per_browser,
            queue_limit=self.queue_limit,
            warm=self.warm if warm is None else warm,
            idle_timeout=self.idle_timeout,
            chromium_path=self.chromium_path,
            camoufox_path=self.camoufox_path,
        )

    def egress_policy(self) -> EgressPolicy:
        return EgressPolicy(self.egress_allow)


def load_settings(**given: Any) -> Settings:
    """The settings of the environment; what is given and not None goes first. Raises BadSettings."""
    return Settings(**{name: value for name, value in given.items() if value is not None})


def unknown_variables(environment: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
    """ARACHNE_* variables that are no setting, each with the nearest right name ('' when none is near)."""
    known = [variable(name) for name in Settings.model_fields]
    found = os.environ if environment is None else environment
    unknown = sorted(name for name in found if name.upper().startswith(PREFIX) and name.upper() not in known)
    return [(name, nearest(name.upper(), known)) for name in unknown]


def variable(field: str) -> str:
    """The name of a field's environment variable."""
    return PREFIX + field.upper()


def settings_table() -> list[str]:
    """The table of docs/settings.md, as lines of Markdown."""
    rows = ["| variable | unit | default | what it does |", "|---|---|---|---|"]
    for name, field in Settings.model_fields.items():
        words = _table_words(name)
        plain = f"{field.default:g}" if isinstance(field.default, float) else str(field.default)
        default = words["shown"] or f"`{plain}`"
        rows.append(f"| `{variable(name)}` | {words['unit']} | {default} | {field.description} |")
    return rows


def _table_words(name: str) -> dict[str, str]:
    extra = Settings.model_fields[name].json_schema_extra
    assert isinstance(extra, dict), f"{name} is not made by _setting"
    return {key: str(value) for key, value in extra.items()}


_COUNTED = ("seconds", "browsers", "sessions", "callers")


def _explained(error: ValidationError) -> Iterator[str]:
    """Say it in our words: a line for each wrong value."""
    for problem in error.errors(include_url=False):
        message = problem["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
        if not problem["loc"]:  # several settings that don't fit together
            yield message
            continue
        name = str(problem["loc"][0])
        if name not in Settings.model_fields:
            yield f"there is no setting {name}: {did_you_mean(name, Settings.model_fields)}"
            continue
        if problem["type"] != "value_error":
            unit = _table_words(name)["unit"]
            message = f"it must be {message}" + (f" ({unit})" if unit in _COUNTED else "")
        yield f"{variable(name)} is {problem['input']!r}: {message}"

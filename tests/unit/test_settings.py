"""The settings: defaults, what is wrong said in one clear line, unknown names, the documented table."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from api.settings import BadSettings, Settings, load_settings, settings_table, unknown_variables, variable
from arachne_pool import PoolConfig

DOCS = Path(__file__).parents[2] / "docs" / "settings.md"


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("ARACHNE_")]:
        monkeypatch.delenv(name)


def test_the_defaults_work_on_one_machine() -> None:
    settings = Settings()
    assert (settings.host, settings.port) == ("127.0.0.1", 8000)
    assert settings.pool_config() == PoolConfig()
    assert settings.egress_policy().allow == ()


def test_variables_are_read() -> None:
    given = {
        "ARACHNE_PORT": "9000",
        "ARACHNE_POOL_SIZE": "7",
        "ARACHNE_WARM": "6",
        "ARACHNE_IDLE_TIMEOUT": "1.5",
        "ARACHNE_EGRESS_ALLOW": " intranet.example:8080, 10.1.0.0/16 ,",
        "ARACHNE_LOG_FORMAT": "JSON",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in given.items():
            patch.setenv(name, value)
        settings = load_settings()
    assert settings.port == 9000
    assert settings.egress_allow == ("intranet.example:8080", "10.1.0.0/16")
    assert settings.log_format == "json"
    config = settings.pool_config()
    assert (config.size, config.warm, config.idle_timeout) == (7, 6, 1.5)


def test_an_empty_variable_is_one_that_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARACHNE_POOL_SIZE", "")
    monkeypatch.setenv("ARACHNE_HOST", "")
    assert load_settings().pool_size is None
    assert load_settings().host == "127.0.0.1"


def test_what_is_given_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARACHNE_PORT", "9000")
    assert load_settings(port=9001, host=None).port == 9001


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("ARACHNE_PORT", "http", "ARACHNE_PORT is 'http': it must be a valid integer"),
        ("ARACHNE_PORT", "70000", "ARACHNE_PORT is '70000': it must be less than or equal to 65535"),
        ("ARACHNE_PORT", "0", "ARACHNE_PORT is '0': it must be greater than or equal to 1"),
        (
            "ARACHNE_POOL_SIZE",
            "0",
            "ARACHNE_POOL_SIZE is '0': it must be greater than or equal to 1 (browsers)",
        ),
        (
            "ARACHNE_IDLE_TIMEOUT",
            "nan",
            "ARACHNE_IDLE_TIMEOUT is 'nan': it must be a finite number (seconds)",
        ),
        ("ARACHNE_MAX_TIMEOUT", "-1", "ARACHNE_MAX_TIMEOUT is '-1': it must be greater than 0 (seconds)"),
        (
            "ARACHNE_LOG_FORMAT",
            "yaml",
            "ARACHNE_LOG_FORMAT is 'yaml': it must be 'auto', 'console' or 'json'",
        ),
        ("ARACHNE_EGRESS_ALLOW", "a:1,b", "'b' is neither host:port nor a network"),
        (
            "ARACHNE_EGRESS_ALLOW",
            "10.0.0.1/8",
            "'10.0.0.1/8' is not a network (10.0.0.1/8 has host bits set)",
        ),
        ("ARACHNE_EGRESS_ALLOW", "a:0", "'a:0' is neither"),
        ("ARACHNE_EGRESS_ALLOW", "::1:80", "'::1:80' is neither"),
        ("ARACHNE_EGRESS_ALLOW", "a b:80", "'a b:80' has no proper host"),
        ("ARACHNE_WARM", "99", "ARACHNE_WARM is 99 and ARACHNE_POOL_SIZE"),
    ],
)
def test_a_wrong_value_is_one_line_with_the_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(BadSettings) as caught:
        load_settings()
    message = str(caught.value)
    assert said in message
    assert name in message
    assert "\n" not in message
    assert "pydantic" not in message


def test_all_wrong_values_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARACHNE_PORT", "x")
    monkeypatch.setenv("ARACHNE_WARM", "x")
    with pytest.raises(BadSettings) as caught:
        load_settings()
    assert [line.partition(" ")[0] for line in str(caught.value).splitlines()] == [
        "ARACHNE_PORT",
        "ARACHNE_WARM",
    ]


def test_a_keyword_that_is_no_setting_is_told_with_the_nearest() -> None:
    with pytest.raises(BadSettings, match=r"no setting pool_sise: did you mean pool_size\?"):
        load_settings(pool_sise=3)


def test_unknown_variables_come_with_the_nearest_name() -> None:
    environment = {
        "ARACHNE_POOL_SIZ": "3",
        "ARACHNE_XYZZY": "1",
        "ARACHNE_PORT": "1",
        "arachne_host": "",
        "PATH": "",
    }
    assert unknown_variables(environment) == [
        ("ARACHNE_POOL_SIZ", "ARACHNE_POOL_SIZE"),
        ("ARACHNE_XYZZY", ""),
    ]


def test_the_table_has_every_setting_with_all_its_words() -> None:
    rows = [[cell.strip() for cell in row.strip("|").split(" | ")] for row in settings_table()[2:]]
    assert [row[0] for row in rows] == [f"`{variable(name)}`" for name in Settings.model_fields]
    assert all(len(row) == 4 and all(row) for row in rows)


def test_the_documentation_has_the_table_as_it_is() -> None:
    documented = [line for line in DOCS.read_text("utf-8").splitlines() if line.startswith("|")]
    assert documented == settings_table()

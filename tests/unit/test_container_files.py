"""Dockerfile and docker-compose.yml, checked without an engine: names, users, files, times that fit together."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from api.settings import Settings, unknown_variables

ROOT = Path(__file__).parents[2]
NAME = re.compile(r"\bARACHNE_[A-Z_]+\b")


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions with continued lines joined and comments gone."""
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if not re.match(r"\s*#", line)]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    found = []
    for line in filter(str.strip, joined.splitlines()):
        word, _, rest = line.strip().partition(" ")
        found.append((word, rest.strip()))
    return found


def stage(number: int) -> list[tuple[str, str]]:
    stages: list[list[tuple[str, str]]] = [[]]
    for word, rest in instructions():
        if word == "FROM":
            stages.append([])
        stages[-1].append((word, rest))
    return stages[number]


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    assert isinstance(loaded, dict)
    return loaded


@pytest.fixture(scope="module")
def service(compose: dict[str, Any]) -> dict[str, Any]:
    (only,) = compose["services"].values()
    return only


def seconds(text: str) -> float:
    number, unit = re.fullmatch(r"(\d+)(s|m)", text).groups()  # type: ignore[union-attr]  # fails the test
    return float(number) * {"s": 1, "m": 60}[unit]


def test_only_words_of_a_dockerfile_are_in_it() -> None:
    known = {"ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "RUN"}
    known |= {"STOPSIGNAL", "USER", "VOLUME", "WORKDIR"}
    assert {word for word, _ in instructions()} <= known


@pytest.mark.parametrize("file", ["Dockerfile", "docker-compose.yml"])
def test_every_setting_named_is_one(file: str) -> None:
    named = dict.fromkeys(NAME.findall((ROOT / file).read_text()), "")
    assert named
    assert unknown_variables(named) == []


def test_what_compose_sets_is_valid(service: dict[str, Any]) -> None:
    for name, value in service["environment"].items():
        assert isinstance(value, str), f"{name} is not in quotes: YAML makes something else of it"
        default = re.fullmatch(rf"\${{{name}:-(.*)}}", value)
        assert default, f"{name} can't be set from outside"
        if default[1]:
            Settings(**{name.removeprefix("ARACHNE_").lower(): default[1]})


def test_every_file_that_is_copied_is_there_and_not_ignored() -> None:
    ignore = (ROOT / ".dockerignore").read_text().splitlines()
    kept = {line[1:] for line in ignore if line.startswith("!")}
    assert "*" in ignore
    copied = [
        source
        for word, rest in instructions()
        if word == "COPY" and not rest.startswith("--from=")
        for source in rest.split()[:-1]
    ]
    assert set(copied) == kept
    # README.md is written with the documentation: the package can't be built without it.
    missing = [source for source in copied if not (ROOT / source).exists()]
    assert missing == []


def test_the_service_is_not_root_and_whatever_follows_neither() -> None:
    words = [word for word, _ in stage(-1)]
    users = [rest for word, rest in stage(-1) if word == "USER"]
    assert users == ["1000:1000"]
    assert words.index("USER") < words.index("CMD")
    assert any("useradd --uid 1000 " in rest for word, rest in stage(-1) if word == "RUN")


def test_one_python_in_all_stages_that_the_project_allows() -> None:
    bases = [rest.split()[0] for word, rest in instructions() if word == "FROM"]
    assert bases == ["python:${PYTHON}-slim-bookworm"] * 2
    assert ("ARG", "PYTHON=3.13") in stage(0)
    assert "Programming Language :: Python :: 3.13" in (ROOT / "pyproject.toml").read_text()


def test_the_extras_are_the_same_in_both_stages_and_real() -> None:
    (given,) = {rest for word, rest in instructions() if word == "ARG" and rest.startswith("EXTRAS=")}
    project = (ROOT / "pyproject.toml").read_text()
    for extra in given.removeprefix("EXTRAS=").split(","):
        assert f"\n{extra} = [" in project


def test_packages_are_installed_without_what_they_only_recommend() -> None:
    for word, rest in instructions():
        if word == "RUN" and "apt-get install" in rest:
            assert rest.count("apt-get install") == rest.count("--no-install-recommends")
            assert rest.count("apt-get install") == rest.count("apt-get install -y")
            assert "apt-get update" in rest
            assert "rm -rf /var/lib/apt/lists/*" in rest


def test_an_image_that_can_render_what_the_web_is_written_in() -> None:
    run = next(rest for word, rest in stage(-1) if word == "RUN")
    for package in ("chromium-headless-shell", "fonts-noto-cjk", "fonts-noto-color-emoji", "tini"):
        assert re.search(rf"\s{package}\s", run), package
    assert any(word == "RUN" and rest.endswith("&& arachne doctor") for word, rest in stage(-1))


def test_process_one_reaps_and_only_once(service: dict[str, Any]) -> None:
    assert ("ENTRYPOINT", '["tini", "--"]') in stage(-1)
    assert "init" not in service
    assert "entrypoint" not in service
    assert "command" not in service


def test_ends_have_time_enough(service: dict[str, Any]) -> None:
    assert ("STOPSIGNAL", "SIGTERM") in stage(-1)
    drain = float(service["environment"]["ARACHNE_DRAIN_TIMEOUT"].partition(":-")[2].rstrip("}"))
    assert drain == Settings.model_fields["drain_timeout"].default
    # After the drain the pool itself may take its 20 seconds (Timeouts.stop), kills included.
    assert seconds(service["stop_grace_period"]) > drain + 20


def test_both_health_checks_ask_for_readiness(service: dict[str, Any]) -> None:
    image = next(rest for word, rest in stage(-1) if word == "HEALTHCHECK")
    assert "/readyz" in image
    assert "127.0.0.1:8000/readyz" in service["healthcheck"]["test"][-1]
    compile(service["healthcheck"]["test"][-1], "healthcheck", "exec")
    command = re.search(r'CMD \["python", "-c", "(.*)"\]$', image)
    assert command
    compile(command[1], "healthcheck", "exec")
    assert seconds(service["healthcheck"]["timeout"]) > 5  # urlopen's own


def test_the_port_is_published_on_this_machine_alone(service: dict[str, Any]) -> None:
    port = Settings.model_fields["port"].default
    assert service["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert ("EXPOSE", str(port)) in stage(-1)


def test_the_container_can_do_no_more_than_it_needs(service: dict[str, Any], compose: dict[str, Any]) -> None:
    assert service["read_only"] is True
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["cap_drop"] == ["ALL"]
    assert "privileged" not in service
    assert service["mem_limit"]
    assert service["shm_size"]
    assert any(mount.startswith("/tmp:") for mount in service["tmpfs"])
    # What lasts is a named volume at the place that the image says is for it.
    (volume,) = service["volumes"]
    name, place = volume.split(":")
    assert name in compose["volumes"]
    assert ("VOLUME", place) in stage(-1)
    assert f"ARACHNE_DATA_DIR={place}" in next(rest for word, rest in stage(-1) if word == "ENV")


def test_the_image_is_tagged_with_this_version(service: dict[str, Any]) -> None:
    version = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version
    assert service["image"] == f"arachne-pool:{version[1]}"

"""The project's own files agree: pins, extras, console script, the words of the Makefile."""

from __future__ import annotations

import importlib
import re
import subprocess
import tomllib
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
SCRIPTS = sorted([*(ROOT / "deploy").glob("*.sh"), ROOT / ".ci" / "run"])


def pins() -> dict[str, str]:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    split = [re.fullmatch(r"([A-Za-z0-9._-]+)==([A-Za-z0-9.]+)", line) for line in lines]
    wrong = [line for line, found in zip(lines, split, strict=True) if found is None]
    assert wrong == [], "only name==version belongs here: no address, no range, no file"
    return {canonicalize_name(found[1]): found[2] for found in split if found}


def wanted() -> list[Requirement]:
    project = PROJECT["project"]
    extras = chain.from_iterable(project["optional-dependencies"].values())
    return [
        Requirement(r) for r in chain(PROJECT["build-system"]["requires"], project["dependencies"], extras)
    ]


def test_constraints_hold_no_address() -> None:
    text = (ROOT / "constraints.txt").read_text()
    assert "://" not in text
    assert " @ " not in text
    assert len(pins()) > 50


@pytest.mark.parametrize("requirement", wanted(), ids=str)
def test_everything_wanted_is_pinned_within_its_range(requirement: Requirement) -> None:
    pin = pins()[canonicalize_name(requirement.name)]
    assert requirement.specifier.contains(pin), f"{requirement} against {pin}"
    assert requirement.url is None


def test_the_library_alone_needs_playwright_alone() -> None:
    (only,) = PROJECT["project"]["dependencies"]
    assert Requirement(only).name == "playwright"


def test_camoufox_is_pinned_exactly_and_holds_playwright_below() -> None:
    extra = {r.name: r for r in map(Requirement, PROJECT["project"]["optional-dependencies"]["camoufox"])}
    assert str(extra["camoufox"].specifier) == "==0.5.8"
    assert not extra["playwright"].specifier.contains("1.63.0")


def test_every_console_script_can_be_imported() -> None:
    for target in PROJECT["project"]["scripts"].values():
        module, _, name = target.partition(":")
        assert callable(getattr(importlib.import_module(module), name))


def test_each_package_says_that_it_is_typed() -> None:
    for package in PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]:
        assert (ROOT / package / "py.typed").exists()


def test_the_makefile_has_the_words_that_help_lists() -> None:
    listed = subprocess.run(["make", "-C", str(ROOT), "help"], capture_output=True, text=True, check=True)
    words = re.findall(r"^  make ([a-z0-9-]+) +\S", listed.stdout, re.MULTILINE)
    assert {"install", "browsers", "serve", "test", "check", "format", "bench", "clean"} <= set(words)
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony
    assert set(words) <= set(phony[1].split())


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_every_script_is_told_at_its_top_and_parses(script: Path) -> None:
    first, second = script.read_text().splitlines()[:2]
    shell = {"#!/bin/sh": "sh", "#!/usr/bin/env bash": "bash"}[first]
    assert second.startswith("# ")
    assert second.endswith((".", "]"))
    subprocess.run([shell, "-n", str(script)], check=True)


def test_no_file_of_the_project_names_a_package_registry() -> None:
    """Machines reach different registries: pip, npm and apt know theirs, the project must not."""
    registry = re.compile(r"(pypi|pythonhosted|npmjs|registry\.\w+)\.(org|com)|index-url|find-links")
    files = [
        ROOT / "pyproject.toml",
        ROOT / "constraints.txt",
        ROOT / "Makefile",
        ROOT / "Dockerfile",
        *SCRIPTS,
    ]
    named = [file.name for file in files if registry.search(file.read_text())]
    assert named == []

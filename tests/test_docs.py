"""The documentation says what is: its examples run, its links lead somewhere, its commands exist."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.running import running_service
from tests.site import Site

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PAGES = [
    ROOT / "README.md",
    ROOT / "SECURITY.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", README, re.DOTALL)
    assert found, f"the README has no {language} example"
    return found[1]


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


@pytest.fixture(scope="module")
def service(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_service(tmp_path_factory.mktemp("service"), egress_allow=site.host_port) as service:
        yield service.address


def here(text: str, site: Site, service: str = "") -> str:
    """The example, on this test's ports."""
    return text.replace("127.0.0.1:8001", site.host_port).replace("127.0.0.1:8000", service)


def agrees(shown: Any, given: Any, where: str = "answer") -> None:
    """What the README shows of an answer is in it; dots stand for what it leaves out, times differ."""
    if isinstance(shown, dict):
        for key, value in shown.items():
            if key != "...":
                assert key in given, f"{where} has no {key}"
                agrees(value, given[key], f"{where}.{key}")
    elif isinstance(shown, list):
        for one, other in zip((s for s in shown if s != "..."), given, strict=False):
            agrees(one, other, where)
        assert len(given) >= len([s for s in shown if s != "..."]), where
    elif isinstance(shown, str) and "..." in shown:
        for part in filter(None, map(str.strip, shown.split("..."))):
            assert part in given, f"{where}: {part!r} is not in it"
    elif isinstance(shown, float):
        assert isinstance(given, float), where
    else:
        assert shown == given, where


@pytest.mark.browser
@pytest.mark.skipif(not shutil.which("curl"), reason="the example calls curl")
def test_the_curl_example_gets_the_answer_that_the_readme_shows(site: Site, service: str) -> None:
    command = here(block("sh"), site, service)
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=True)
    agrees(json.loads(here(block("json"), site)), json.loads(done.stdout))


@pytest.mark.browser
def test_the_library_example_runs(site: Site, tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    script.write_text(here(block("python"), site))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "How a garden spider weaves its web\n"


@pytest.mark.browser
@pytest.mark.slow
def test_every_failure_of_the_loops_page_shows_here_and_none_of_them_in_the_pool() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "docs/examples/loops.py"],
        capture_output=True, text=True, timeout=120, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    ours = [line for line in done.stdout.splitlines() if "arachne_pool" in line]
    plain = [line for line in done.stdout.splitlines() if "plain asyncio" in line]
    assert sum("80 of 80 ok, 1 holder at once" in line for line in ours) == 3
    assert sum("bound to a different event loop" in line for line in plain) == 2
    assert any("0 of 20 ended loops stay" in line for line in ours)
    assert any("20 of 20 ended loops stay" in line for line in plain)
    assert any("after the clean-up" in line for line in ours)
    assert any("still uses the page" in line for line in plain)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text())
    gone = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert gone == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_make_word_exists(page: Path) -> None:
    words = set(re.findall(r"`make ([a-z0-9-]+)", page.read_text()))
    known = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert words <= known

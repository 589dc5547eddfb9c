"""Installing and listing browsers: which ways are tried on which machine, what is said when none is left."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from typer.testing import CliRunner

from api.cli import browsers
from api.cli.installer import Ended, Machine, Run, install, keep_cache, run_command
from arachne_pool import Engine, EngineMissing, FoundBrowser

ROOT = Machine(python="py", apt=("env", "DEBIAN_FRONTEND=noninteractive", "apt-get"))
SUDO = Machine(python="py", apt=("sudo", "-n", "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"))
PLAIN = Machine(python="py")
CLOSED = Ended(1, "Error: getaddrinfo ENOTFOUND example.invalid")


@dataclass
class World:
    """A machine of our own: what each command does to it, and which were run."""

    brings: dict[str, FoundBrowser] = field(default_factory=dict)
    """A piece of a command -> the browser that is there once it ran."""
    ends: dict[str, Ended] = field(default_factory=dict)
    mends: str = ""
    """A piece of the command after which the browser starts."""
    found: FoundBrowser | None = None
    starts: bool = True
    ran: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def run(self, command: Sequence[str], timeout: float, show: bool) -> Ended:
        assert timeout > 0
        line = " ".join(command)
        if line.endswith(" --version"):
            return Ended(0) if self.starts else Ended(127, "error while loading shared libraries: libnss3.so")
        self.ran.append(line)
        ended = next((ended for piece, ended in self.ends.items() if piece in line), Ended(0))
        if ended.code == 0:
            self.found = next((b for piece, b in self.brings.items() if piece in line), self.found)
            self.starts = self.starts or (bool(self.mends) and self.mends in line)
        return ended

    def find(self, engine: Engine, explicit: str) -> FoundBrowser:
        if self.found is None:
            raise EngineMissing(f"no {engine}")
        return self.found

    def install(self, machine: Machine, engine: Engine = "chromium", explicit: str = "") -> FoundBrowser:
        return install(engine, explicit, machine=machine, run=self.run, say=self.said.append, find=self.find)


DOWNLOADED = FoundBrowser("chromium", "/cache/shell", "playwright")
PACKAGED = FoundBrowser("chromium", "/usr/lib/chromium/chromium-headless-shell", "distribution")


def test_a_browser_that_starts_is_left_alone() -> None:
    world = World(found=PACKAGED)
    assert world.install(ROOT) == PACKAGED
    assert world.ran == []
    assert world.said == []


def test_playwrights_download_is_the_first_way() -> None:
    world = World(brings={"playwright install --only-shell chromium": DOWNLOADED})
    assert world.install(ROOT) == DOWNLOADED
    assert len(world.ran) == 1
    assert world.ran[0].endswith("py -m playwright install --only-shell chromium")


def test_a_closed_network_is_said_and_the_package_taken() -> None:
    world = World(ends={"playwright": CLOSED}, brings={"apt-get install": PACKAGED})
    assert world.install(ROOT) == PACKAGED
    assert "it can't be reached from here" in world.said[1]
    line = world.ran[-1]
    assert line.startswith("env DEBIAN_FRONTEND=noninteractive apt-get install -y ")
    assert (
        "-o DPkg::Lock::Timeout=400 --no-install-recommends chromium-headless-shell fontconfig fonts-" in line
    )


def test_the_lists_are_renewed_only_when_the_package_was_not_found() -> None:
    def without_lists(command: Sequence[str], timeout: float, show: bool) -> Ended:
        if "apt-get install" in " ".join(command) and not any("apt-get update" in line for line in world.ran):
            world.ran.append("apt-get install (lists are old)")
            return Ended(100, "E: Unable to locate package chromium-headless-shell")
        return world.run(command, timeout, show)

    world = World(ends={"playwright": CLOSED}, brings={"apt-get install": PACKAGED})
    found = install("chromium", "", machine=ROOT, run=without_lists, say=world.said.append, find=world.find)
    assert found == PACKAGED
    assert [line.split()[-1] for line in world.ran[:2]] == ["chromium", "old)"]
    assert "apt-get update" in world.ran[2]
    assert "apt-get install" in world.ran[3]
    assert any("Unable to locate package" in line for line in world.said)


def test_a_failed_update_is_not_followed_by_an_install() -> None:
    world = World(ends={"playwright": CLOSED, "apt-get": Ended(100, "E: no")})
    with pytest.raises(EngineMissing):
        world.install(ROOT)
    assert [line.split("apt-get ")[1].split()[0] for line in world.ran[1:]] == ["install", "update"]


def test_with_sudo_apt_is_called_through_it() -> None:
    world = World(ends={"playwright": CLOSED}, brings={"apt-get install": PACKAGED})
    assert world.install(SUDO) == PACKAGED
    assert world.ran[-1].startswith("sudo -n env DEBIAN_FRONTEND=noninteractive apt-get install")


def test_without_rights_the_exact_commands_are_told() -> None:
    world = World(ends={"playwright": CLOSED})
    with pytest.raises(EngineMissing) as raised:
        world.install(PLAIN)
    assert len(world.ran) == 1
    told = raised.value.message
    assert (
        "apt-get install -y -q -o DPkg::Lock::Timeout=400 --no-install-recommends chromium-headless" in told
    )
    assert "py -m playwright install --with-deps --only-shell chromium" in told


def test_a_download_without_its_libraries_gets_them() -> None:
    world = World(brings={"playwright install ": DOWNLOADED}, starts=False, mends="playwright install-deps")
    assert world.install(SUDO) == DOWNLOADED
    assert world.ran[1:] == ["sudo -n py -m playwright install-deps chromium"]


def test_a_browser_that_does_not_start_is_no_success() -> None:
    world = World(found=DOWNLOADED, starts=False)
    with pytest.raises(
        EngineMissing, match=r"does not start: .*libnss3.*py -m playwright install-deps chrom"
    ):
        world.install(PLAIN)


def test_a_path_of_the_settings_is_never_replaced() -> None:
    world = World()
    with pytest.raises(EngineMissing, match=r"^no chromium$"):
        world.install(ROOT, explicit="/wrong")
    assert world.ran == []


def test_a_way_that_takes_too_long_is_given_up() -> None:
    world = World(ends={"playwright": Ended(124)}, brings={"apt-get install": PACKAGED})
    assert world.install(ROOT) == PACKAGED
    assert "not done after 900 s" in world.said[1]


def test_a_camoufox_fetch_that_brings_nothing_is_a_failure_though_it_says_zero() -> None:
    world = World(ends={"camoufox fetch": Ended(0, "Max retries exceeded with url")})
    with pytest.raises(EngineMissing, match=r"Where its download can be reached, run: py -m camoufox fetch"):
        world.install(ROOT, "camoufox")
    assert world.ran == ["py -m camoufox fetch", "py -m camoufox path"]
    assert "it can't be reached from here" in world.said[1]


def test_without_its_package_camoufox_is_not_even_tried() -> None:
    world = World()
    with pytest.raises(EngineMissing, match=r"^no camoufox$"):  # the finder's own word, which names pip
        world.install(Machine(python="py", camoufox=False), "camoufox")
    assert world.ran == []


def test_a_camoufox_fetch_leaves_no_cache_that_camoufox_would_delete(tmp_path: Path) -> None:
    cache = tmp_path / "camoufox"

    def fetch(command: Sequence[str], timeout: float, show: bool) -> Ended:
        if command[-1] == "path":
            return Ended(0, str(cache))
        cache.mkdir()
        (cache / "repo_cache.json").write_text("{}")
        return Ended(0)

    machine = Machine(python="py")
    world = World()
    with pytest.raises(EngineMissing):
        install("camoufox", "", machine=machine, run=fetch, say=world.said.append, find=world.find)
    assert (cache / ".0.5_FLAG").exists()


def test_an_empty_or_older_or_absent_cache_is_not_marked(tmp_path: Path) -> None:
    keep_cache(tmp_path / "absent")
    assert not (tmp_path / "absent").exists()
    keep_cache(tmp_path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "version.json").write_text("{}")
    keep_cache(tmp_path)
    assert not (tmp_path / ".0.5_FLAG").exists()


def test_run_command_gives_the_code_and_the_last_words() -> None:
    ended = run_command([sys.executable, "-c", "print('one'); print('two'); raise SystemExit(3)"], 30, False)
    assert ended == Ended(3, "one\ntwo")


def test_run_command_shows_what_tells_something_once(capsys: pytest.CaptureFixture[str]) -> None:
    code = (
        "print('Error: no'); print('    at place:1'); print('Error: no'); print('{'); print('Fetched 1 MB')"
    )
    run_command([sys.executable, "-c", code], 30, True)
    assert capsys.readouterr().out == "  Error: no\n  Fetched 1 MB\n"


def runs(pid: int) -> bool:
    """Whether it runs; one that nobody has reaped yet (Z) does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_run_command_ends_the_whole_group_at_its_timeout(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    child = f"import os, time; open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    began = time.monotonic()
    assert run_command([sys.executable, "-c", code], 3, False).code == 124
    assert time.monotonic() - began < 30
    deadline = time.monotonic() + 10
    while runs(int(mark.read_text())):
        assert time.monotonic() < deadline, "the child of the command lives on"
        time.sleep(0.01)


def test_run_command_of_nothing_is_127() -> None:
    assert run_command(["/nowhere/at/all"], 5, False).code == 127


@pytest.mark.parametrize(
    ("uid", "sudo_works", "expected"),
    [
        (0, False, ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get")),
        (1000, True, ("sudo", "-n", "env", "DEBIAN_FRONTEND=noninteractive", "apt-get")),
        (1000, False, ()),
    ],
)
def test_the_machine_is_asked_for_rights_without_a_password(
    uid: int, sudo_works: bool, expected: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(command: Sequence[str], timeout: float, show: bool) -> Ended:
        assert tuple(command) == ("sudo", "-n", "true")
        return Ended(0 if sudo_works else 1)

    monkeypatch.setattr("os.geteuid", lambda: uid)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    typed: Run = run
    assert Machine.here(typed).apt == expected


def test_list_as_json_has_a_row_for_each_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own = tmp_path / "chrome"
    own.write_bytes(b"\x7fELF")
    own.chmod(0o755)
    monkeypatch.setenv("ARACHNE_CHROMIUM_PATH", str(own))
    monkeypatch.setenv("ARACHNE_CAMOUFOX_PATH", "/nowhere")
    answer = CliRunner().invoke(browsers.app, ["list", "--json"])
    assert answer.exit_code == 0, answer.output
    rows = json.loads(answer.output)
    assert rows[0] == {
        "engine": "chromium",
        "path": str(own),
        "source": "setting",
        "used": True,
        "fix": None,
    }
    (camoufox,) = [row for row in rows if row["engine"] == "camoufox"]
    assert camoufox["path"] is None
    assert "ARACHNE_CAMOUFOX_PATH" in camoufox["fix"] or "pip install" in camoufox["fix"]


def test_list_for_a_person_names_path_and_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ARACHNE_CHROMIUM_PATH", sys.executable)
    answer = CliRunner().invoke(browsers.app, ["list"])
    assert answer.exit_code == 0, answer.output
    assert Path(sys.executable).name in answer.output.replace("\n", "").replace(" ", "")


def test_install_says_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARACHNE_CHROMIUM_PATH", sys.executable)
    answer = CliRunner().invoke(browsers.app, ["install"])
    assert (answer.exit_code, answer.output) == (0, f"chromium: {sys.executable} (setting)\n")


def test_install_with_a_wrong_setting_ends_with_one_and_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARACHNE_CHROMIUM_PATH", "/nowhere/chrome")
    answer = CliRunner().invoke(browsers.app, ["install"])
    assert answer.exit_code == 1
    assert "ARACHNE_CHROMIUM_PATH" in answer.output

"""One line a number: `name value unit goal ok|short`, printed and kept in bench/results/."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


class Report:
    """The numbers of one benchmark."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._lines: list[str] = []

    def number(self, name: str, value: float, unit: str, *, most: float | None = None) -> None:
        """A number, and the most that it should be where there is such a goal."""
        goal = "-" if most is None else f"<={most:g}"
        verdict = "-" if most is None else "ok" if value <= most else "short"
        line = f"{name} {value:.4g} {unit} {goal} {verdict}"
        print(line, flush=True)
        self._lines.append(line)

    def keep(self) -> None:
        head = f"# {self.name}: Python {platform.python_version()}, {platform.system()} {platform.machine()}"
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{self.name}.txt").write_text("\n".join([head, *self._lines]) + "\n")


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

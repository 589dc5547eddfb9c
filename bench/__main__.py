"""Runs every benchmark, or those that are named: `python -m bench [NAME ...]`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

NOT_ONE = {"__init__", "__main__", "report", "site"}


def main() -> int:
    names = sorted(p.stem for p in Path(__file__).parent.glob("*.py") if p.stem not in NOT_ONE)
    wanted = sys.argv[1:] or names
    unknown = sorted(set(wanted) - set(names))
    if unknown:
        print(f"no benchmark {', '.join(unknown)}: there are {', '.join(names)}", file=sys.stderr)
        return 64
    failed = [
        n for n in wanted if subprocess.run([sys.executable, "-m", f"bench.{n}"], check=False).returncode
    ]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

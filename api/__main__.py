"""``python -m api``: the same as the command ``arachne``."""

from __future__ import annotations

from api.cli import main

if __name__ == "__main__":
    main()

"""The right name for a word that somebody got nearly right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that this one was probably meant to be; '' when none is near."""
    by_folded = {name.casefold().replace("-", "_"): name for name in known}
    # camelCase from another API: `waitUntil` is near enough to `wait_until` as it is.
    folded = word.casefold().replace("-", "_")
    found = difflib.get_close_matches(folded, by_folded, n=1, cutoff=0.7)
    return by_folded[found[0]] if found else ""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The fix for an unknown name: the nearest right one, or all that there are."""
    names = sorted(known)
    near = nearest(word, names)
    return f"did you mean {near}?" if near else f"known: {', '.join(names)}"

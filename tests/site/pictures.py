"""Pictures made by arithmetic: plain colours, woven cloth, a web with dew; as PNG, and as an icon."""

from __future__ import annotations

import itertools
import math
import random
import struct
import zlib
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

Colour = tuple[int, int, int]

WEAVES: Final = {
    # 1: the warp (the thread that runs down) lies on top there.
    "plain": ((1, 0), (0, 1)),
    "twill": ((1, 1, 0, 0), (0, 1, 1, 0), (0, 0, 1, 1), (1, 0, 0, 1)),
    "basket": ((1, 1, 0, 0), (1, 1, 0, 0), (0, 0, 1, 1), (0, 0, 1, 1)),
    "herringbone": (
        (1, 1, 0, 0, 0, 0, 1, 1),
        (0, 1, 1, 0, 0, 1, 1, 0),
        (0, 0, 1, 1, 1, 1, 0, 0),
        (1, 0, 0, 1, 1, 0, 0, 1),
    ),
}
_THREAD = 12
"""Pixels from one thread to the next."""


def parse_colour(text: str) -> Colour:
    """``a4452c`` or ``f00``, with or without ``#``; ValueError for anything else."""
    digits = text.removeprefix("#")
    if len(digits) == 3:
        digits = "".join(digit * 2 for digit in digits)
    red, green, blue = bytes.fromhex(digits)
    return red, green, blue


def png(width: int, height: int, rows: Iterable[bytes]) -> bytes:
    """8-bit RGB rows of ``3 * width`` bytes as a PNG."""

    def block(kind: bytes, content: bytes) -> bytes:
        checksum = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)

    pixels = zlib.compress(b"".join(b"\0" + row for row in rows), 6)  # 0: the row is not filtered
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + block(b"IHDR", header) + block(b"IDAT", pixels) + block(b"IEND", b"")


@lru_cache(maxsize=64)
def solid(width: int, height: int, colour: str) -> bytes:
    return png(width, height, [bytes(parse_colour(colour)) * width] * height)


@lru_cache(maxsize=64)
def cloth(width: int, height: int, weave: str, warp: str, weft: str) -> bytes:
    """A piece of cloth seen from near; ``weave`` is a name of WEAVES."""
    pattern = WEAVES[weave]
    colours = parse_colour(weft), parse_colour(warp)
    tile_width = len(pattern[0]) * _THREAD
    rows: list[bytes] = []
    for y in range(len(pattern) * _THREAD):
        row = bytearray()
        for x in range(tile_width):
            on_top = pattern[y // _THREAD][x // _THREAD]
            across, along = (x, y) if on_top else (y, x)
            light = _roundness(across, 0.55) * (0.82 + 0.18 * _roundness(along, 0.0))
            row += bytes(min(255, int(part * light)) for part in colours[on_top])
        rows.append((bytes(row) * (width // tile_width + 1))[: 3 * width])
    return png(width, height, (rows[y % len(rows)] for y in range(height)))


def _roundness(place: int, edge: float) -> float:
    """How much light a round thread gives back: 1 at its middle, ``edge`` at its sides."""
    middle = (place % _THREAD + 0.5) / _THREAD * 2 - 1
    return edge + (1.04 - edge) * math.sqrt(max(0.0, 1 - middle * middle))


@lru_cache(maxsize=8)
def web(width: int, height: int) -> bytes:
    """An orb web with dew, before a dark morning."""
    chance = random.Random(7)  # always the same web
    glow: dict[tuple[int, int], float] = {}
    hub = (width * 0.46, height * 0.47)
    reach = math.hypot(width, height) * 0.62
    count = 26
    angles = [(index + chance.uniform(-0.22, 0.22)) * math.tau / count for index in range(count)]

    def at(angle: float, radius: float) -> tuple[float, float]:
        return hub[0] + radius * math.cos(angle), hub[1] + radius * 0.92 * math.sin(angle)

    def draw(points: list[tuple[float, float]], strength: float) -> None:
        for (x0, y0), (x1, y1) in itertools.pairwise(points):
            steps = max(1, int(math.hypot(x1 - x0, y1 - y0) * 1.6))
            for step in range(steps):
                dot(x0 + (x1 - x0) * step / steps, y0 + (y1 - y0) * step / steps, strength)

    def dot(x: float, y: float, strength: float) -> None:
        left, top = math.floor(x), math.floor(y)
        for dx, dy in ((0, 0), (1, 0), (0, 1), (1, 1)):
            share = (1 - abs(x - left - dx)) * (1 - abs(y - top - dy))
            place = (left + dx, top + dy)
            glow[place] = min(1.0, glow.get(place, 0.0) + strength * share)

    for angle in angles:
        draw([hub, at(angle, reach)], 0.28)
    spacing, radius = height / 44, height * 0.055
    while radius < reach * 0.86:
        for index, angle in enumerate(angles):
            following = angles[(index + 1) % count] + (math.tau if index == count - 1 else 0)
            start, end = at(angle, radius), at(following, radius + spacing / count)
            radius += spacing / count
            # Each piece hangs a little towards the hub.
            sag = at((angle + following) / 2, radius * (0.955 + chance.uniform(-0.006, 0.006)))
            curve = [
                tuple(
                    (1 - t) ** 2 * a + 2 * t * (1 - t) * m + t * t * b
                    for a, m, b in zip(start, sag, end, strict=True)
                )
                for t in (0, 0.2, 0.4, 0.6, 0.8, 1)
            ]
            draw([(x, y) for x, y in curve], 0.34)
            for x, y in curve[1:5]:
                if chance.random() < 0.5:
                    size = chance.uniform(0.4, 1.5)
                    for turn in range(8):
                        dot(x + size * math.cos(turn), y + size * math.sin(turn), 0.30)
    return png(width, height, _lit(width, height, glow))


def _lit(width: int, height: int, glow: dict[tuple[int, int], float]) -> Iterable[bytes]:
    """The morning sky, with ``glow`` laid over it."""
    top, bottom, thread = (24, 38, 46), (86, 96, 84), (244, 238, 222)
    rows: list[bytearray] = []
    for y in range(height):
        share = y / height
        rows.append(
            bytearray(bytes(int(a + (b - a) * share) for a, b in zip(top, bottom, strict=True)) * width)
        )
    for (x, y), strength in glow.items():
        if 0 <= x < width and 0 <= y < height:
            row = rows[y]
            for part in range(3):
                under = row[3 * x + part]
                row[3 * x + part] = int(under + (thread[part] - under) * strength)
    return (bytes(row) for row in rows)


def icon() -> bytes:
    """A favicon.ico that holds one PNG of 32 by 32 pixels."""
    picture = cloth(32, 32, "plain", "a4452c", "f0dfc4")
    entry = struct.pack("<BBBBHHII", 32, 32, 0, 0, 1, 24, len(picture), 22)
    return struct.pack("<HHH", 0, 1, 1) + entry + picture

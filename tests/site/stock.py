"""The goods in the shop and the looms in the weaving room."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True)
class Product:
    """``price`` is in pence; ``weave``, ``warp`` and ``weft`` make its picture."""

    sku: str
    name: str
    about: str
    price: int
    rating: float
    reviews: int
    tags: tuple[str, ...]
    weave: str
    warp: str
    weft: str
    in_stock: bool

    @property
    def pounds(self) -> str:
        return f"{self.price / 100:.2f}"

    def as_json(self) -> dict[str, object]:
        return {
            "sku": self.sku,
            "name": self.name,
            "price": self.price / 100,
            "currency": "GBP",
            "rating": self.rating,
            "reviews": self.reviews,
            "tags": list(self.tags),
            "in_stock": self.in_stock,
        }


def _product(row: dict[str, str]) -> Product:
    return Product(
        sku=row["sku"],
        name=row["name"],
        about=row["about"],
        price=int(row["price"]),
        rating=float(row["rating"]),
        reviews=int(row["reviews"]),
        tags=tuple(row["tags"].split()),
        weave=row["weave"],
        warp=row["warp"],
        weft=row["weft"],
        in_stock=row["in_stock"] == "yes",
    )


_LIST = (Path(__file__).parent / "static" / "products.csv").read_text(encoding="utf-8")
PRODUCTS: Final = tuple(_product(row) for row in csv.DictReader(_LIST.splitlines()))
PER_PAGE: Final = 12
PAGES: Final = len(PRODUCTS) // PER_PAGE

LOOMS: Final = (
    {"id": 1, "name": "Ariadne", "kind": "Floor loom", "shafts": 8, "width_cm": 120, "free": True},
    {"id": 2, "name": "Old Tom", "kind": "Counterbalance loom", "shafts": 4, "width_cm": 100, "free": False},
    {"id": 3, "name": "Wren", "kind": "Table loom", "shafts": 4, "width_cm": 60, "free": True},
    {"id": 4, "name": "The Ferry", "kind": "Drawloom", "shafts": 10, "width_cm": 140, "free": False},
    {"id": 5, "name": "Penelope", "kind": "Tapestry loom", "shafts": 2, "width_cm": 180, "free": True},
    {"id": 6, "name": "Jack", "kind": "Jack loom", "shafts": 8, "width_cm": 90, "free": True},
)
"""What /api/items answers."""

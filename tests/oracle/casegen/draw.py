"""Chance, with the words the generator needs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, TypeVar

T = TypeVar("T")


class Draw(random.Random):
    """A seeded source; every number of a case comes from one of these."""

    def maybe(self, chance: float) -> bool:
        """Is it so, this time?"""
        return self.random() < chance

    def some(self, options: Sequence[T], most: int, least: int = 1) -> list[T]:
        """Between `least` and `most` different options, in random order."""
        return self.sample(list(options), min(len(options), self.randint(least, most)))

    def often(self, common: Sequence[T], rare: Sequence[T], chance_of_rare: float = 0.15) -> T:
        """Mostly one of the common values, now and then an odd one."""
        return self.choice(list(rare if self.maybe(chance_of_rare) else common))


def without_none(value: dict[str, Any]) -> dict[str, Any]:
    """A manifest states no empty fields."""
    return {key: field for key, field in value.items() if field is not None}

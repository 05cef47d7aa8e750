"""Makes random choices for the generator of cases."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, TypeVar

T = TypeVar("T")


class Draw(random.Random):
    """A random source with a seed. Every value of a case comes from a `Draw`."""

    def maybe(self, chance: float) -> bool:
        """Returns True with this probability."""
        return self.random() < chance

    def some(self, options: Sequence[T], most: int, least: int = 1) -> list[T]:
        """Returns between `least` and `most` different options, in random order."""
        return self.sample(list(options), min(len(options), self.randint(least, most)))

    def often(self, common: Sequence[T], rare: Sequence[T], chance_of_rare: float = 0.15) -> T:
        """Usually returns one of the common values. With probability `chance_of_rare`, returns one of the rare
        values."""
        return self.choice(list(rare if self.maybe(chance_of_rare) else common))


def without_none(value: dict[str, Any]) -> dict[str, Any]:
    """Removes fields whose value is None, because a manifest does not contain them."""
    return {key: field for key, field in value.items() if field is not None}

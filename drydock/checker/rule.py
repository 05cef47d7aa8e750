"""A rule of the checker: a name for `careen demo --break`, a sentence and a check."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from drydock.checker.journal import Fact, Journal


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    at: float
    sentence: str


Check = Callable[[Journal], Iterator[Breach]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """`reads` are the facts without which the rule is not judged, besides writes, requests to reboot and boots."""

    name: str
    sentence: str
    reads: tuple[Fact, ...]
    check: Check

    def breaches(self, journal: Journal) -> tuple[Breach, ...]:
        """The earliest first."""
        return tuple(sorted(self.check(journal), key=lambda breach: breach.at))

    def lacks(self, journal: Journal) -> tuple[Fact, ...]:
        return tuple(fact for fact in self.reads if fact not in journal.knows)


def rule(name: str, sentence: str, *reads: Fact) -> Callable[[Check], Rule]:
    return lambda check: Rule(name=name, sentence=sentence, reads=reads, check=check)

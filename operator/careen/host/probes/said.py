"""The answers of probes, the answer for a failed command, and the combination of several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from careen.core.facts.observation import Need, NeedAnswer
from careen.core.facts.times import span
from careen.host.commands import Exited, NotFollowed, NotStarted, Outcome, TimedOut
from scheduler_core.sentences import first_few

IN_ENGLISH = ("env", "LC_ALL=C")
"""Before each command whose messages careen parses: otherwise tools would translate them."""

_NO_PROGRAM = 127  # the exit code of env and of shells for a missing program


def yes(detail: str) -> Need:
    """The host needs a reboot."""
    return Need(answer=NeedAnswer.YES, detail=detail)


def no(detail: str) -> Need:
    """The host needs no reboot."""
    return Need(answer=NeedAnswer.NO, detail=detail)


def unknown(detail: str) -> Need:
    """It is unknown whether the host needs a reboot."""
    return Need(answer=NeedAnswer.UNKNOWN, detail=detail)


def nothing(command: str, outcome: Outcome) -> Need:
    """Unknown: the command could not be run, did not end in time, or did not say whether a reboot is needed."""
    match outcome:
        case Exited(code=code) if code == _NO_PROGRAM:
            return unknown(f"the host has no program `{command.partition(' ')[0]}`, which the probe runs")
        case Exited(code=code, output=output, errors=errors):
            said = errors or output or "the command printed nothing"
            return unknown(f"`{command}` exited with {code} and did not say whether a reboot is needed: {said}")
        case TimedOut(seconds):
            return unknown(f"`{command}` did not end within {span(seconds)}")
        case NotStarted(why) | NotFollowed(why):
            return unknown(f"`{command}` could not be run: {why}")


_SHOWN = 5  # names in a sentence


def together(needs: Iterable[Need]) -> Need:
    """Yes if any source says yes, no if all say no, otherwise unknown.

    A yes mentions the unknown ones too, so that people notice a broken probe before the reboot.
    """
    every = tuple(needs)
    said = {answer: [each.detail for each in every if each.answer is answer] for answer in NeedAnswer}
    busy = next((each.package_manager for each in every if each.package_manager), "")
    if said[NeedAnswer.YES]:
        untold = [f"besides, {detail}" for detail in said[NeedAnswer.UNKNOWN] if detail]
        return _one(NeedAnswer.YES, [*said[NeedAnswer.YES], *untold], busy)
    if said[NeedAnswer.UNKNOWN] or not every:
        return _one(
            NeedAnswer.UNKNOWN,
            said[NeedAnswer.UNKNOWN]
            or ["the configuration contains no source that says whether the host needs a reboot"],
            busy,
        )
    return _one(NeedAnswer.NO, said[NeedAnswer.NO], busy)


def _one(answer: NeedAnswer, details: Iterable[str], busy: str) -> Need:
    return Need(answer=answer, detail="; ".join(dict.fromkeys(filter(None, details))), package_manager=busy)


def a_few(names: Sequence[str]) -> str:
    """The first five, and the number of the others."""
    return first_few(names, _SHOWN)

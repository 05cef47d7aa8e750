"""The one road to a person's terminal: everything that a command prints for people goes through here, and nothing
that stands in names, annotations and answers reaches the terminal as an order.

A test finds every other call that prints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from careen.core.plain_text import LONGEST_LINE, lines, one_line

_LONGEST_MESSAGE = 4 * LONGEST_LINE


def say(sentence: str, *, err: bool = False) -> None:
    """Prints one line; to standard error with `err`."""
    click.echo(one_line(sentence, _LONGEST_MESSAGE), err=err)


def say_lines(text: str) -> None:
    """Prints a report whose line breaks are ours. Its parts were put on one line each when it was made."""
    click.echo(lines(text))


class SeveralProblems(click.UsageError):
    """A usage error of one line for each problem."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(one_line(problem, _LONGEST_MESSAGE) for problem in problems))


@contextmanager
def errors_fit_to_show() -> Iterator[None]:
    """Lets errors through to click, which prints them, with a text that is fit for it."""
    try:
        yield
    except SeveralProblems:
        raise
    except click.ClickException as error:
        vars(error)["message"] = one_line(error.message, _LONGEST_MESSAGE)  # click declares it final
        raise

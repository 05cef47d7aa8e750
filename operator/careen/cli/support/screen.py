"""Prints text for people. The only module that writes to a terminal, because it removes control characters from names,
annotations and responses; a test fails if another prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import click

from careen.core.plain_text import LONGEST_LINE, lines, one_line

_LONGEST_MESSAGE = 4 * LONGEST_LINE


def say(sentence: str, *, err: bool = False) -> None:
    """Prints one line."""
    click.echo(one_line(sentence, _LONGEST_MESSAGE), err=err)


def say_lines(text: str) -> None:
    """Prints a report with careen's own line breaks; values in it must have none."""
    click.echo(lines(text))


class BadInput(click.ClickException):
    """The input does not fit the cluster: an unknown name, a node in the wrong phase. Exit code 2, as for an unknown
    option, but without usage lines."""

    exit_code = 2


def did_you_mean(name: str, names: Iterable[str], *, otherwise: str = "") -> str:
    """`; did you mean n1, n2?`, or `otherwise` if no name is similar."""
    import difflib  # no agent needs it

    close = difflib.get_close_matches(name, names, n=3)
    return f"; did you mean {', '.join(close)}?" if close else otherwise


def no_such_node(name: str, names: Sequence[str], *, where: str = "this cluster") -> BadInput:
    """The error for an unknown Node, with similar names; `where` was searched."""
    if suggestion := did_you_mean(name, names):
        return BadInput(f"there is no Node {name!r}{suggestion}")
    nodes = "Node" if len(names) == 1 else "Nodes"
    return BadInput(f"there is no Node {name!r} among the {len(names):,} {nodes} of {where}")


class SuggestingGroup(click.Group):
    """Suggests similar commands for one that does not exist."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if args and (suggestion := did_you_mean(args[0], self.list_commands(ctx))):
                vars(error)["message"] = f"there is no command {args[0]!r}{suggestion}"
            raise


class SeveralProblems(click.UsageError):
    """One line for each problem."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(one_line(problem, _LONGEST_MESSAGE) for problem in problems))


@contextmanager
def errors_fit_to_show() -> Iterator[None]:
    """Removes control characters from click's errors before click prints them."""
    try:
        yield
    except SeveralProblems:
        raise
    except click.ClickException as error:
        vars(error)["message"] = one_line(error.message, _LONGEST_MESSAGE)  # click declares it final
        raise

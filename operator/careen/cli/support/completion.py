"""`kubectl_complete-careen`: kubectl runs this program when a person presses Tab after `kubectl careen`.

Its arguments are the words of the command line; the last word is unfinished. Each line of its output is one completion,
with a tab character and the completion's help text after it. The last line is one of cobra's directives
(completions.go, ShellCompDirective).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from careen.core.plain_text import one_line

_NO_FILES = 4  # ShellCompDirectiveNoFileComp
_FILES = 0  # ShellCompDirectiveDefault: the shell completes names of files


def main() -> None:
    """Runs the console script `kubectl_complete-careen`."""
    sys.stdout.write(completions(sys.argv[1:]))


def completions(words: Sequence[str]) -> str:
    """Returns the lines to print for kubectl. The last of `words` is the unfinished word and may be empty."""
    from click.shell_completion import ShellComplete

    from careen.cli import cli

    *done, unfinished = words or [""]
    found = ShellComplete(cli, {}, "careen", "_CAREEN_COMPLETE").get_completions(list(done), unfinished)
    lines = [_line(each.value, each.help) for each in found if each.type == "plain"]
    directive = _NO_FILES if len(lines) == len(found) else _FILES
    return "".join(f"{line}\n" for line in [*lines, f":{directive}"])


def _line(value: str, text: str | None) -> str:
    return f"{value}\t{one_line(text)}" if text else value

"""`kubectl_complete-careen`: kubectl runs it for Tab after `kubectl careen`.

The arguments are the words of the command line, the last one unfinished. Each line of output is a completion, a tab and
its help. The last is one of cobra's directives (completions.go, ShellCompDirective).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from careen.core.plain_text import one_line

_NO_FILES = 4  # ShellCompDirectiveNoFileComp
_FILES = 0  # ShellCompDirectiveDefault: the shell completes names of files


def main() -> None:
    """The console script `kubectl_complete-careen`."""
    sys.stdout.write(completions(sys.argv[1:]))


def completions(words: Sequence[str]) -> str:
    """The lines for kubectl. The last word is unfinished and may be empty."""
    from click.shell_completion import ShellComplete

    from careen.cli import cli

    *done, unfinished = words or [""]
    found = ShellComplete(cli, {}, "careen", "_CAREEN_COMPLETE").get_completions(list(done), unfinished)
    lines = [_line(each.value, each.help) for each in found if each.type == "plain"]
    directive = _NO_FILES if len(lines) == len(found) else _FILES
    return "".join(f"{line}\n" for line in [*lines, f":{directive}"])


def _line(value: str, text: str | None) -> str:
    return f"{value}\t{one_line(text)}" if text else value

"""Turns every setting of the agent into an option of a command.

Options only collect text, and the settings' parsers check it: an invalid value gives the same message in a flag, a
variable and the ConfigMap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from careen.settings.tree import DEFAULTS, SETTINGS, flag

F = TypeVar("F", bound=Callable[..., Any])


def agent_options(function: F) -> F:
    """Adds an option for each setting, in the order of the settings."""
    for name in reversed(SETTINGS):
        function = _option(name)(function)
    return function


def given_flags(values: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """What the caller wrote on the command line, without click's defaults."""
    return {
        name: value if isinstance(value, tuple) else (value,)
        for name, value in values.items()
        if name in SETTINGS and value is not None and value != ()
    }


def _option(name: str) -> Callable[[F], F]:
    setting = SETTINGS[name]
    default = setting.kind.shown(DEFAULTS[name])
    text = f"{setting.help}  [{'kured; ' if setting.is_kureds else ''}default: {default or 'none'}]"
    # kured's flags are Go's: `--force-reboot` alone means true, `--force-reboot=false` is allowed.
    switch: dict[str, Any] = {"is_flag": False, "flag_value": "true"} if setting.kind.is_switch else {}
    return click.option(
        f"--{flag(name)}",
        name,
        metavar=setting.kind.metavar,
        multiple=setting.kind.many,
        default=None,
        help=text,
        **switch,
    )

"""The settings as values of the chart: name, default, and where the chart writes it."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import Any

import yaml

from careen.settings import kinds
from careen.settings.config_map_limits import POWERS
from careen.settings.tree import DEFAULTS, SETTINGS, flag, variable

CHART = Path(__file__).resolve().parents[2] / "manifests" / "chart"
OWNED = ("node_id", "kubeconfig", "ds_namespace", "ds_name", "config_map")
"""The settings that the chart itself sets."""

HEAD = """\
# Written by `make docs` from operator/careen/settings/tree.py; edit that file, not this one.
#
# Each entry of this file describes one setting. The entry's name is the NAME of the chart's value `configuration.NAME`.
# An entry has some of these fields:
# * `place`: where the chart writes the setting: into a `flag` of the DaemonSet, into the `configMap`, or into the
#   `secret`. The place `chart` means that the chart itself sets the setting.
# * `default`: the value that the agent uses if the setting is not given.
# * `empty`: if `true`, the empty text "" is a value of the setting. Otherwise "" means that the setting is not given.
# * `no`: the text that the chart writes for the value `false`. YAML reads `off` as `false`.
"""


def key(name: str) -> str:
    """The name in values.yaml: `drain_delay` becomes `drainDelay`."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def place(name: str) -> str:
    """Where the chart writes the setting: `configMap`, `secret`, `flag` (of the DaemonSet), or `chart` if it sets
    the value itself."""
    setting = SETTINGS[name]
    if name in OWNED:
        return "chart"
    if setting.kind.is_secret:
        return "secret"
    # The ConfigMap must not set the URL of a server that receives credentials. Both URLs are flags even without
    # credentials, so that each setting has only one place.
    return (
        "flag" if setting.bootstrap or name in POWERS or name in ("prometheus_url", "alertmanager_url") else "configMap"
    )


def empty_is_a_value(name: str) -> bool:
    """Whether "" in values.yaml is a value of this setting, rather than "not given".

    kured's chart reads "" as "not given", except for the taint: empty, kured sets none. careen's own settings use
    `null` for "not given".
    """
    setting = SETTINGS[name]
    if setting.kind.many or (setting.is_kureds and name != "prefer_no_schedule_taint"):
        return False
    try:
        setting.kind.parse("")
    except ValueError:
        return False
    return True


def file() -> str:
    """The text of files/settings.yaml."""
    rows = {key(name): _row(name) for name in SETTINGS}
    return HEAD + yaml.safe_dump(rows, sort_keys=False, width=4096)


def _row(name: str) -> dict[str, Any]:
    setting = SETTINGS[name]
    row: dict[str, Any] = {"flag": flag(name), "place": place(name), "variables": [variable(name, "CAREEN")]}
    if setting.is_kureds:
        row["variables"].append(variable(name, "KURED"))
    if name != "host_root":  # the chart's DaemonSet has another default than the agent
        row["default"] = setting.kind.shown(DEFAULTS[name])
    if empty_is_a_value(name):
        row["empty"] = True
    if "off" in setting.kind.choices:
        row["no"] = "off"
    return row


BEGIN, END = "  # settings: begin, written by `make docs`\n", "  # settings: end\n"


def values_file() -> str:
    """The text of values.yaml: the settings are generated, the rest is written by hand."""
    before, _, rest = (CHART / "values.yaml").read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    blocks = [_value(name) for name in SETTINGS if place(name) != "chart"]
    return before + BEGIN + textwrap.indent("\n".join(blocks), "  ") + END + after


def _value(name: str) -> str:
    setting = SETTINGS[name]
    where = {
        "flag": "A change of this value replaces the agents.",
        "secret": "The chart writes this value into a Secret.",
        "configMap": "",
    }[place(name)]
    meaning = f"{setting.help} {where}".strip()
    lines = textwrap.wrap(meaning, 116, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
    return "\n".join([*lines, f"{key(name)}: null  # {_shown(name)}"]) + "\n"


def _shown(name: str) -> str:
    """The default as people write it, for a comment in values.yaml.

    Only a comment: as a value, Helm would merge it with a person's values, and the chart could not see what the person
    wrote.
    """
    kind, value = SETTINGS[name].kind, DEFAULTS[name]
    if name == "host_root":
        return "/proc/1/root; another folder if `components.signal` is true"
    if kind.many:
        return json.dumps([kind.show(each) for each in value])
    text = "" if value is None else kind.show(value)
    plain = kind.is_switch or re.fullmatch(r"-?\d+", text) or kind in (kinds.DURATION, kinds.DEADLINE)
    return text if plain and text else json.dumps(text)

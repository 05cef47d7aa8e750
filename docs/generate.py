"""Writes the generated files: pages of docs/, an example, the settings file, parts of the Helm chart. `make docs` runs
this script, and a test fails while one of the files is outdated."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

from careen.core.facts.phases import MOVES, PHASES, Phase
from careen.core.facts.reasons import REASONS, Code, event_reason
from careen.settings import kinds
from careen.settings.config_map_limits import POWERS
from careen.settings.tree import DEFAULTS, SETTINGS, flag, variable

ROOT = Path(__file__).resolve().parents[1]
NOTE = "<!-- Written by `make docs` from {source}; edit that file, not this one. -->\n"

# The phases of a node that meets no obstacle, for the picture; the table below it has every other move.
ROAD = (
    Phase.IDLE,
    Phase.WAITING,
    Phase.CLAIMING,
    Phase.DRAINING,
    Phase.REBOOTING,
    Phase.VERIFYING,
    Phase.SETTLING,
    Phase.IDLE,
)


WHY_EXAMPLE = """\
```console
$ careen why node-01
node-01 is Waiting since 8s: the lock is held by hand: uninstall kured.
Lock: PAUSED by hand: uninstall kured; no claim held.
Next: its agent takes its next turn within 30 s.

GATE                  ANSWER      SINCE   WHY
hold                  refuses     8s      the lock is held by hand: uninstall kured
halt                  yes         -       -
…
dry-run-evictions     not asked   -       only a node with a claim asks this gate

What would change it:
  paused: `careen lock resume`.
```
"""

PHASE_EXAMPLE = """\
```console
$ kubectl get node node-01 -o jsonpath='{.metadata.annotations.careen\\.dev/phase}'
Waiting
```
"""


def phases_page() -> str:
    """Returns the page of the phases: each phase, a picture of the moves between them, and the reason for each move."""
    lines = [
        NOTE.format(source="operator/careen/core/facts/phases.py"),
        "# A node's phases",
        "",
        PHASE_EXAMPLE,
        "A phase says what has already happened. It stands on the Node as the annotation `careen.dev/phase`.",
        "",
        "| phase | has already happened | looked at in every turn |",
        "|---|---|---|",
        *(f"| {row.phase} | {row.has_happened} | {', '.join(sorted(row.evidence))} |" for row in PHASES),
        "",
        "```mermaid",
        "stateDiagram-v2",
        f"    [*] --> {Phase.IDLE}",
        *(f"    {before} --> {after}" for before, after in MOVES),
        "```",
        "",
        "Without obstacles: " + " → ".join(ROAD) + ".",
        "",
        "| from | to | why |",
        "|---|---|---|",
        *(f"| {before} | {after} | {why} |" for (before, after), why in MOVES.items()),
    ]
    return "\n".join(lines) + "\n"


def reasons_page() -> str:
    """Returns the page of the reason codes: what each code means and what would change it."""
    lines = [
        NOTE.format(source="operator/careen/core/facts/reasons.py"),
        "# Why is my node not rebooting?",
        "",
        WHY_EXAMPLE,
        "`careen why NODE` answers for one node, in one command: every gate that refuses, since when, and what would",
        (
            "change it. This page explains each code. Codes stand in annotations, logs and metrics; Events carry "
            "them in the"
        ),
        "form of the second column. **!** marks what deserves a person's attention.",
        "",
        "| code | Event | what it means | what to do |",
        "|---|---|---|---|",
        *(_reason_row(code) for code in Code),
    ]
    return "\n".join(lines) + "\n"


def _reason_row(code: Code) -> str:
    text = REASONS[code]
    return f"| `{code}`{' **!**' if text.is_warning else ''} | {event_reason(code)} | {text.meaning} | {text.remedy} |"


SETTINGS_HEAD = """\
# Written by `make docs` from operator/careen/settings/tree.py; edit that file, not this one.
#
# Every setting with its default. To set one, put it below without the `#`, in a patch of your own (README.md has an
# example), or edit the ConfigMap in the cluster: the agents follow it and a change takes effect without a restart,
# except where a setting says so. A value that cannot be used changes nothing and is told as an Event and a metric.
# A flag or a variable of the environment (CAREEN_X, or KURED_X for kured's settings) counts more than this file.
#
# What says ROOT would make whoever may edit this ConfigMap root on every host: it belongs on the DaemonSet, as a flag
# or a variable. Here it is refused, with all that stands beside it, until the DaemonSet has the flag that is named.
"""

CONFIG_MAP_HEAD = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: careen
  namespace: careen
data:
  config.yaml: |
"""


def settings_file() -> str:
    """Returns a ConfigMap with every setting commented out, each with its meaning and its default."""
    needed_before = [
        f"#   {variable(name, 'CAREEN')}: {setting.help}" for name, setting in SETTINGS.items() if setting.bootstrap
    ]
    blocks = [_setting_block(name) for name, setting in SETTINGS.items() if not setting.bootstrap]
    return (
        SETTINGS_HEAD
        + "#\n# Known before this file can be read, and so set on the DaemonSet itself:\n"
        + "\n".join(needed_before)
        + "\n"
        + CONFIG_MAP_HEAD
        + textwrap.indent("\n".join(blocks), "    ")
    )


def _setting_block(name: str) -> str:
    setting = SETTINGS[name]
    meaning = setting.help if setting.is_live else f"{setting.help} (A change needs a restart of the agents.)"
    if power := POWERS.get(name):
        what = "a file is not" if setting.kind is kinds.SCHEDULER_CONFIG else "not"
        meaning += f" ROOT: {what} taken from here without --{flag(power)}."
    return (
        "\n".join(textwrap.wrap(meaning, 112, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False))
        + f"\n#{flag(name)}: {_default(name)}\n"
    )


def _default(name: str) -> str:
    """Returns the default as YAML, in the form that the setting's parser reads."""
    kind, value = SETTINGS[name].kind, DEFAULTS[name]
    if kind.many:
        return json.dumps([kind.show(each) for each in value])
    text = "" if value is None else kind.show(value)
    return text if kind.is_switch or text.isdigit() else json.dumps(text)


PAGES: dict[str, Callable[[], str]] = {
    "docs/phases.md": phases_page,
    "docs/reasons.md": reasons_page,
    "manifests/settings.yaml": settings_file,
}


def main() -> None:
    """Writes every generated file."""
    sys.path.insert(0, str(ROOT))
    from docs import chart, dashboard, shadow_example  # the chart is made of manifests that are written before it

    for name, page in {**PAGES, **shadow_example.PAGES, **dashboard.PAGES, **chart.PAGES}.items():
        (ROOT / name).write_text(page())


if __name__ == "__main__":
    main()

"""Writes the generated files: pages of docs/, an example, the settings file, parts of the Helm chart. `make docs`
runs this script; a test fails while a file is outdated."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

from careen.core.facts.phases import MOVES, PHASES, Phase
from careen.core.facts.reasons import Code, event_reason
from careen.core.outcomes import QUIET
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
node-01 has been Waiting for 8s: a person paused the lock: uninstall kured.
Lock: PAUSED: a person paused the lock (uninstall kured); no node holds a claim.
Next: the node's agent decides again within 30s.

GATE                  ANSWER      SINCE   WHY
hold                  refuses     8s      a person paused the lock: uninstall kured
halt                  yes         -       -
…
dry-run-evictions     not asked   -       only the agent of a node with a claim asks this gate

What you can do:
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
    """Each phase, a diagram of the transitions, and the reason for each transition."""
    lines = [
        NOTE.format(source="operator/careen/core/facts/phases.py"),
        "# A node's phases",
        "",
        PHASE_EXAMPLE,
        "A phase says what has already happened to a node. The Node's annotation `careen.dev/phase` shows it.",
        "",
        "| phase | what has already happened | evidence that the agent reads in every turn |",
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
    """Each reason code: what it means, and what to do."""
    lines = [
        NOTE.format(source="operator/careen/core/facts/reasons.py"),
        "# Why is my node not rebooting?",
        "",
        WHY_EXAMPLE,
        (
            "`careen why NODE` shows every gate that refuses the reboot of a node, since when, and the remedy. This\n"
            "page explains each code. Annotations, logs and metrics contain the codes. Events on the Node have them\n"
            "in the form of the second column; a dash marks a code without an Event: the next code tells that step.\n"
            "What keeps a waiting node from its claim is one Event `Refused`, whose message says why; the Event of a\n"
            "refusal's own code means that the refusal stops a node that has a claim. **!** marks codes that need a\n"
            "person's attention."
        ),
        "",
        "| code | Event | what it means | what to do |",
        "|---|---|---|---|",
        *(_reason_row(code) for code in Code),
    ]
    return "\n".join(lines) + "\n"


def _reason_row(code: Code) -> str:
    event = "-" if code in QUIET else event_reason(code)
    return f"| `{code}`{' **!**' if code.is_warning else ''} | {event} | {code.meaning} | {code.remedy} |"


SETTINGS_HEAD = """\
# Written by `make docs` from operator/careen/settings/tree.py; edit that file, not this one.
#
# Every setting with its default. To change a setting, remove its `#` in a patch of your own (README.md has an example),
# or edit the ConfigMap in the cluster. The agents apply a change without a restart, unless the setting says otherwise.
# An invalid value changes nothing; the agents report it in an Event and a metric.
# A flag or an environment variable (CAREEN_X, or KURED_X for kured's settings) overrides this file.
#
# The word ROOT marks a setting that would give root on every host to each person who may edit this ConfigMap. Set this
# setting on the DaemonSet, as a flag or an environment variable. After the word ROOT, the comment of the setting names
# another flag, for example --config-map-may-run-commands. The ConfigMap may contain the setting only if the DaemonSet
# has that other flag. Otherwise agents refuse the ConfigMap, and ignore its other settings too.
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
    """A ConfigMap with every setting commented out, each with its meaning and its default."""
    needed_before = [
        f"#   {variable(name, 'CAREEN')}: {setting.help}" for name, setting in SETTINGS.items() if setting.bootstrap
    ]
    blocks = [_setting_block(name) for name, setting in SETTINGS.items() if not setting.bootstrap]
    return (
        SETTINGS_HEAD
        + "#\n# The agent needs these settings before it can read this file, so they are set on the DaemonSet:\n"
        + "\n".join(needed_before)
        + "\n"
        + CONFIG_MAP_HEAD
        + textwrap.indent("\n".join(blocks), "    ")
    )


def _setting_block(name: str) -> str:
    setting = SETTINGS[name]
    meaning = setting.help if setting.is_live else f"{setting.help} (A change needs a restart of the agents.)"
    if power := POWERS.get(name):
        what = "the name of a file" if setting.kind is kinds.SCHEDULER_CONFIG else "it"
        meaning += f" ROOT: agents refuse {what} here unless the DaemonSet has --{flag(power)}."
    return (
        "\n".join(textwrap.wrap(meaning, 112, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False))
        + f"\n#{flag(name)}: {_default(name)}\n"
    )


def _default(name: str) -> str:
    """The default as YAML, in the form that the setting's parser reads."""
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
    from docs import chart, dashboard, library_api, shadow_example

    # The chart is made of manifests that are written before it.
    for name, page in {**PAGES, **shadow_example.PAGES, **library_api.PAGES, **dashboard.PAGES, **chart.PAGES}.items():
        (ROOT / name).write_text(page())


if __name__ == "__main__":
    main()

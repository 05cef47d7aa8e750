"""Tests that careen prints and logs text only through functions that make it safe to display. The tests search the
source for calls that bypass these functions.

tests/careen/cli/test_poisoned_texts.py and tests/careen/agent/test_poisoned_texts.py test the same by running careen on
a cluster with unsafe texts.
"""

from __future__ import annotations

import ast
import re

import pytest

from tests.architecture.source_tree import Module, modules

# Functions that write text for people or their tools, and the modules that may call them, each with its reason.
ROADS: dict[str, dict[str, str]] = {
    r"click\.(echo|secho|echo_via_pager|prompt|style)|print|(sys\.)?(stdout|stderr)\.(write|writelines)|os\.write": {
        "careen.cli.serving.aside": "a copy of the process gives JSON to the process that it was copied from",
        "careen.agent.asleep.sleeper": "writes the handover, and lines with fixed words for the log",
        "careen.agent.asleep.doorkeeper": "writes a byte into a pipe",
        "careen.cli.support.screen": "prints on a terminal, after cleaning the text",
        "careen.cli.support.completion": "prints names and help of careen's own commands for a shell",
        "careen.services.notify_child": "prints JSON; careen.services.notify reads the JSON and makes its texts safe",
    },
    r"(rich\.console\.)?Console|(rich\.)?print": {
        "careen.agent.asleep.sleeper": "prints lines with fixed words for the log",
        "careen.cli.support.progress": "prints a bar with fixed words and numbers",
        "careen.cli.watch": "prints the lines of report/live/screen.py, which are clean, as rich's Text",
        "careen.cli.demo": "prints the table of drydock, whose cells are rich's Text",
    },
    r"logging\.(StreamHandler|FileHandler|basicConfig|Formatter|Handler)": {
        "careen.agent.telemetry.logs": "writes the log, after cleaning the text",
    },
    r"json\.dump|sys\.(stdout|stderr)\.buffer\.write|shutil\.copyfileobj": {
        "careen.agent.forecast.child": "sends the forecast to the agent",
        "careen.cli.snapshot": "compressed bytes",
    },
    r"(html\.)?escape|_escaped_for_html": {
        "careen.report.page.markup": "writes text into a page, after escaping it",
        "careen.report.page.overview": "uses the module `markup`",
        "careen.report.page.plan_page": "uses the module `markup`",
        "careen.report.page.rows": "uses the module `markup`",
        "careen.report.live.past_reboots": "uses the module `markup`",
    },
    r"self\.wfile\.write": {
        "careen.agent.telemetry.http_server": "serves metrics, health and readiness, after cleaning the text",
        "careen.cli.serving.web_server": "serves the documents of report/live, whose texts are clean, and escaped JSON",
    },
    r"\w+\.write_text": {
        "careen.cli.plan": "writes the page of report/page",
    },
    # Writes through the API server, except reviews and evictions, which contain no sentence.
    r".*api\.(post|write|merge_patch)|.*transport\.send": {
        "careen.cluster.events": "cleans the message of the Event",
        "careen.cluster.nodes": "writes a PatchNode, which makes its annotations safe to display",
        "careen.cluster.lock_store": "writes the lock, which is JSON in ASCII",
        "careen.cluster.evictions": "an Eviction",
        "careen.cluster.wire.api": "the client itself",
        "careen.scheduler.lease": "writes a Lease, which contains no sentence",
        "careen.agent.rescue": "sends a patch; core/rescue.py has made the annotations of this patch safe to display",
    },
}


def calls_of(module: Module, pattern: str) -> list[str]:
    return [f"{module.where}:{line}: {name}" for name, line in module.calls() if re.fullmatch(pattern, name)]


@pytest.mark.parametrize("pattern", ROADS)
def test_only_the_listed_modules_print_or_write_text(pattern: str) -> None:
    found = [
        call for module in modules("careen") if module.name not in ROADS[pattern] for call in calls_of(module, pattern)
    ]
    assert found == []


@pytest.mark.parametrize(("pattern", "name"), [(road, name) for road, may in ROADS.items() for name in may])
def test_an_unneeded_entry_in_the_list_of_exceptions_is_reported(pattern: str, name: str) -> None:
    (module,) = (each for each in modules("careen") if each.name == name)
    assert calls_of(module, pattern) != []


def test_no_module_configures_its_own_logger() -> None:
    """Only the handler of careen's one logger makes lines safe to display, so every other logger must be a child of
    that logger."""
    found = [
        call
        for module in modules("careen")
        if module.name not in ("careen.agent.telemetry.logs", "careen.services.notify_child")
        for call in calls_of(module, r".*\.addHandler|logging\.(getLogger\(\)\.)?(info|warning|error|exception|log)")
    ]
    assert found == []


def test_every_line_of_a_report_comes_from_a_paragraph_a_table_or_a_literal() -> None:
    """A value in a bare f-string could contain a line break. The next line would then look like a line of careen."""
    found = [
        f"{module.where}:{text.lineno}"
        for module in modules("careen")
        if module.name.startswith("careen.report.") and not module.name.startswith("careen.report.page.")
        for text in bare_lines(module.tree)
    ]
    assert found == []


def bare_lines(tree: ast.Module) -> list[ast.JoinedStr]:
    """Return the f-strings that the code adds to a list called `lines`."""
    found: list[ast.JoinedStr] = []
    for node in ast.walk(tree):
        values: list[ast.expr] = []
        match node:
            case ast.Assign(targets=[ast.Name(id="lines")], value=ast.List(elts=elements)):
                values = elements
            case ast.AugAssign(target=ast.Name(id="lines"), value=ast.List(elts=elements)):
                values = elements
            case ast.Call(func=ast.Attribute(value=ast.Name(id="lines"), attr="append"), args=arguments):
                values = arguments
        found += [value for value in values if isinstance(value, ast.JoinedStr)]
    return found


@pytest.mark.parametrize(
    "source", ['lines = [f"{a}"]', 'lines += ["", f"{a}"]', 'lines.append(f"{a}")'], ids=["made", "added", "appended"]
)
def test_the_check_finds_a_report_line_built_from_a_bare_string(source: str) -> None:
    assert len(bare_lines(ast.parse(source))) == 1


@pytest.mark.parametrize(
    "call",
    ["click.echo(x)", "print(x)", "sys.stdout.write(x)", "Console()", "logging.StreamHandler()", "senses.api.post(x)"],
)
def test_a_call_that_prints_or_writes_text_is_found(call: str) -> None:
    module = Module("careen.report.somewhere", modules("careen")[0].path, ast.parse(call))
    assert [pattern for pattern in ROADS if calls_of(module, pattern)] != []

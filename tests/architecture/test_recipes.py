"""Tests that the recipes in CONTRIBUTING.md list the files that each kind of change touches in the current code."""

from __future__ import annotations

import re

import pytest

from careen.core.facts.phases import Phase
from tests.architecture.source_tree import ROOT, all_modules

ROWS = dict(
    re.findall(
        r"^\| ((?:add|change|replace|make|follow|write) [^|]+) \| (.+) \|$",
        (ROOT / "CONTRIBUTING.md").read_text(),
        re.MULTILINE,
    )
)


def files_of(recipe: str, name: str = "NAME") -> set[str]:
    """Return the paths in a recipe (a row of the table in CONTRIBUTING.md), with `name` in place of the placeholder
    NAME."""
    return {
        path.replace("NAME", name)
        for path in re.findall(r"`((?:operator|scheduler_core|tests|manifests)/[^`]*)`", ROWS[recipe])
    }


def naming(pattern: str) -> set[str]:
    """Return the source files that contain the pattern."""
    return {module.where for module in all_modules() if re.search(pattern, module.path.read_text())}


@pytest.mark.parametrize("recipe", ROWS)
def test_every_file_that_a_recipe_lists_exists(recipe: str) -> None:
    plain = {path for path in files_of(recipe) if "NAME" not in path}
    assert {path for path in plain if not (ROOT / path).exists()} == set()


def test_the_recipe_for_adding_a_gate_lists_each_source_file_that_mentions_an_example_gate() -> None:
    """The example is the gate `minimum_interval`."""
    known = naming(r"\bminimum_interval\.\w|\bdef minimum_interval\(")
    assert known <= files_of("add a gate", "minimum_interval")
    assert known == {"operator/careen/core/gates/__init__.py", "operator/careen/core/gates/minimum_interval.py"}


def test_the_recipe_for_adding_a_setting_lists_each_source_file_that_mentions_an_example_setting() -> None:
    """The example is the setting `count_cordoned`. The recipe lists the folder `operator/careen/core/` as a whole, so
    the test does not look for single files of this folder. An exception is the subfolder `facts/`: the recipe must list
    its files one by one."""
    recipe = files_of("add a setting that decisions obey")
    known = {
        path
        for path in naming(r"\bcount_cordoned\b")
        if not path.startswith("operator/careen/core/") or "/facts/" in path
    }
    drawn = {"manifests/settings.yaml", "manifests/chart/values.yaml"}
    assert known == recipe - drawn - {
        "operator/careen/core/",
        "tests/chart/given.py",
    }


def test_each_recipe_for_adding_a_setting_lists_the_chart_files_with_settings() -> None:
    """The test finds the chart files by an example, the setting `countCordoned`. Other files contain this setting too,
    but the recipes need not list them: the generated files in manifests/chart/files/, and the chart values in
    tests/chart/values/ours.yaml."""
    chart = {"manifests/chart/values.yaml", "tests/chart/given.py"}
    places = [*(ROOT / "manifests").rglob("*.yaml"), *(ROOT / "tests" / "chart").glob("*.py")]
    by_hand = {
        str(path.relative_to(ROOT))
        for path in places
        if "files" not in path.parts and "countCordoned" in path.read_text()
    }
    assert by_hand - {"tests/chart/values/ours.yaml"} == chart
    for recipe in ("add a setting that decisions obey", "add a setting that decisions do not use"):
        assert chart <= files_of(recipe)


def test_the_recipe_for_another_key_lists_each_source_file_that_mentions_an_example_key() -> None:
    """The example is the annotation `careen.dev/prepared`. Only the step that writes it and the reports that show it
    mention the key besides."""
    reports = {"operator/careen/report/why_report.py", "operator/careen/report/live/node_document.py"}
    users = {"operator/careen/core/steps/shared/preparing.py", *reports}
    recipe = files_of("write another key on a Node") - {"manifests/admission/parameters.yaml"}
    assert naming(r"(?m)\bkeys\.PREPARED\b|^PREPARED\b") - users == recipe


def test_the_recipe_for_adding_a_phase_lists_every_file_with_a_table_of_all_phases() -> None:
    tables = {
        module.where
        for module in all_modules()
        if all(
            re.search(
                rf"^    (?:Phase\.)?{phase.name}\b.*[:=]|{phase.name}: |{phase.name} = ",
                module.path.read_text(),
                re.MULTILINE,
            )
            for phase in Phase
        )
    }
    assert tables <= files_of("add a phase", "settling")
    assert len(tables) >= 3


def test_the_recipe_for_adding_a_command_lists_each_source_file_that_mentions_an_example_command() -> None:
    """The example is the command `careen retry`, whose module is `careen.cli.retry`."""
    assert naming(r"careen\.cli\.retry\b") <= files_of("add a command", "retry")


def test_the_recipe_for_adding_a_plugin_lists_each_source_file_that_mentions_an_example_plugin() -> None:
    """The example is the plugin `NodeName`, whose module is `node_name`."""
    known = naming(r"\bplugins(?:\.| import .*)node_name\b|\"NodeName\"")
    assert known <= files_of("add a scheduler plugin", "node_name")
    assert len(known) >= 3

"""Tests that no function has more parameters, and no class more fields, than the recorded maximum. `python -m
tests.architecture.sizes` prints the current numbers.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.architecture import sizes
from tests.architecture.source_tree import Module, all_modules

CORE = "operator/careen/core/"
MOST_PARAMETERS = {"": 12, CORE: 8}

# Each of these classes is a list of similar things with one line each, so it may have more fields than MOST_FIELDS.
LISTS = {
    "operator/careen/settings/tree.py:Settings": "one field for each setting",
    "operator/careen/core/facts/memory.py:Memory": "one field for each thing that a process remembers",
    "operator/careen/core/facts/policy.py:Policy": "one field for each setting that decisions obey",
    "operator/careen/core/facts/progress.py:Progress": "one field for each key of the record on the Node",
    "operator/careen/core/facts/observation.py:NodeView": "one field for each part of a Node that a decision reads",
    "operator/careen/core/facts/observation.py:PodView": "one field for each part of a Pod that a decision reads",
    "operator/careen/core/observation.py:Observation": "one field for each observed fact",
    "scheduler_core/model/pod.py:PodSpec": "one field for each part of a Pod that a plugin reads",
}
MOST_FIELDS = {"": 19}


@pytest.mark.parametrize("folder", MOST_PARAMETERS)
def test_no_function_has_more_parameters_than_the_recorded_maximum(folder: str) -> None:
    found = [each for each in sizes.signatures() if each.where.startswith(folder)]
    assert [each for each in found if each.number > MOST_PARAMETERS[folder]] == []
    assert found, "the check found no function in this folder"


@pytest.mark.parametrize("folder", MOST_FIELDS)
def test_no_class_has_more_fields_than_the_recorded_maximum(folder: str) -> None:
    found = [each for each in sizes.classes() if each.where.startswith(folder) and each.where not in LISTS]
    assert [each for each in found if each.number > MOST_FIELDS[folder]] == []
    assert found, "the check found no class in this folder"


def test_each_exempt_class_has_more_fields_than_other_classes_may_have() -> None:
    assert LISTS.keys() <= {each.where for each in sizes.classes() if each.number > 18}


def test_the_line_count_covers_every_package() -> None:
    assert all(sizes.lines().values())


SOURCE = """
class Place:
    node: str
    zone: str = ""
    LIMIT = 3

    def at(self, one, *rest, two, **more): ...

    @classmethod
    def of(cls, one, /): ...

async def look(one, two): ...
"""


def test_the_parameter_self_and_fields_without_a_type_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    module = Module("a", sizes.ROOT / Path("a.py"), ast.parse(SOURCE))
    monkeypatch.setattr(sizes, "all_modules", lambda: (module,))
    assert sizes.signatures() == [(4, "a.py:at"), (2, "a.py:look"), (1, "a.py:of")]
    assert sizes.classes() == [(2, "a.py:Place")]


def test_the_sizes_command_prints_the_largest_measurements(capsys: pytest.CaptureFixture[str]) -> None:
    sizes.main()
    shown = capsys.readouterr().out
    assert f"| {sizes.signatures()[0].number} | {sizes.signatures()[0].where} |" in shown
    assert f"| {sizes.classes()[0].number} | {sizes.classes()[0].where} |" in shown
    assert f"| {sizes.lines()['careen']:,} | careen |" in shown


# The end of a sentence that names some items and counts the others, and the modules that may write it.
COUNTS_THE_REST = " and _ more"
WRITES_IT = {
    "scheduler_core/sentences.py": "the function that all other modules call",
}


def test_only_the_listed_modules_print_how_many_items_of_a_list_are_left_out() -> None:
    found = {module.where for module in all_modules() for text in module.strings() if text.endswith(COUNTS_THE_REST)}
    assert found == WRITES_IT.keys()


def test_only_one_module_contains_the_message_that_the_agent_has_not_read_a_fact() -> None:
    found = {
        module.where
        for module in all_modules()
        for text in module.strings()
        if text.startswith("the agent has not read this fact in this turn")
    }
    assert found == {"operator/careen/core/facts/observation.py"}


INSTANTS = {
    "operator/careen/core/facts/times.py": "parses and formats RFC 3339",
    "operator/careen/cluster/events.py": "formats a time for the name of an Event",
    "operator/careen/settings/lists/windows.py": "a date without a time",
    "scheduler_core/model/manifests/fields.py": "the parser of scheduler_core, which must not import careen",
}


def test_only_the_listed_modules_parse_or_format_times() -> None:
    found = {
        module.where
        for module in all_modules()
        if not module.where.startswith("drydock/")  # which shares no code with the agent that it judges
        for name, _ in module.calls()
        if name.rpartition(".")[2] in {"isoformat", "fromisoformat"}
    }
    assert found == INSTANTS.keys()

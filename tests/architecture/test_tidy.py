"""Tests small rules that keep the repository as ARCHITECTURE.md describes it."""

from __future__ import annotations

import ast
import re
import sys

import pytest

from careen.cli import COMMANDS
from tests.architecture.source_tree import PACKAGES, ROOT, Module, all_modules, modules
from tests.patience import run


def test_the_folder_named_operator_is_not_a_python_package() -> None:
    assert not (ROOT / "operator" / "__init__.py").exists()
    assert {path.name for path in (ROOT / "operator").iterdir() if not path.name.startswith((".", "__"))} == {
        "careen",
        "README.md",
    }


def test_python_at_the_repository_root_imports_operator_from_the_standard_library() -> None:
    program = "import operator; assert operator.itemgetter(0)([7]) == 7 and not hasattr(operator, '__path__')"
    done = run([sys.executable, "-c", program], cwd=ROOT)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", sorted(PACKAGES))
def test_every_folder_with_code_is_a_package(name: str) -> None:
    folders = {path.parent for path in PACKAGES[name].rglob("*.py")}
    assert {folder for folder in folders if not (folder / "__init__.py").exists()} == set()


# Modules that are started by name and never imported by Python.
ENTRY_POINTS = {"careen.__main__", "careen.cli.support.completion", "scheduler_core.__main__"} | {
    entry.module for entry in COMMANDS
}


def test_every_module_is_used() -> None:
    """A module counts as used if another module imports it, if it is an entry point, or if a child process runs it."""
    wanted = set(ENTRY_POINTS)
    for module in all_modules():
        for name in module.imports():
            wanted |= {name, name.rpartition(".")[0]} - {module.name}
        wanted |= {text for text in module.strings() if text.startswith(("careen.", "scheduler_core."))}
    # Part of the library for the tests of its users, and used by careen's tests in several folders.
    public = {"scheduler_core.testing", "scheduler_core.testing.builders", "drydock.server.testing"}
    public |= {"scheduler_core.running.record.recorder"}  # for the programs that run a Machine
    packages = {module.name for module in all_modules() if module.path.name == "__init__.py"}
    assert {module.name for module in all_modules()} - wanted - packages - public == set()


# Lists of similar modules, which may be long: a reader of one module understands the others.
LISTS = {"operator/careen/cli", "operator/careen/core/gates", "scheduler_core/plugins"}
MOST_FILES = 12


def test_no_folder_has_more_modules_than_allowed() -> None:
    folders = {module.path.parent for module in all_modules()} | {
        path.parent for path in (ROOT / "bench").rglob("*.py")
    }
    crowded = {
        str(folder.relative_to(ROOT)): len(files)
        for folder in folders
        if len(files := list(folder.glob("*.py"))) > MOST_FILES
    }
    assert crowded.keys() - LISTS == set()
    assert LISTS - {str(folder.relative_to(ROOT)) for folder in folders} == set()


def test_no_text_names_a_web_address_that_the_project_does_not_have() -> None:
    """`careen.dev` is the domain of careen's annotations and labels; nobody serves it."""
    found = run(["git", "grep", "--files-with-matches", "-E", "https?://([a-z]+[.])*careen[.]dev"], cwd=ROOT)
    if found.returncode not in (0, 1):
        pytest.skip("this folder is not a git checkout")
    assert found.stdout == ""


def test_every_module_has_a_docstring() -> None:
    assert [module.where for module in all_modules() if module.tree.body and not ast.get_docstring(module.tree)] == []


# One module reads the wall clock and one draws random numbers. All other modules get both as arguments.
BANNED = {
    r"(datetime\.)?datetime\.(now|utcnow|today)": "the current time",
    r"(datetime\.)?date\.today": "the current time",
    r"time\.(time|time_ns|monotonic|monotonic_ns|perf_counter|sleep)": "the current time",
    r"random\.\w+|secrets\.\w+|uuid\.uuid[14]|uuid4": "chance",
    r"os\.(getenv|environ\.get)": "the environment",
    r"print|breakpoint|eval|exec|pickle\.loads?|yaml\.load": "not here",
}
# module -> the reason why it may
MAY = {
    "careen.agent.clock": "the clock itself",
    "careen.cluster.wire.client": "seconds between two reloads of the credentials; tests in virtual time "
    "use no real connection",
    "careen.cli.config": "the command prints the source of each setting, and one source is the environment",
    "careen.library": "KUBECONFIG, as for kubectl",
    "careen.agent.handlers": "kopf runs in a separate thread, in real time",
    "careen.agent.asleep.sleeper": "a program of its own without careen's clock and log; it passes its random pauses",
    "careen.agent.telemetry.http_server": "a server that is handed over waits in real time for answers under way",
    "scheduler_core.__main__": "a command line",
    "careen.agent.observe": "random claim ids, because no two claims may have the same id",
    "careen.services.wire.bounded": "a thread stops asking when the real clock reaches the deadline",
    "scheduler_core.extenders.timed_http": "a thread stops reading a response at that deadline",
    "careen.services.wire.starts": "the age of a server's start, and how long its rules have not been evaluated",
    "scheduler_core.extenders.transport": "deadlines of requests to another scheduler",
}
MAY_FOLDERS = ("drydock",)  # simulated hosts run in real time, and the demo generates its cluster from a seed


def banned_calls(module: Module) -> list[str]:
    return [
        f"{module.where}:{line}: {name} ({what})"
        for name, line in module.calls()
        for pattern, what in BANNED.items()
        if re.fullmatch(pattern, name)
    ]


def test_only_the_listed_modules_call_banned_functions() -> None:
    """Some banned functions read the clock, wait, draw a random number, or read an environment variable. The others
    print, start the debugger, or can run code from their input."""
    found = [
        call
        for module in all_modules()
        if module.name not in MAY and not module.name.startswith(MAY_FOLDERS)
        for call in banned_calls(module)
    ]
    assert found == []


@pytest.mark.parametrize("name", sorted(MAY))
def test_an_unneeded_entry_in_the_list_of_exceptions_is_reported(name: str) -> None:
    (module,) = (each for each in all_modules() if each.name == name)
    assert banned_calls(module) != []


LONG = 450


def test_every_long_file_is_listed_with_a_reason() -> None:
    """The reason says why the long file still contains only one idea."""
    listed = set(re.findall(r"^\| `([\w./]+\.py)` \|", (ROOT / "docs" / "known-gaps.md").read_text(), re.MULTILINE))
    long = {module.where for module in all_modules() if len(module.path.read_text().splitlines()) > LONG}
    assert long == listed


def test_every_suppression_comment_contains_the_suppressed_check() -> None:
    nameless = re.compile(r"# noqa(?!:)|# type: ignore(?!\[)")
    found = [module.where for module in all_modules() if nameless.search(module.path.read_text())]
    assert found == []


def test_there_is_no_leftover_code() -> None:
    leftovers = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|raise NotImplementedError$", re.MULTILINE)
    found = [
        f"{module.where}: {match.group()}"
        for module in all_modules()
        if (match := leftovers.search(module.path.read_text()))
    ]
    assert found == []


def test_no_module_is_called_utils_or_helpers() -> None:
    empty = {"utils", "util", "helpers", "helper", "manager", "common", "misc", "data"}
    assert {module.where for module in all_modules() if module.path.stem in empty} == set()


@pytest.mark.parametrize("package", ["careen.core", "careen.cluster", "careen.report"])
def test_each_module_has_a_test(package: str) -> None:
    """A test file has the module's name, or a test imports the module. A module that only defines values needs
    no test.
    """
    top = ROOT / "tests" / package.replace(".", "/")
    missing = []
    for module in modules("careen"):
        does_something = any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in ast.walk(module.tree))
        if module.name.startswith(package + ".") and module.path.name != "__init__.py" and does_something:
            inside = module.name.removeprefix(package + ".").split(".")
            mirror = top.joinpath(*inside[:-1], f"test_{inside[-1]}.py")
            spoken_of = any(module.name in path.read_text() for path in top.rglob("test_*.py"))
            if not mirror.exists() and not spoken_of:
                missing.append(module.where)
    assert missing == []

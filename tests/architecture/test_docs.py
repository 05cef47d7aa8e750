"""Tests that the documentation is correct: commands exist, links have targets, and generated pages are up to date."""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
from pathlib import Path

import click
import pytest

from careen.cli import cli
from careen.core.facts.reasons import Code
from docs import shadow_example
from drydock.server.testing import server_in_thread
from tests.architecture.source_tree import ROOT
from tests.patience import run

PAGES = sorted(
    path
    for path in (
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("manifests/*.md"),
        *ROOT.glob("scheduler_core/*.md"),
        *ROOT.glob("bench/**/*.md"),
        *ROOT.glob("operator/*.md"),
        *ROOT.glob("tests/**/*.md"),
    )
)

ids = [str(path.relative_to(ROOT)) for path in PAGES]


# Except docs/decisions/: the record of a decision has no output to show.
READ_BY_USERS = [page for page in PAGES if page.parent == ROOT / "docs"]


@pytest.mark.parametrize("page", READ_BY_USERS, ids=lambda page: page.name)
def test_each_page_shows_an_example_before_its_second_heading(page: Path) -> None:
    first_screen = re.split(r"^#", page.read_text(), maxsplit=2, flags=re.MULTILINE)[1]
    before = first_screen.split("```")[0]
    assert "```" in first_screen, "begin the page with an example"
    assert len(before.splitlines()) <= 25, "the example is below the first screen"


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_every_file_that_the_docs_mention_exists(page: Path) -> None:
    named = set(re.findall(r"(?<![\w/.*-])((?:[\w-]+/)+[\w-]+\.(?:py|yaml|md|mk|toml))\b", page.read_text()))
    tops = (ROOT, page.parent, ROOT / "operator" / "careen", ROOT / "scheduler_core")
    assert {name for name in named if "NAME" not in name and not any((top / name).exists() for top in tops)} == set()


def commands_in(text: str, program: str) -> list[list[str]]:
    """Return the words of each command of `program` in code blocks and in backticks. A command ends at a comment, at a
    pipe, or at the next command of the shell.
    """
    fenced = "\n".join(re.findall(r"^```(?:console|sh|bash)?\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    inline = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
    lines = [*fenced.splitlines(), *inline]
    found = [match.group(1) for line in lines if (match := re.match(rf"^(?:\$ )?{program}\s+([^#;|&]*)", line.strip()))]
    return [
        shlex.split(words.replace("…", "").replace("...", ""))
        for words in found
        if "'" not in words or words.count("'") % 2 == 0
    ]


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_every_link_in_the_docs_has_a_target(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
    local = [link for link in links if not link.startswith(("http://", "https://"))]
    assert [link for link in local if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_every_make_target_that_the_docs_mention_exists(page: Path) -> None:
    makefiles = "\n".join(path.read_text() for path in (ROOT / "Makefile", *ROOT.glob("mk/*.mk")))
    targets = set(re.findall(r"^([a-z][\w-]*):", makefiles, re.MULTILINE))
    named = {
        word
        for words in commands_in(page.read_text(), "make")
        for word in words[:1]
        if "=" not in word and word.islower()
    }
    assert named - targets == set()


def parameters(command: click.Command) -> set[str]:
    return {name for each in command.params for name in (*each.opts, *each.secondary_opts)} | {"--help", "-h"}


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_every_careen_command_in_the_docs_exists_with_its_options(page: Path) -> None:
    wrong = []
    text = page.read_text().replace("kubectl careen", "careen")
    for words in commands_in(text, "careen"):
        command: click.Command = cli
        context = click.Context(cli)
        rest = list(words)
        while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
            name = rest.pop(0)
            names = name.split("|")
            inner = [command.get_command(context, each) for each in names]
            if any(each is None for each in inner):
                wrong.append(" ".join(words))
                break
            command = inner[0] or command
        else:
            unknown = {word.split("=")[0] for word in rest if word.startswith("--")} - parameters(command)
            wrong += [f"{' '.join(words)}: {option}" for option in sorted(unknown)]
    assert wrong == []


def generated() -> dict[str, str]:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {name: page() for name, page in module.PAGES.items()}


@pytest.mark.parametrize("name", ["docs/phases.md", "docs/reasons.md", "manifests/settings.yaml"])
def test_each_generated_page_is_up_to_date(name: str) -> None:
    assert (ROOT / name).read_text() == generated()[name], "run `make docs`"


def test_the_example_on_the_page_about_careen_shadow_is_up_to_date() -> None:
    text = (ROOT / "docs/shadow.md").read_text()
    assert text == shadow_example.page(), "run `make docs`"
    assert shadow_example.Example().table() in text


@pytest.mark.parametrize("code", list(Code), ids=str)
def test_each_reason_code_occurs_in_a_test(code: Code) -> None:
    spellings = (f"Code.{code.name}", f'"{code.value}"')
    tests = [path for path in (ROOT / "tests").rglob("test_*.py") if "architecture" not in path.parts]
    assert any(spelling in path.read_text() for path in tests for spelling in spellings)


def columns_line() -> str:
    (line,) = re.findall(r"^kubectl get nodes -L [^#\n]*", (ROOT / "README.md").read_text(), re.MULTILINE)
    return line


@pytest.mark.kubectl
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on the PATH")
def test_the_kubectl_command_of_the_readme_shows_a_roll_out(tmp_path: Path) -> None:
    labels = {"careen.dev/reboot": "in-progress"}
    with server_in_thread() as server:
        server.seed(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": labels}},
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n2"}},
        )
        kubeconfig = server.write_kubeconfig(tmp_path / "kubeconfig")
        done = run(
            shlex.split(columns_line()),
            env={
                "KUBECONFIG": str(kubeconfig),
                "HOME": str(tmp_path),
                "PATH": str(Path(shutil.which("kubectl") or "").parent),
            },
        )
    assert done.stderr == ""
    rows = [line.split() for line in done.stdout.splitlines()]
    assert (rows[0][-1], rows[1][0], rows[1][-1]) == ("REBOOT", "n1", "in-progress")
    assert (rows[2][0], rows[2][-1] != "in-progress") == ("n2", True)

"""Tests the import contracts in contracts.toml, and that each contract can fail."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from careen.agent.forecast.order import ForecastRequest
from scheduler_core.snapshot.dump import Header, write_dump
from tests.architecture.source_tree import PACKAGES, ROOT, Module, all_modules, modules
from tests.patience import run

CONTRACTS = ROOT / "tests" / "architecture" / "contracts.toml"
LINT = "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"


def lint(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (folder, folder / "operator")))}
    return run(
        [sys.executable, "-c", LINT, "--config", str(CONTRACTS), "--no-cache", "--no-logo", *options],
        cwd=folder,
        env=environment,
    )


def test_every_import_contract_holds() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the modules that import each other, directly or through other modules. Repeatedly removes the modules that
    import no remaining module, because they are in no circle.
    """
    left = {name: {other for other in wanted if other in graph and other != name} for name, wanted in graph.items()}
    while free := {name for name, wanted in left.items() if not wanted & left.keys()}:
        left = {name: wanted for name, wanted in left.items() if name not in free}
    return [[name, *sorted(wanted & left.keys())] for name, wanted in sorted(left.items())]


def imports_of(module: Module, names: set[str]) -> set[str]:
    """Return which modules of `names` the module imports, including imports inside functions and for the type
    checker.
    """
    return {name if name in names else name.rpartition(".")[0] for name in module.imports()} & names


def test_no_modules_import_each_other_in_a_circle() -> None:
    names = {module.name for module in all_modules() if module.path.name != "__init__.py"}
    assert circles({module.name: imports_of(module, names) for module in all_modules() if module.name in names}) == []


def test_the_check_finds_modules_that_import_each_other() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": set()}) == [
        ["a", "b"],
        ["b", "c"],
        ["c", "a"],
        ["d", "a"],
    ]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tree")
    for name, top in PACKAGES.items():
        shutil.copytree(top, folder / top.relative_to(ROOT), ignore=shutil.ignore_patterns("__pycache__"))
        assert (folder / top.relative_to(ROOT) / "__init__.py").exists(), name
    return folder


@pytest.mark.parametrize(
    ("contract", "file", "line"),
    [
        pytest.param(
            "layers",
            "operator/careen/core/facts/phases.py",
            "import careen.cluster.wire.errors",
            id="core calls the API server",
        ),
        pytest.param(
            "layers", "operator/careen/cluster/wire/errors.py", "import careen.agent", id="cluster imports the agent"
        ),
        pytest.param(
            "layers", "scheduler_core/cycle.py", "import careen.core.facts.phases", id="the library imports careen"
        ),
        pytest.param(
            "rooms-of-core",
            "operator/careen/core/facts/phases.py",
            "import careen.core.lock.line",
            id="a fact uses the lock",
        ),
        pytest.param(
            "rooms-of-core",
            "operator/careen/core/lock/line.py",
            "import careen.core.node.cordons",
            id="the lock uses its neighbour",
        ),
        pytest.param(
            "rooms-of-core",
            "operator/careen/core/node/cordons.py",
            "import careen.core.situation",
            id="what is on a Node depends on the situation",
        ),
        pytest.param(
            "core-is-pure", "operator/careen/core/facts/phases.py", "import time", id="a decision reads the clock"
        ),
        pytest.param(
            "core-is-pure", "operator/careen/core/decide.py", "import random", id="a decision uses randomness"
        ),
        pytest.param(
            "scheduler-core-is-pure", "scheduler_core/cycle.py", "import os", id="the library reads the environment"
        ),
        pytest.param(
            "report-is-pure",
            "operator/careen/report/tables.py",
            "import careen.cluster.wire.errors",
            id="a report calls the API server",
        ),
        pytest.param(
            "embedded-cluster-shares-no-code-with-the-agent",
            "drydock/checker/journal.py",
            "import careen.core.lock.content",
            id="the checker uses the agent's code",
        ),
        pytest.param(
            "only-the-demo-knows-the-embedded-cluster",
            "operator/careen/cli/status.py",
            "import drydock.server.store",
            id="a command uses the embedded cluster",
        ),
        pytest.param(
            "plugins-are-independent",
            "scheduler_core/plugins/node_name.py",
            "import scheduler_core.plugins.node_ports",
            id="a plugin imports another plugin",
        ),
    ],
)
def test_each_import_contract_rejects_a_violation(copy: Path, contract: str, file: str, line: str) -> None:
    source = copy / file
    before = source.read_text()
    source.write_text(before + "\n" + line + "\n")
    try:
        done = lint(copy, "--contract", contract)
    finally:
        source.write_text(before)
    assert done.returncode == 1, done.stdout + done.stderr
    assert file.removeprefix("operator/").removesuffix(".py").replace("/", ".") in done.stdout


# They import only its type.
CLIENTS_WITH_A_SESSION = {
    f"careen.services.{name}" for name in ("alertmanager", "prometheus", "silences", "wire.asking", "wire.starts")
}


@pytest.mark.parametrize(
    ("library", "importers", "why"),
    [
        ("kopf", {"careen.agent.handlers"}, "kopf can be replaced by changing one file"),
        ("kubernetes", {"careen.cluster.wire.client"}, "this Kubernetes client can be replaced by changing one file"),
        (
            "urllib3",
            {"careen.cluster.wire.client", "careen.cluster.wire.network_errors", "careen.services.wire.bounded"},
            "two clients use urllib3 without its retries; network_errors translates urllib3's errors",
        ),
        (
            "requests",
            {*CLIENTS_WITH_A_SESSION, "careen.services.wire.bounded", "careen.services.notify_child"},
            "every request to a service has the bounds of one module",
        ),
        ("prometheus_api_client", {"careen.services.prometheus"}, "only one module sends requests to Prometheus"),
        (
            "apprise",
            {"careen.services.notify_child"},
            "apprise is large, and its webhooks may hang, so only a child process loads it",
        ),
    ],
)
def test_each_restricted_library_is_imported_only_by_the_listed_modules(
    library: str, importers: set[str], why: str
) -> None:
    assert {module.name for module in modules("careen") if library in module.imported_libraries()} == importers, why


@pytest.mark.parametrize(
    ("library", "folders"),
    [
        ("rich", ("careen.cli", "drydock", "careen.report")),
        ("aiohttp", ("drydock",)),
        ("click", ("careen.cli", "careen.settings.tree", "careen.settings")),
        ("prometheus_client", ("careen.agent", "careen.scheduler")),
        ("subprocess", ("careen.host", "drydock", "careen.agent.forecast.forecaster")),
    ],
)
def test_each_restricted_library_is_imported_only_by_the_listed_packages(
    library: str, folders: tuple[str, ...]
) -> None:
    strangers = {
        module.name
        for module in modules("careen")
        if library in module.imported_libraries() and not module.name.startswith(folders)
    }
    assert strangers == set()


# A forecast is computed in a short-lived child process, so the resident agent never loads these modules.
# (requests is not in the list: the Kubernetes client loads it itself.)
HEAVY = {
    "apprise",
    "numpy",
    "rich",
    "pandas",
    "prometheus_api_client",
    "kubernetes_asyncio",
    "kubernetes.aio",
    "kubernetes.client.models.v1_pod",
    "kubernetes.client.api.core_v1_api",
}


def loaded_after(statement: str, *suspects: str) -> set[str]:
    program = f"{statement}\nimport sys, json\nprint(json.dumps(sorted(set(sys.modules) & set({list(suspects)!r}))))"
    done = run([sys.executable, "-c", program], cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_agent_process_imports_no_heavy_library() -> None:
    everything_resident = (
        "import careen.cli.agent, careen.agent.startup.wiring, careen.agent.handlers, "
        "careen.agent.turn, careen.core.decide"
    )
    assert loaded_after(everything_resident, *HEAVY) == set()


def test_the_check_for_heavy_libraries_finds_numpy_and_rich() -> None:
    assert loaded_after("import numpy, rich", *HEAVY) == {"numpy", "rich"}


def test_importing_the_scheduler_library_does_not_load_numpy() -> None:
    assert loaded_after("import scheduler_core", "numpy") == set()


def test_listing_the_commands_imports_no_command_module() -> None:
    program = textwrap.dedent("""
        from click.testing import CliRunner
        from careen.cli import cli
        assert CliRunner().invoke(cli, ["--help"]).exit_code == 0
    """)
    assert (
        loaded_after(program, "careen.cli.status", "careen.cli.demo", "careen.cli.agent", "kopf", "kubernetes") == set()
    )


# A forecast from a dump is two processes, and loading them is a third of its time. Neither asks a server.
OF_SERVERS = {
    "kubernetes",
    "kopf",
    "urllib3",
    "tenacity",
    "prometheus_client",
    "careen.cluster.wire.api",
    "careen.cli.support.connection",
    "importlib.metadata",
}
OF_DECISIONS = {"careen.settings.tree", "careen.core.decision", "careen.core.gates", "careen.core.drain.drain_plan"}


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "dump.json.gz"
    node = {"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "1", "pods": "10"}}}
    with path.open("wb") as file:
        write_dump(
            Header(kube_version="v1.36.0", taken_at="2026-01-02T03:04:05Z"),
            [json.dumps({"kind": "NodeList", "apiVersion": "v1", "items": [node]}).encode()],
            file,
        )
    return path


@pytest.mark.parametrize("output", ["table", "json"])
def test_the_parent_process_of_a_forecast_from_a_dump_imports_no_client_or_simulation(dump: Path, output: str) -> None:
    program = textwrap.dedent(f"""
        from careen.cli import cli
        assert cli.main(["forecast", "n1", "--from", {str(dump)!r}, "--output", {output!r}], standalone_mode=False) == 0
        import sys
        assert "careen.report.forecast_report" in sys.modules
    """)
    assert loaded_after(program, *OF_SERVERS, *OF_DECISIONS, *HEAVY, "yaml") == set()


def test_the_child_process_of_a_forecast_from_a_dump_imports_only_the_simulation(dump: Path) -> None:
    order = ForecastRequest(nodes=("n1",), kubeconfig="", memory_bytes=2**30, scheduler_config="", dump=str(dump))
    program = textwrap.dedent(f"""
        import io, sys
        sys.stdin = io.StringIO({order.to_json().decode()!r})
        from careen.agent.forecast.child import main
        assert main() == 0
        print()
    """)
    assert loaded_after(
        program, *OF_SERVERS, *OF_DECISIONS, *HEAVY - {"numpy"}, "yaml", "asyncio", "click", "scheduler_core.cycle"
    ) == {"scheduler_core.cycle"}


def test_careen_explain_with_a_dump_imports_no_kubernetes_client() -> None:
    assert loaded_after("import careen.cli.explain", *OF_SERVERS, *OF_DECISIONS, "yaml") == set()

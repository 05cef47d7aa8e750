"""Tests all parts of `careen forecast` together: the command, the lists over HTTP, the child process, scheduler_core
and the table."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from drydock.server.testing import server_in_thread
from scheduler_core.simulation.forecast import Forecast, Outcome
from tests.careen.cli.conftest import Desk


def a_node(name: str, cpu: str = "4") -> dict[str, Any]:
    resources = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def a_replica(name: str, node: str, cpu: str = "1", owner: str = "web", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "labels": {"app": owner},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": owner,
                    "uid": f"uid-replicasets-shop-{owner}",
                    "controller": True,
                }
            ],
        },
        "spec": {
            "nodeName": node,
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}],
            **spec,
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def a_replica_set(name: str, replicas: int) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
        "status": {"replicas": replicas, "readyReplicas": replicas},
    }


def test_forecast_exits_with_0_if_all_pods_fit_on_other_nodes(desk: Desk) -> None:
    desk.server.seed(a_node("n1"), a_node("n2"), a_replica_set("web", 1), a_replica("web-1", "n1"))
    output = desk.ok("forecast", "n1")
    assert [line.split()[:3] for line in output.splitlines()[2:4]] == [
        ["POD", "OUTCOME", "TO"],
        ["shop/web-1", "moves", "n2"],
    ]
    assert "1 pod: 1 moves." in output
    assert output.splitlines()[-1] == "An agent with the default settings would drain n1."


def test_pods_that_the_agents_selector_excludes_stay_on_the_node(desk: Desk) -> None:
    desk.lock(flags=["--drain-pod-selector=app=web"])
    desk.server.seed(
        a_node("n1"),
        a_node("n2"),
        a_replica_set("web", 1),
        a_replica("web-1", "n1"),
        a_replica_set("db", 1),
        a_replica("db-1", "n1", cpu="3", owner="db"),
    )
    made = Forecast.from_mapping(desk.json("forecast", "n1"))
    assert [(pod.name, pod.outcome) for pod in made.pods] == [("db-1", Outcome.STAYS), ("web-1", Outcome.MOVES)]


def test_forecast_exits_with_3_and_prints_the_schedulers_message_if_a_pod_fits_on_no_node(desk: Desk) -> None:
    desk.server.seed(a_node("n1"), a_node("n2"), a_replica_set("web", 1), a_replica("web-1", "n1", cpu="3"))
    desk.server.seed(a_replica_set("other", 1), a_replica("other-1", "n2", cpu="2", owner="other"))
    result = desk.run("forecast", "n1", "--output", "json")
    assert result.exit_code == 3
    made = Forecast.from_mapping(yaml.safe_load(result.output))
    assert [(pod.name, pod.outcome) for pod in made.pods] == [("web-1", Outcome.PENDING)]
    assert made.pods[0].sentence.startswith(
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable."
    )


def test_a_pod_that_fits_only_on_its_node_returns_to_that_node(desk: Desk) -> None:
    desk.server.seed(a_node("n1", cpu="8"), a_node("n2"), a_replica_set("web", 1), a_replica("web-1", "n1", cpu="6"))
    assert "shop/web-1   returns" in desk.ok("forecast", "n1")


def test_forecast_exits_with_3_if_a_disruption_budget_allows_no_eviction(desk: Desk) -> None:
    desk.server.seed(
        a_node("n1"),
        a_node("n2"),
        a_replica_set("web", 1),
        a_replica("web-1", "n1"),
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "web", "namespace": "shop", "generation": 1},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
            "status": {
                "observedGeneration": 1,
                "disruptionsAllowed": 0,
                "currentHealthy": 1,
                "desiredHealthy": 1,
                "expectedPods": 1,
            },
        },
    )
    result = desk.run("forecast", "n1")
    assert result.exit_code == 3
    assert "blocked" in result.output
    assert "the pod can never be evicted in the current state: " in result.output


def test_forecast_exits_with_4_if_another_scheduler_schedules_a_pod(desk: Desk) -> None:
    desk.server.seed(
        a_node("n1"), a_node("n2"), a_replica_set("web", 1), a_replica("web-1", "n1", schedulerName="mine")
    )
    result = desk.run("forecast", "n1")
    assert result.exit_code == 4, result.output
    assert "shop/web-1   unknown" in result.output


def test_a_failed_forecast_exits_with_4_and_shows_the_reason(desk: Desk) -> None:
    desk.server.seed(a_node("n1"))
    desk.server.api.authorizer = lambda user, verb, group, resource, namespace, name: resource != "poddisruptionbudgets"
    result = desk.run("forecast", "n1")
    assert result.exit_code == 4
    assert "Error: the forecast could not be made: " in result.output
    assert "poddisruptionbudgets" in result.output


def test_forecast_changes_nothing_in_the_cluster(desk: Desk) -> None:
    desk.server.seed(a_node("n1"), a_node("n2"), a_replica_set("web", 1), a_replica("web-1", "n1"))
    desk.ok("forecast", "n1")
    assert desk.writes() == 0


def test_forecast_of_a_missing_node_is_a_usage_error(desk: Desk) -> None:
    desk.server.seed(a_node("n1"))
    result = desk.run("forecast", "n11")
    assert result.exit_code == 2
    assert "there is no Node 'n11'; did you mean n1?" in result.output


def test_forecast_uses_the_given_scheduler_configuration(desk: Desk, tmp_path: Any) -> None:
    desk.server.seed(
        a_node("n1"), a_node("n2"), a_replica_set("web", 1), a_replica("web-1", "n1", schedulerName="mine")
    )
    file = tmp_path / "scheduler.yaml"
    file.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "profiles": [{"schedulerName": "mine"}],
            }
        )
    )
    output = desk.ok("forecast", "n1", "--scheduler-config", str(file))
    assert "shop/web-1   moves" in output


STUCK = (
    a_node("n1"),
    a_node("n2"),
    a_replica_set("web", 1),
    a_replica("web-1", "n1", cpu="3"),
    a_replica_set("other", 1),
    a_replica("other-1", "n2", cpu="2", owner="other"),
)


def test_the_forecast_verdict_uses_the_flags_of_the_agents(desk: Desk) -> None:
    desk.server.seed(*STUCK)
    desk.lock(flags=["--forecast-pending-allowed=1"])
    result = desk.run("forecast", "n1")
    assert result.exit_code == 3
    assert result.output.splitlines()[-1] == "The agent would drain n1."


def test_the_forecast_verdict_uses_the_configmap_of_the_agents(desk: Desk) -> None:
    desk.server.seed(
        *STUCK,
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "careen", "namespace": "careen"},
            "data": {"config.yaml": "forecast: warn\n"},
        },
    )
    desk.lock()
    assert (
        desk.run("forecast", "n1").output.splitlines()[-1]
        == "The agent would drain n1 whatever the forecast says, because of --forecast=warn."
    )


def test_forecast_uses_the_scheduler_configuration_of_the_agents(desk: Desk) -> None:
    configuration = yaml.safe_dump(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": "mine"}],
        }
    )
    desk.server.seed(
        a_node("n1"),
        a_node("n2"),
        a_replica_set("web", 1),
        a_replica("web-1", "n1", schedulerName="mine"),
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "careen", "namespace": "careen"},
            "data": {"scheduler.yaml": configuration},
        },
    )
    desk.lock(flags=["--scheduler-config=configmap:scheduler.yaml"])
    assert "shop/web-1   moves" in desk.ok("forecast", "n1")


@pytest.mark.parametrize(
    "flags",
    [[], ["--config-map-may-name-files"]],
    ids=["without --config-map-may-name-files", "with --config-map-may-name-files"],
)
@pytest.mark.parametrize("command", ["forecast", "plan"])
def test_the_agents_configmap_cannot_make_the_command_open_a_local_file(
    desk: Desk, tmp_path: Path, command: str, flags: list[str]
) -> None:
    """The scheduler's configuration in the ConfigMap may name local files, such as certificates. If the command opened
    these files, a person who may edit the ConfigMap could choose which files of the command's user are read."""
    extender = {"urlPrefix": "https://127.0.0.1:1", "filterVerb": "filter", "tlsConfig": {"caFile": "/no/such/file"}}
    configuration = yaml.safe_dump(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "extenders": [extender],
        }
    )
    desk.server.seed(
        a_node("n1"),
        a_node("n2"),
        a_replica_set("web", 1),
        a_replica("web-1", "n1"),
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "careen", "namespace": "careen"},
            "data": {"scheduler.yaml": configuration},
        },
    )
    desk.lock(flags=["--scheduler-config=configmap:scheduler.yaml", *flags])
    refusal = "extenders[0].tlsConfig.caFile: the field must not name a file"
    refused = desk.run(command, *(["n1"] if command == "forecast" else []))
    assert refusal in refused.output, refused.output
    assert refused.exit_code != 0
    own = tmp_path / "own.yaml"
    own.write_text(configuration)
    mine = desk.run(command, *(["n1"] if command == "forecast" else []), "--scheduler-config", str(own))
    assert refusal not in f"{mine.output}{mine.exception}", "the user of the command may name local files"


@pytest.mark.parametrize(
    ("flags", "note"),
    [
        (
            ["--scheduler-config=/etc/scheduler.yaml"],
            (
                "Note: the agents use the scheduler's configuration in /etc/scheduler.yaml, which this command cannot "
                "read: give the configuration with --scheduler-config."
            ),
        ),
        (
            ["--concurrency=none"],
            (
                "Note: the agents' settings could not be read, so the defaults are used: --concurrency='none': "
                "expected a whole number"
            ),
        ),
    ],
    ids=["the configuration is a file on the agents' hosts", "a setting has an invalid value"],
)
def test_forecast_says_why_the_agents_settings_cannot_be_read(desk: Desk, flags: list[str], note: str) -> None:
    desk.server.seed(a_node("n1"))
    desk.lock(flags=flags)
    assert note in desk.ok("forecast", "n1")


@pytest.mark.parametrize(
    ("context", "says", "code"), [("careen-demo", "If n1 were drained now", 0), ("other", "there is no Node 'n1'", 2)]
)
def test_the_child_process_of_forecast_uses_the_kubeconfig_context_of_the_command(
    desk: Desk, context: str, says: str, code: int
) -> None:
    desk.server.seed(a_node("n1"))
    with server_in_thread() as elsewhere:
        elsewhere.seed(a_node("n9"))
        kubeconfig = yaml.safe_load(desk.kubeconfig.read_text())
        kubeconfig["contexts"].append({"name": "other", "context": {"cluster": "elsewhere", "user": "admin"}})
        kubeconfig["clusters"].append({"name": "elsewhere", "cluster": {"server": elsewhere.url}})
        kubeconfig["current-context"] = "other" if context == "careen-demo" else "careen-demo"
        desk.kubeconfig.write_text(yaml.safe_dump(kubeconfig))
        result = desk.run("forecast", "n1", "--context", context)
        assert (says in result.output, result.exit_code) == (True, code), result.output


TWO = (
    a_node("n1"),
    a_node("n2"),
    a_node("n3"),
    a_replica_set("web", 2),
    a_replica("web-1", "n1"),
    a_replica("web-2", "n2"),
)


def test_a_forecast_of_several_nodes_places_no_pod_on_these_nodes(desk: Desk) -> None:
    desk.server.seed(*TWO)
    output = desk.ok("forecast", "n1", "n2")
    first, second = output.split("\n\nIf ")
    assert first.startswith("If n1 and 1 other node were drained now (a forecast for 1 pod, made ")
    assert second.startswith("n2 and 1 other node were drained now (a forecast for 1 pod, made ")
    assert ["shop/web-1", "moves", "n3"] in [line.split()[:3] for line in first.splitlines()]
    assert ["shop/web-2", "moves", "n3"] in [line.split()[:3] for line in second.splitlines()]


def test_the_forecast_of_several_nodes_lists_each_node_once(desk: Desk) -> None:
    desk.server.seed(*TWO)
    assert [each["node"] for each in desk.json("forecast", "n2", "n1", "n2")["forecasts"]] == ["n2", "n1"]
    assert desk.json("forecast", "n1", "n1")["node"] == "n1"


def test_forecast_of_several_nodes_exits_with_the_code_of_the_worst_result(desk: Desk) -> None:
    """If only n1 or only n2 is drained, its pod fits on another node. If n1 and n2 are both drained, one of the two
    pods has no room, because n3 has room for one pod only."""
    desk.server.seed(
        a_node("n1"),
        a_node("n2"),
        a_node("n3", cpu="2"),
        a_replica_set("web", 2),
        a_replica("web-1", "n1", cpu="2"),
        a_replica("web-2", "n2", cpu="2"),
    )
    assert [desk.run("forecast", *names).exit_code for names in (["n1"], ["n2"], ["n1", "n2"])] == [0, 0, 3]


@pytest.fixture
def dump(desk: Desk, tmp_path: Path) -> Path:
    desk.server.seed(*TWO, a_replica_set("big", 1), a_replica("big-1", "n3", cpu="3", owner="big"))
    file = tmp_path / "dump.json.gz"
    desk.ok("snapshot", "--file", str(file))
    return file


def test_a_forecast_from_a_dump_equals_the_live_forecast_and_sends_no_request(desk: Desk, dump: Path) -> None:
    for names, code in ((["n1"], 0), (["n3"], 0), (["n1", "n2"], 3)):
        live, replayed = (
            desk.run("forecast", *names, *more, "--output", "json")
            for more in ([], ["--from", str(dump), "--kubeconfig", "/nowhere"])
        )
        mine, theirs = (yaml.safe_load(each.output) for each in (live, replayed))
        assert live.exit_code == replayed.exit_code == code
        for one, other in zip(mine.get("forecasts", [mine]), theirs.get("forecasts", [theirs]), strict=True):
            assert one["pods"] == other["pods"]


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["n9"], "there is no Node 'n9' among the 3 Nodes of this dump"),
        (["n1", "n8"], "there is no Node 'n8' among the 3 Nodes of this dump"),
    ],
)
def test_forecast_of_a_node_missing_from_the_dump_is_a_usage_error(
    desk: Desk, dump: Path, names: list[str], sentence: str
) -> None:
    result = desk.run("forecast", *names, "--from", str(dump))
    assert (result.exit_code, sentence in result.output) == (2, True), result.output


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda whole: b"", "the dump is empty"),
        (lambda whole: whole[: len(whole) // 2], "the dump is cut off or damaged"),
        (lambda whole: b"kind: Pod", "this is not a gzip file"),
        (
            lambda whole: gzip.compress(gzip.decompress(whole).replace(b'"version":1', b'"version":7')),
            "the dump has version 7; this release reads version 1",
        ),
    ],
    ids=["empty", "cut off", "no gzip", "of another version"],
)
def test_forecast_refuses_an_incomplete_dump_with_exit_code_2(
    desk: Desk, dump: Path, spoil: Callable[[bytes], bytes], sentence: str
) -> None:
    dump.write_bytes(spoil(dump.read_bytes()))
    result = desk.run("forecast", "n1", "--from", str(dump))
    assert (result.exit_code, sentence in result.output) == (2, True), result.output


def test_forecast_without_a_node_name_exits_with_2(desk: Desk) -> None:
    result = desk.run("forecast")
    assert (result.exit_code, "Missing argument 'NODE...'" in result.output) == (2, True), result.output


def a_full_cluster() -> list[dict[str, Any]]:
    """Return a cluster of two nodes with three replicas on n1. The replicas do not fit on n2, because n2 is full."""
    return [
        a_node("n1"),
        a_node("n2"),
        a_replica_set("web", 3),
        a_replica_set("full", 1),
        a_replica("full-1", "n2", "4", owner="full"),
        *(a_replica(f"web-{number}", "n1", "1300m") for number in (1, 2, 3)),
    ]


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (
            "n2=1",
            (
                "With 1 more node like n2, 3 of the 3 pods that find no room would find a place. "
                "To place all 3 pods, it is enough to add 1 node like n2."
            ),
        ),
        (
            "n2=7",
            (
                "With 7 more nodes like n2, 3 of the 3 pods that find no room would find a place. "
                "To place all 3 pods, it is enough to add 1 node like n2 instead of 7."
            ),
        ),
    ],
)
def test_forecast_says_how_many_more_nodes_would_be_enough(desk: Desk, wanted: str, told: str) -> None:
    desk.server.seed(*a_full_cluster())
    output = desk.run("forecast", "n1", "--with-nodes", wanted)
    assert output.exit_code == 3  # --with-nodes does not change the exit code
    assert told in " ".join(output.stdout.split())


def test_forecast_as_json_lists_the_pods_that_fit_on_the_added_nodes(desk: Desk) -> None:
    desk.server.seed(*a_full_cluster())
    told = json.loads(desk.run("forecast", "n1", "--with-nodes=n2=1", "--output=json").stdout)["moreNodes"]
    assert set(told["placed"].values()) == {"n2-new-1"}
    assert sorted(told["placed"]) == ["shop/web-1", "shop/web-2", "shop/web-3"]
    assert told | {"placed": 3} == {
        "template": "n2",
        "count": 1,
        "pods": 3,
        "placed": 3,
        "refused": {},
        "needed": 1,
        "bestCount": 1,
        "bestPlaced": 3,
        "tried": 1,
    }


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (
            ("n2=1", "SMALL=2"),
            (
                "With 1 more node like n2, 2 more nodes like small, 3 of the 3 pods that find no room would find a "
                "place. To place all 3 pods, it is enough to add 1 like n2."
            ),
        ),
        (
            ("n2=1@9", "SMALL=2@1.5"),
            (
                "With 1 more node like n2, 2 more nodes like small, 3 of the 3 pods that find no room would find a "
                "place. To place all 3 pods, it is enough to add 3 like small for 4.5."
            ),
        ),
        (("TINY=1", "OTHER=1@2"), "More nodes like tiny, other would take none of these pods."),
    ],
)
def test_forecast_finds_the_cheapest_of_several_kinds_of_nodes(
    desk: Desk, tmp_path: Path, wanted: tuple[str, ...], told: str
) -> None:
    desk.server.seed(*a_full_cluster())
    for name, cpu in (("small", "1500m"), ("tiny", "1"), ("other", "1")):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(a_node(name, cpu=cpu)))
        wanted = tuple(each.replace(name.upper(), f"{tmp_path}/{name}.yaml") for each in wanted)
    output = desk.run("forecast", "n1", *(f"--with-nodes={each}" for each in wanted))
    assert output.exit_code == 3
    assert told in " ".join(output.stdout.split())


def test_forecast_as_json_says_how_many_nodes_of_each_kind(desk: Desk) -> None:
    desk.server.seed(*a_full_cluster(), a_node("n3", cpu="1"))
    ran = desk.run("forecast", "n1", "--with-nodes=n2=1@2", "--with-nodes=n3=1", "--output=json")
    told = json.loads(ran.stdout)["moreNodes"]
    assert {key: told[key] for key in ("count", "needed", "added", "cheapest", "price")} == {
        "count": 2,
        "needed": 1,
        "added": {"n2": 1, "n3": 1},
        "cheapest": {"n2": 1},
        "price": 2.0,
    }


def test_two_templates_of_one_name_are_refused(desk: Desk) -> None:
    desk.server.seed(*a_full_cluster())
    output = desk.run("forecast", "n1", "--with-nodes=n2=1", "--with-nodes=n2=2")
    assert output.exit_code == 2
    assert "two offers have the name n2" in output.stderr


def test_the_with_nodes_flag_of_forecast_accepts_a_file_with_a_node(desk: Desk, tmp_path: Path) -> None:
    desk.server.seed(*a_full_cluster())
    path = tmp_path / "node.yaml"
    path.write_text(yaml.safe_dump(a_node("n3", cpu="1")))
    output = " ".join(desk.run("forecast", "n1", f"--with-nodes={path}=2").stdout.split())
    assert "With 2 more nodes like n3, 0 of the 3 pods that find no room would find a place." in output
    assert "shop/web-1, shop/web-2, shop/web-3 would still find no place: Insufficient cpu." in output
    assert "More nodes like the node n3 would take none of these pods (the simulation tried up to 1 node)." in output


def test_a_template_may_lack_a_name_and_have_a_field_of_a_newer_api_server(desk: Desk, tmp_path: Path) -> None:
    desk.server.seed(*a_full_cluster())
    path = tmp_path / "node.yaml"
    template = a_node("n3", cpu="1")
    del template["metadata"]["name"]
    path.write_text(yaml.safe_dump({**template, "spec": {"newIn138": True}}))
    output = " ".join(desk.run("forecast", "n1", f"--with-nodes={path}=2").stdout.split())
    assert "With 2 more nodes like node, 0 of the 3 pods that find no room would find a place." in output


def test_forecast_says_that_more_nodes_make_no_difference_if_all_pods_fit_already(desk: Desk) -> None:
    desk.server.seed(a_node("n1"), a_node("n2"), a_replica_set("web", 1), a_replica("web-1", "n1"))
    output = " ".join(desk.ok("forecast", "n1", "--with-nodes=n2=3").split())
    assert (
        "3 more nodes like n2 would make no difference, because every pod finds a place without more nodes." in output
    )


def test_forecast_notes_that_one_more_node_would_take_all_pending_pods(desk: Desk) -> None:
    desk.server.seed(*a_full_cluster())
    output = " ".join(desk.run("forecast", "n1").stdout.split())
    assert "Note: one more node like n1 would take all 3 pods that find no room." in output


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ("n2", "is not of the form TEMPLATE=N"),
        ("=2", "is not of the form TEMPLATE=N"),
        ("n2=", "is not a number of nodes from 1 to 1000"),
        ("n2=0", "is not a number of nodes from 1 to 1000"),
        ("n2=-1", "is not a number of nodes from 1 to 1000"),
        ("n2=1001", "is not a number of nodes from 1 to 1000"),
        ("n2=" + "9" * 5000, "is not a number of nodes from 1 to 1000"),
        ("n2=1.5", "is not a number of nodes from 1 to 1000"),
        ("n2=1@", "'' is not a price such as 0.4"),
        ("n2=1@-2", "'-2' is not a price such as 0.4"),
        ("n2=1@nan", "'nan' is not a price such as 0.4"),
        ("n2=²", "is not a number of nodes from 1 to 1000"),
        ("n9=1", "there is no Node 'n9' among the 2"),
        ("/no/such/file.yaml=1", "cannot be read"),
    ],
)
def test_invalid_values_of_the_with_nodes_flag_are_refused(desk: Desk, wanted: str, why: str) -> None:
    desk.server.seed(*a_full_cluster())
    output = desk.run("forecast", "n1", f"--with-nodes={wanted}")
    assert output.exit_code == 2
    assert why in " ".join(output.stderr.split())


@pytest.mark.parametrize("text", ["[]", "kind: Pod", "a: [", "kind: Node\napiVersion: v1\nmetadata: 7", "\x00"])
def test_a_template_file_that_does_not_contain_a_valid_node_is_refused(desk: Desk, tmp_path: Path, text: str) -> None:
    desk.server.seed(*a_full_cluster())
    path = tmp_path / "no.yaml"
    path.write_text(text)
    output = desk.run("forecast", "n1", f"--with-nodes={path}=1")
    assert (output.exit_code, output.stdout) == (2, "")

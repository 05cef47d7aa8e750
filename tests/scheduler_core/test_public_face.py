"""What `import scheduler_core` offers: names, readers of files, utilisation, plans, deprecation."""

from __future__ import annotations

import inspect
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import scheduler_core
from docs import library_api
from scheduler_core import (
    Forecast,
    NodeOffer,
    NodesAtOnce,
    Outcome,
    Scheduler,
    Snapshot,
    cheapest_mix,
    like_node,
    load_objects,
    nodes_needed,
    simulate_drain,
    simulate_rollout,
)
from scheduler_core.snapshot.dump import Header, write_dump
from scheduler_core.testing.builders import a_node, a_pod, manifests

ROOT = Path(__file__).parents[2]
BEGINS = datetime(2026, 1, 5, tzinfo=UTC)


# ---- names ----


def test_dir_has_the_public_names_only_and_each_can_be_imported() -> None:
    assert dir(scheduler_core) == sorted(["__version__", *scheduler_core.__all__])
    assert set(scheduler_core._HOME) == set(scheduler_core.__all__)
    for name in scheduler_core.__all__:
        value = getattr(scheduler_core, name)
        assert not (inspect.isclass(value) or inspect.isfunction(value)) or value.__doc__, name


def test_an_old_name_works_and_warns_with_the_new_one() -> None:
    with pytest.warns(DeprecationWarning, match="of_manifest is now scheduler_core.template_from_manifest"):
        old = scheduler_core.of_manifest
    assert old is scheduler_core.template_from_manifest


def test_the_page_of_this_release_has_every_public_name() -> None:
    assert (ROOT / library_api.PAGE).read_text(encoding="utf-8") == library_api.page(), "run `make docs`"
    assert all(f"\n## {name}" in library_api.page() for name in scheduler_core.__all__)


# ---- manifests ----


def deployment(name: str = "web", *, replicas: int = 3, **spec: Any) -> dict[str, Any]:
    container = {"name": "web", "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": "250m"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "replicas": replicas,
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **spec}},
        },
    }


NODES = manifests(a_node("n1").with_labels({"pool": "a"}), a_node("n2").cordoned())
DAEMON = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "agent"},
    "spec": {"template": {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": [{"name": "a"}]}}},
}


def in_folder(folder: Path) -> Any:
    (folder / "deep").mkdir()
    (folder / "nodes.json").write_text(json.dumps({"kind": "List", "items": NODES}))
    (folder / "deep" / "web.yaml").write_text(yaml.safe_dump_all([deployment(), DAEMON]))
    (folder / "notes.txt").write_text("no manifest")
    return (folder,)


SOURCES: dict[str, Callable[[Path], Any]] = {
    "mappings": lambda _: (*NODES, deployment(), DAEMON),
    "a list and a text": lambda _: (NODES, yaml.safe_dump_all([deployment(), DAEMON])),
    "JSON": lambda _: (json.dumps([*NODES, deployment(), DAEMON]),),
    "bytes": lambda _: (json.dumps({"kind": "List", "items": [*NODES, deployment(), DAEMON]}).encode(),),
    "a folder": in_folder,
    "files": lambda folder: (
        in_folder(folder)[0] / "nodes.json",
        str(folder / "deep" / "web.yaml"),
    ),
}


@pytest.mark.parametrize("form", SOURCES)
def test_manifests_of_any_form_become_the_same_cluster(form: str, tmp_path: Path) -> None:
    found = Snapshot.from_manifests(*SOURCES[form](tmp_path))
    assert found.problems == ()
    assert found.node_names == ("n1", "n2")
    assert [pod.key for pod in found.pending] == [
        *(f"shop/web-{number}" for number in range(3)),
        "default/agent-n1",
        "default/agent-n2",
    ]


def test_a_daemon_sets_pods_go_to_their_nodes_even_to_a_cordoned_one() -> None:
    snapshot = Snapshot.from_manifests(NODES, DAEMON)
    assert [Scheduler().schedule(snapshot, pod).node for pod in snapshot.pending] == ["n1", "n2"]
    chosen = {**DAEMON, "spec": {"template": {"spec": {"nodeSelector": {"pool": "a"}, "containers": [{"name": "a"}]}}}}
    assert [pod.name for pod in Snapshot.from_manifests(NODES, chosen).pending] == ["agent-n1"]


def test_requests_come_from_limits_and_the_priority_from_the_class() -> None:
    gold = {"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": "gold"}, "value": 7}
    found = Snapshot.from_manifests(deployment(replicas=1, priorityClassName="gold"), gold)
    (pod,) = found.pending
    assert pod.priority == 7
    whole = found.with_node_added(a_node("n9").build()).with_pod_placed(pod, "n9")
    usage = whole.utilisation()
    assert dict(zip(usage.resources, usage.requested[:, 0].tolist(), strict=True)) == {
        "cpu": 250,
        "memory": 2**30,
        "ephemeral-storage": 0,
        "pods": 1,
    }
    default = Snapshot.from_manifests(deployment(replicas=1), {**gold, "globalDefault": True})
    assert [pod.priority for pod in default.pending] == [7]


def test_an_unknown_priority_class_leaves_the_workload_out_and_says_why() -> None:
    found = Snapshot.from_manifests(deployment(priorityClassName="gold"))
    assert found.pending == ()
    (problem,) = found.problems
    assert str(problem) == (
        "Deployment shop/web: spec.template.spec.priorityClassName: there is no PriorityClass 'gold' among the "
        "manifests, so no API server would accept the pods"
    )


def test_a_served_workload_has_its_pods_beside_it() -> None:
    served = deployment()
    served["metadata"]["uid"] = "u1"
    pod = manifests(a_pod("web-x"))[0]
    assert [pod.name for pod in Snapshot.from_manifests(served, pod).pending] == ["web-x"]


def test_two_workloads_of_one_name_keep_all_their_pods() -> None:
    job = {**deployment(replicas=2), "kind": "Job", "apiVersion": "batch/v1"}
    job["spec"] = {"parallelism": 2, "template": job["spec"]["template"]}
    names = [pod.name for pod in Snapshot.from_manifests(deployment(replicas=2), job).pending]
    assert names == ["web-0", "web-1", "web-0-job", "web-1-job"]


def test_an_object_that_cannot_be_read_is_left_out_and_listed() -> None:
    wrong = deployment(nodeSelecter={"a": "b"})
    found = Snapshot.from_manifests(NODES, wrong)
    assert found.pending == ()
    assert "nodeSelecter" in str(found.problems[0])
    assert len(Snapshot.from_manifests(NODES, wrong, strict=False).pending) == 3


@pytest.mark.parametrize(
    ("source", "error", "says"),
    [
        ("no-such-folder", FileNotFoundError, "there is no file or folder 'no-such-folder'"),
        ("kind: [\n", ValueError, "the text is neither YAML nor JSON"),
        ("just\nwords\n", ValueError, "the text: expected an object with a kind, got 'just words'"),
        (7, TypeError, "takes files, folders, texts and mappings, got a int"),
        ([deployment(), 7], TypeError, "takes files, folders, texts and mappings, got a int"),
        (None, TypeError, "takes files, folders, texts and mappings, got a NoneType"),
    ],
)
def test_a_source_that_is_no_manifest_is_refused(source: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        Snapshot.from_manifests(source)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"has no file that ends in \.yaml, \.yml, \.json"):
        Snapshot.from_manifests(tmp_path)


# ---- dumps ----


def test_a_dump_is_read_by_its_path_and_as_an_open_file(tmp_path: Path) -> None:
    page = json.dumps({"kind": "NodeList", "apiVersion": "v1", "items": NODES}).encode()
    written = io.BytesIO()
    write_dump(Header(kube_version="v1.36.3", taken_at="2026-01-05T00:00:00Z"), [page], written)
    path = tmp_path / "dump.json.gz"
    path.write_bytes(written.getvalue())
    for source in (path, str(path), io.BytesIO(written.getvalue())):
        assert Snapshot.from_dump(source).node_names == ("n1", "n2")
    path.write_bytes(written.getvalue()[:-20])
    with pytest.raises(scheduler_core.UnreadableDumpError):
        Snapshot.from_dump(path)


# ---- utilisation ----


def test_utilisation_is_requests_by_allocatable_amounts() -> None:
    node = a_node("n1").offering(cpu="4", memory="8Gi")
    snapshot = load_objects(manifests(node, a_node("n2"), a_pod("p").requesting(cpu="1").on("n1")))
    usage = snapshot.utilisation()
    assert usage.of("cpu").tolist() == [0.25, 0.0]
    assert np.array_equal(usage.requested[usage.resources.index("pods")], [1, 0])
    assert usage.of("ephemeral-storage").tolist() == [0.0, 0.0]  # no node has any, no pod requests any
    with pytest.raises(ValueError, match="no node has the resource 'gpu'; the nodes have 4 resources: cpu"):
        usage.of("gpu")


# ---- plans ----


def world() -> Snapshot:
    nodes = [a_node(name).offering(cpu="2", memory="8Gi") for name in ("n1", "n2", "n3")]
    pods = [a_pod(f"p{name}").owned_by("ReplicaSet", "web").requesting(cpu="1").on(name) for name in ("n1", "n2", "n3")]
    return load_objects(manifests(*nodes, *pods))


def test_a_plan_drains_so_many_nodes_at_once_in_the_given_order() -> None:
    for most in (1, 2):
        plan = simulate_rollout(world(), ["n3", "n1", "n2"], Scheduler(), NodesAtOnce(most), begins=BEGINS)
        assert ([visit.node for visit in plan.reboots], plan.most_at_once()) == (["n3", "n1", "n2"], most)


def test_a_plan_without_rules_drains_one_node_at_a_time() -> None:
    assert simulate_rollout(world(), ["n1", "n2"], Scheduler(), begins=BEGINS).most_at_once() == 1


def test_a_node_whose_pods_find_no_room_is_left() -> None:
    full = world().with_node_cordoned("n2").with_node_cordoned("n3")
    plan = simulate_rollout(full, ["n1"], Scheduler(), begins=BEGINS)
    assert [(each.node, each.obstacle.rule) for each in plan.left] == [("n1", "forecast")]
    anyway = simulate_rollout(full, ["n1"], Scheduler(), NodesAtOnce(refuses=()), begins=BEGINS)
    assert [visit.node for visit in anyway.reboots] == ["n1"]


@pytest.mark.parametrize("most", [0, -1, 1.5, True, None])
def test_a_number_of_nodes_at_once_that_is_none_is_refused(most: Any) -> None:
    with pytest.raises(ValueError, match="expected the number of nodes that may be drained at once"):
        NodesAtOnce(most)


# ---- what a prompt shows ----


def results() -> list[Any]:
    snapshot, scheduler = world(), Scheduler()
    (forecast,) = simulate_drain(snapshot, ["n1"])
    pods = [a_pod(f"new-{number}").requesting(cpu="1").build() for number in range(5)]
    template = like_node(snapshot, "n1")
    return [
        forecast,
        simulate_rollout(snapshot, ["n1"], scheduler, begins=BEGINS),
        nodes_needed(scheduler, snapshot, pods, template),
        nodes_needed(scheduler, snapshot, pods, template).best,
        cheapest_mix(scheduler, snapshot, pods, [NodeOffer(template=template)]),
    ]


def test_each_result_is_one_short_line_at_a_prompt_and_a_table_in_a_notebook() -> None:
    assert [repr(each) for each in results()] == [
        "<Forecast node='n1' moves=1>",
        "<Timeline nodes=1 reboots=1 moves=1 left=0 ends=2026-01-05T00:04:30>",
        "<NodesNeeded count=1 is_enough=True refused=0>",
        "<MoreNodes count=1 placed=5 refused=0>",
        "<NodeMix n1: 1 price=1 is_enough=True>",
    ]
    assert repr(world().utilisation()) == "<Utilisation nodes=3 resources=cpu, memory, ephemeral-storage, pods>"
    for each in results():
        assert each._repr_html_().startswith("<table><tr><th>")


def test_a_forecast_without_pods_says_so() -> None:
    assert repr(Forecast(node="n1", made_at="")) == "<Forecast node='n1' no pods>"
    assert [outcome.value for outcome in Outcome][:2] == ["stays", "moves"]

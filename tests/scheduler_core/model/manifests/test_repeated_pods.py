"""Tests pages (the JSON bodies of API lists) in which the text of many pods is equal. Reading such a page must give the
same pods as reading the JSON of each pod alone."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.model.manifests import repeated_pods
from scheduler_core.model.manifests.error import ManifestError
from scheduler_core.model.manifests.object_reader import ObjectReader
from scheduler_core.model.requests import CURRENT_RULES, incoming_requests
from scheduler_core.snapshot.loading import load_pages
from scheduler_core.testing.builders import a_pod
from tests.scheduler_core.drawn_clusters import pods


def one_by_one(texts: list[str]) -> list[str]:
    return as_texts([ObjectReader().read_raw("Pod", text.encode()) for text in texts])


def in_a_page(texts: list[str]) -> list[str]:
    return as_texts(read_page(ObjectReader(), texts))


def read_page(reader: ObjectReader, texts: list[str]) -> list[Any]:
    return list(reader.page("Pod", f'{{"items":[{",".join(texts)}]}}'.encode()))


def as_texts(found: list[Any]) -> list[str]:
    """Returns one text for each pod or error, so that a test can compare the results of two readers."""
    return [f"{each!r} {each}" for each in found]


def compact(manifest: dict[str, Any]) -> str:
    return json.dumps(manifest, separators=(",", ":"))


@given(st.lists(pods("p", ("n1", "n2")), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_copies_of_generated_pods_are_read_like_single_pods(drawn: list[dict[str, Any]], chance: Any) -> None:
    texts = []
    for number in range(8):
        pod = json.loads(json.dumps(chance.choice(drawn)))
        pod["metadata"]["name"] = f"p{number}"
        pod["spec"]["nodeName"] = chance.choice(["n1", "n2", ""])
        pod["status"] = {"phase": "Running", "startTime": f"2026-01-01T00:00:0{number}Z", **(pod.get("status") or {})}
        if chance.random() < 0.3:
            del pod["spec"]["nodeName"], pod["status"]["startTime"]
        texts.append(json.dumps(pod) if chance.random() < 0.2 else compact(pod))
    assert in_a_page(texts) == one_by_one(texts)


MAIN = '"metadata":{"name":"p","namespace":"ns"}'
HOSTILE = {
    "the same text on two nodes": [f'{{{MAIN},"spec":{{"nodeName":"{node}","priority":3}}}}' for node in ("n1", "n2")],
    "nodeName inside an unknown field": [
        f'{{{MAIN},"spec":{{"priority":3,"other":{{"nodeName":"n1"}}}}}}',
        f'{{{MAIN},"spec":{{"priority":3,"other":{{"nodeName":"n2"}}}}}}',
        f'{{{MAIN},"spec":{{"priority":3,"other":{{}}}}}}',
    ],
    "nodeName at different places in otherwise equal text": [
        f'{{{MAIN},"spec":{{"overhead":{{}},"priority":3}}}}',
        f'{{{MAIN},"spec":{{"overhead":{{"nodeName":"n1"}},"priority":3}}}}',
        f'{{{MAIN},"spec":{{"overhead":{{}},"nodeName":"n1","priority":3}}}}',
    ],
    "nodeName twice in one object": [
        f'{{{MAIN},"spec":{{"nodeName":"n1","nodeName":"{node}"}}}}' for node in ("n2", "n3")
    ],
    "escaped letters": [f'{{{MAIN},"spec":{{"nodeName":"{node}"}}}}' for node in ("n\\u0031", "n\\u0032", "é")],
    "blanks": [f'{{ {MAIN}, "spec": {{ "nodeName": "{node}", "priority": 3 }} }}' for node in ("n1", "n2")],
    "no spec and no status": [f"{{{MAIN}}}", f'{{{MAIN},"status":null}}', f'{{{MAIN},"spec":{{}}}}'],
    "nodeName quoted inside a string": [
        f'{{{MAIN},"spec":{{"schedulerName":"\\"nodeName\\":\\"{node}\\","}}}}' for node in ("n1", "n2")
    ],
    "an amount that cannot be read": [
        f'{{{MAIN},"spec":{{"nodeName":"{node}","overhead":{{"cpu":"much"}}}}}}' for node in ("n1", "n2")
    ],
    "a time that cannot be read": [f'{{{MAIN},"status":{{"startTime":"{time}"}}}}' for time in ("noon", "2026-01-01")],
    "a wrong type": [f'{{{MAIN},"spec":{{"nodeName":"n1","priority":"high"}}}}', f"{{{MAIN}}}"],
    "no name": ['{"metadata":{"namespace":"ns"},"spec":{"nodeName":"n1"}}', f"{{{MAIN}}}"],
    "the same spec in two namespaces": [
        f'{{"metadata":{{"name":"p","namespace":"{namespace}"}},"spec":{{"nodeName":"n1","affinity":{{"podAffinity":'
        '{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"zone","labelSelector":{}}]}}}}'
        for namespace in ("a", "b", "a")
    ],
}


@pytest.mark.parametrize("what", HOSTILE)
def test_reading_a_page_with_unusual_json_gives_the_same_pods_as_reading_each_pod_alone(what: str) -> None:
    for texts in (HOSTILE[what], HOSTILE[what][::-1], HOSTILE[what] * 2):
        assert in_a_page(texts) == one_by_one(texts)


def test_a_text_that_is_not_utf_8_is_refused() -> None:
    page = b'{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"p"},"spec":{"nodeName":"\xff\xfe"}}]}'
    with pytest.raises(ValueError, match=r"."):
        load_pages([page])


def test_a_copy_of_a_pod_is_not_decoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [compact(a_pod(f"p{number}").on(f"n{number}").requesting(cpu="1").manifest) for number in range(50)]
    read: list[bytes] = []
    keep = repeated_pods._Texts._keep
    monkeypatch.setattr(
        repeated_pods._Texts, "_keep", lambda self, key, made, size: read.append(key) or keep(self, key, made, size)
    )
    found = read_page(ObjectReader(), texts)
    assert len({id(pod.spec) for pod in found}) == 1
    assert len(read) < 10


def test_the_number_of_cached_pod_texts_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_pods, "_MOST_TEXTS", 3)
    reader = ObjectReader()
    texts = [compact(a_pod(f"p{number}").on("n").labelled(app=f"a{number % 7}").manifest) for number in range(40)]
    found = read_page(reader, texts)
    assert as_texts(found) == one_by_one(texts)
    assert not any(isinstance(each, ManifestError) for each in found)
    repeated = reader._repeated
    for kept in (repeated._labels._known, repeated._specs._known, repeated._parts):
        assert len(kept) <= 3


def with_rules(number: int, *, namespace: str = "tenant", terms: int = 100) -> str:
    """A pod with about 16 KiB of affinity that no other pod has."""
    preferred = [
        {
            "weight": 1,
            "podAffinityTerm": {
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {"matchLabels": {f"key-{number}-{term}": f"value-{number}-{term}"}},
            },
        }
        for term in range(terms)
    ]
    manifest = a_pod(f"p{number}", namespace=namespace).on("n").requesting(cpu="1").manifest
    affinity = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    return compact({**manifest, "spec": {**manifest["spec"], "affinity": affinity}})


def is_ruled(pod: Any) -> bool:
    return bool(pod.spec.pod_affinity.preferred)


def test_pods_beyond_their_namespaces_share_of_rules_count_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_pods, "MOST_OF_NAMESPACE", 3 * len(with_rules(0)))
    reader = ObjectReader()
    pods = read_page(reader, [*(with_rules(number) for number in range(9)), with_rules(9, namespace="other")])
    assert [is_ruled(pod) for pod in pods] == [True] * 3 + [False] * 6 + [True]
    assert [pod.spec.is_left_out for pod in pods] == [False] * 3 + [True] * 6 + [False]
    assert len({str(pod.spec.containers) for pod in pods}) == 1
    again = read_page(reader, [with_rules(0), with_rules(20)])
    assert [is_ruled(pod) for pod in again] == [True, False]


def test_many_namespaces_together_have_a_limit_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_pods, "MOST_OF_ALL", 3 * len(with_rules(0)))
    found = read_page(ObjectReader(), [with_rules(number, namespace=f"t{number}") for number in range(5)])
    assert [is_ruled(pod) for pod in found] == [True] * 3 + [False] * 2


def large(field: str, number: int) -> str:
    """A pod with about 16 KiB in this field that no other pod has, and 1200m of cpu."""
    names = [f"x{number}-{each}" for each in range(400)]
    manifest = a_pod(f"p{number}", namespace="tenant").on("n").requesting(cpu="400m").manifest
    spec, meta = manifest["spec"], manifest["metadata"]
    containers = [*spec["containers"], {"name": "more", "resources": {"requests": {"cpu": "800m"}}}]
    match field:
        case "containers":
            containers += [{"name": name, "image": name, "resources": {}} for name in names]
        case "requests":
            containers[0]["resources"]["requests"] |= {f"example.com/{name}": "1" for name in names}
        case "volumes":
            spec = spec | {"volumes": [{"name": n, "persistentVolumeClaim": {"claimName": n}} for n in names]}
        case "labels":
            meta = meta | {"labels": dict.fromkeys(names, "v" * 20)}
    return compact({**manifest, "metadata": meta, "spec": spec | {"containers": containers}})


@pytest.mark.parametrize("field", ["containers", "requests", "volumes", "labels"])
def test_large_pods_beyond_their_namespaces_share_count_with_their_requests_alone(
    field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeated_pods, "MOST_OF_NAMESPACE", 3 * len(large(field, 0)))
    pods = read_page(ObjectReader(), [large(field, number) for number in range(9)])
    left_out = [pod for pod in pods if pod.spec.is_left_out]
    assert 5 <= len(left_out) <= 6
    assert left_out == pods[-len(left_out) :]
    for pod in left_out:
        assert not pod.labels
        assert not pod.spec.volumes
        assert len(pod.spec.containers) == 1
        assert incoming_requests(pod.spec, CURRENT_RULES).cpu == 1200
        assert not incoming_requests(pod.spec, CURRENT_RULES).scalars


def test_ordinary_pods_that_all_differ_are_never_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_pods, "MOST_OF_NAMESPACE", 1)
    texts = [compact(a_pod(f"p{number}").on("n").labelled(app=f"a{number}").manifest) for number in range(9)]
    assert not any(pod.spec.is_left_out for pod in read_page(ObjectReader(), texts))


def test_equal_rules_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_pods, "MOST_OF_NAMESPACE", 2 * len(with_rules(0)))
    texts = [with_rules(0).replace('"p0"', f'"p{number}"') for number in range(20)]
    assert all(is_ruled(pod) for pod in read_page(ObjectReader(), texts))


def test_the_texts_that_are_kept_are_limited_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    most = 4 * len(with_rules(0))
    monkeypatch.setattr(repeated_pods, "_MOST_BYTES", most)
    monkeypatch.setattr(repeated_pods, "MOST_OF_NAMESPACE", most)
    reader = ObjectReader()
    read_page(reader, [with_rules(number) for number in range(40)])
    assert len(reader._repeated._specs._known) <= 4
    assert len(reader._repeated._parts) <= 5


def test_a_page_of_invalid_json_is_refused() -> None:
    with pytest.raises(msgspec.DecodeError):
        in_a_page(["{"])

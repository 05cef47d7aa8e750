"""Label selectors as the text of list requests."""

from __future__ import annotations

from typing import Any

import pytest

from careen.cluster.workloads.selectors import common, few_requests, selector_text


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        pytest.param(None, "", id="no selector"),
        pytest.param({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2", id="labels"),
        pytest.param({"app": "web"}, "app=web", id="a ReplicationController's labels"),
        pytest.param(
            {"matchLabels": {"app": "web", "pod-template-hash": "7f"}},
            "pod-template-hash=7f",
            id="the hash of a Deployment's template selects enough",
        ),
        pytest.param(
            {
                "matchExpressions": [
                    {"key": "a", "operator": "In", "values": ["1", "2"]},
                    {"key": "b", "operator": "NotIn", "values": ["3"]},
                    {"key": "c", "operator": "Exists"},
                    {"key": "d", "operator": "DoesNotExist"},
                ]
            },
            "a in (1,2),b notin (3),c,!d",
            id="expressions",
        ),
        pytest.param({"matchExpressions": [{"key": "a", "operator": "Near"}]}, "", id="an unknown operator"),
        pytest.param({"matchExpressions": ["a"]}, "", id="no expression"),
        pytest.param({"matchLabels": {f"label-{n}": "x" * 60 for n in range(9)}}, "", id="too long for the record"),
    ],
)
def test_a_selector_becomes_the_text_of_a_list_request(selector: dict[str, Any] | None, text: str) -> None:
    assert selector_text(selector) == text


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        ([], ""),
        ([{"app": "db", "name": "db-0"}, {"app": "db", "name": "db-1"}], "app=db"),
        ([{"app": "db", "role": "primary", "controller-revision-hash": "1"}], "app=db"),
        ([{"app": "a"}, {"app": "b"}], ""),
    ],
)
def test_the_pods_of_one_owner_are_selected_by_the_labels_that_a_successor_also_has(
    labels: list[dict[str, str]], text: str
) -> None:
    assert common(labels) == text


def test_selectors_on_one_label_share_a_request() -> None:
    given = ["hash=2", "hash=1", "app=web", "app=db,tier=x", "a in (1)"]
    assert few_requests(given) == ("app=web", "hash in (1,2)", "a in (1)", "app=db,tier=x")

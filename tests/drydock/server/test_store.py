"""Tests the store: resource versions, history, and reads of past states while the history is kept."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drydock.server.store import HistoryGone, Store

NODES = ("", "nodes")


def a_store(history_length: int = 100) -> Store:
    return Store(clock=lambda: 7.0, history_length=history_length)


def put(store: Store, name: str, **content: Any) -> int:
    metadata = {"name": name}
    return store.put(
        NODES,
        ("", name),
        {"kind": "Node", "apiVersion": "v1", "metadata": metadata, **content},
        actor="me",
        verb="update",
    ).version


def test_all_kinds_share_one_counter_of_resource_versions() -> None:
    store = a_store()
    first = put(store, "n1")
    second = store.put(("", "pods"), ("default", "p"), {"metadata": {}}, actor="me", verb="create")
    assert second.version == first + 1
    assert second.content["metadata"]["resourceVersion"] == str(second.version)


def test_the_journal_records_the_old_object_and_the_actor_of_a_write() -> None:
    store = a_store()
    put(store, "n1", spec={"a": 1})
    put(store, "n1", spec={"a": 2})
    change = store.journal[-1]
    assert (change.kind, change.actor, change.at) == ("MODIFIED", "me", 7.0)
    assert change.before is not None
    assert change.after is not None
    assert (change.before.content["spec"], change.after.content["spec"]) == ({"a": 1}, {"a": 2})


def test_a_removed_object_has_the_resource_version_of_its_removal() -> None:
    store = a_store()
    put(store, "n1")
    gone = store.remove(NODES, ("", "n1"), actor="me", verb="delete")
    assert gone.content["metadata"]["resourceVersion"] == str(store.version)
    assert (store.get(NODES, ("", "n1")), store.journal[-1].kind) == (None, "DELETED")


def test_the_error_about_forgotten_history_contains_the_oldest_version() -> None:
    store = a_store()
    put(store, "n1")
    store.forget_history()
    with pytest.raises(HistoryGone) as gone:
        store.changes_after(NODES, 1)
    assert gone.value.oldest == store.version
    assert store.changes_after(NODES, store.version) == []


def test_a_history_that_grows_too_long_drops_its_older_half() -> None:
    store = a_store(history_length=10)
    versions = [put(store, "n1", i=i) for i in range(11)]
    assert [c.version for c in store.changes_after(NODES, versions[5])] == versions[6:]
    with pytest.raises(HistoryGone):
        store.changes_after(NODES, versions[0])


def test_a_listener_is_called_after_each_change_of_its_kinds_until_it_is_removed() -> None:
    store, heard = a_store(), []
    stop = store.listen([NODES], lambda: heard.append(store.version))
    version = put(store, "n1")
    store.put(("", "pods"), ("default", "p"), {"metadata": {}}, actor="me", verb="create")
    stop()
    put(store, "n1", i=2)
    assert heard == [version]


def test_items_of_a_list_have_no_kind_and_api_version() -> None:
    store = a_store()
    put(store, "n1")
    stored = store.items(NODES)[0]
    assert stored.as_item == b'{"metadata":{"name":"n1","resourceVersion":"2"}}'
    assert stored.whole == b'{"kind":"Node","apiVersion":"v1","metadata":{"name":"n1","resourceVersion":"2"}}'


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.booleans()), max_size=30))
def test_the_store_returns_the_objects_of_any_past_version(steps: list[tuple[str, bool]]) -> None:
    """For every version, `items_at` returns what `items` returned at that version."""
    store = a_store()
    seen: dict[int, list[tuple[str, Any]]] = {store.version: []}
    for index, (name, removes) in enumerate(steps):
        if not removes:
            put(store, name, i=index)
        elif store.get(NODES, ("", name)) is not None:
            store.remove(NODES, ("", name), actor="me", verb="delete")
        seen[store.version] = [(s.key[1], s.content["i"]) for s in store.items(NODES)]
    for version, expected in seen.items():
        assert [(s.key[1], s.content["i"]) for s in store.items_at(NODES, version)] == expected

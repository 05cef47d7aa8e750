"""Commands find the lock by themselves: ours first, then kured's; what a person names holds."""

from __future__ import annotations

import pytest

from careen.core.lock.content import LockContent
from tests.careen.cli.conftest import Desk
from tests.careen.core.builders import an_entry, held


def holders(desk: Desk, *arguments: str) -> list[str]:
    return [holder["node"] for holder in desk.json("lock", "show", *arguments)["holders"]]


@pytest.fixture
def both(desk: Desk) -> Desk:
    desk.lock(held(an_entry("ours")))
    desk.lock(held(an_entry("kureds")), namespace="kube-system", name="kured")
    return desk


def test_ours_comes_before_kureds(both: Desk) -> None:
    assert holders(both) == ["ours"]


def test_where_only_kureds_place_is_taken_that_is_it(desk: Desk) -> None:
    desk.lock(held(an_entry("kureds")), namespace="kube-system", name="kured")
    assert holders(desk) == ["kureds"]
    assert desk.json("config")["settings"]["ds-name"]["value"] == "kured"


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        (("--ds-namespace=kube-system", "--ds-name=kured"), "kureds"),
        (("--ds-name=kured",), "kureds"),
        (("--ds-namespace=kube-system",), "kureds"),
        (("--ds-name=careen",), "ours"),
    ],
)
def test_what_is_named_holds_and_the_rest_is_looked_for(both: Desk, named: tuple[str, ...], expected: str) -> None:
    assert holders(both, *named) == [expected]


def test_a_name_that_is_given_whole_is_not_looked_for(both: Desk) -> None:
    result = both.run("lock", "show", "--ds-namespace=shop", "--ds-name=careen")
    assert result.exit_code == 1
    assert "DaemonSet shop/careen does not exist" in result.output


def test_where_there_is_none_the_first_that_it_could_be_is_named(desk: Desk) -> None:
    assert "DaemonSet careen/careen does not exist" in desk.run("lock", "show").output


def test_the_agents_settings_are_those_of_the_daemonset_that_was_found(desk: Desk) -> None:
    desk.lock(LockContent(), namespace="kube-system", name="kured", flags=["--concurrency=4"])
    assert desk.json("config")["settings"]["concurrency"]["value"] == "4"

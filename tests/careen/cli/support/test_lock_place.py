"""Tests where a command looks for the lock: first in the DaemonSet that the options give, then in careen's DaemonSet,
then in kured's DaemonSet."""

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


def test_a_command_prefers_careens_lock_to_kureds_lock(both: Desk) -> None:
    assert holders(both) == ["ours"]


def test_kureds_lock_is_used_if_there_is_no_other_lock(desk: Desk) -> None:
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
def test_a_command_finds_the_daemonset_by_its_name_alone_or_its_namespace_alone(
    both: Desk, named: tuple[str, ...], expected: str
) -> None:
    assert holders(both, *named) == [expected]


def test_a_daemonset_given_by_name_and_namespace_is_not_looked_up(both: Desk) -> None:
    result = both.run("lock", "show", "--ds-namespace=shop", "--ds-name=careen")
    assert result.exit_code == 1
    assert "DaemonSet shop/careen does not exist" in result.output


def test_the_error_about_a_missing_lock_shows_careens_daemonset(desk: Desk) -> None:
    assert "DaemonSet careen/careen does not exist" in desk.run("lock", "show").output


def test_a_command_reads_the_agents_settings_from_the_daemonset_that_carries_the_lock(desk: Desk) -> None:
    desk.lock(LockContent(), namespace="kube-system", name="kured", flags=["--concurrency=4"])
    assert desk.json("config")["settings"]["concurrency"]["value"] == "4"

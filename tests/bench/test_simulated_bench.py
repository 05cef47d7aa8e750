"""Tests the simulated roll-outs of `make bench-moved`, which start from the same cluster with and without careen's
taint on waiting nodes. Also tests the means and confidence intervals in the table of the results."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from bench.moves.__main__ import lot_of, main, repeats
from bench.moves.by_order import by_order
from bench.moves.first_wave import repeats_and_minutes
from bench.moves.kinds import FleetKind, lot_of_kind, row
from bench.moves.second_taint import repeats_with
from bench.rollout import simulated
from bench.rollout.sample import NODES, sample
from careen.core.facts.policy import Order


@pytest.mark.parametrize("seed", [0, 1])
def test_every_pod_of_the_simulated_cluster_has_a_node(seed: int) -> None:
    drawn = sample(seed)
    pods = simulated.placed(drawn, random.Random(1)).placed_pods
    apps = Counter(pod.labels["app"] for pod in pods)
    assert apps == {
        **{name: size.replicas for name, size in drawn.sizes.items()},
        "log-shipper": NODES,
        "node-exporter": NODES,
    }
    assert all(pod.node_name for pod in pods)


@pytest.fixture(scope="module")
def lots() -> list[simulated.Lot]:
    return [simulated.one_lot(sample(0), number) for number in range(2)]


def test_the_reboot_order_avoids_more_repeat_moves_than_the_taint(
    lots: list[simulated.Lot],
) -> None:
    assert lots[0].ordered < lots[0].tainted < lots[0].plain
    assert lots[1].ordered < lots[1].tainted <= lots[1].plain


def test_the_taint_avoids_most_repeat_moves_if_only_some_nodes_reboot() -> None:
    lot = simulated.one_lot(sample(0), 0, asking=8)
    assert 3 * lot.tainted < lot.plain


def test_a_simulated_sample_depends_only_on_its_number(lots: list[simulated.Lot]) -> None:
    assert simulated.one_lot(sample(0), 1) == lots[1] != lots[0]


def test_simulated_nodes_reboot_one_at_a_time_in_the_given_order() -> None:
    rules = simulated.InOrder(("n2", "n0", "n1"))
    assert rules.line(["n0", "n1", "n2"], simulated.BEGINS, len) == ["n2"]
    rules.claimed("n2", simulated.BEGINS)
    assert rules.line(["n0", "n1"], simulated.BEGINS, len) == ()
    rules.released("n2", simulated.BEGINS)
    assert rules.line(["n0", "n1"], simulated.BEGINS, len) == ["n0"]


def test_a_row_of_the_simulation_has_means_and_confidence_intervals() -> None:
    lots = [
        simulated.Lot(plain=plain, tainted=tainted, ordered=ordered)
        for plain, tainted, ordered in ((12, 10, 8), (15, 11, 8), (15, 12, 10))
    ]
    assert simulated.row("3", lots) == "| 3 | 14.0 | 11.0 | -3.0 ± 1.1 | 8.7 | -2.3 ± 0.7 |"
    assert simulated.row("3", lots[:1]) == "| 3 | 12.0 | 10.0 | -2.0 ± nan | 8.0 | -2.0 ± nan |"


def test_zones_that_take_turns_move_fewer_pods_twice_than_chance_and_than_one_zone_after_the_other() -> None:
    lots = [lot_of(seed, 0, times=1, zones=3) for seed in range(3)]
    found = [repeats(snapshot, names, 3) for snapshot, names in lots]
    oldest, random, zone = (sum(each[name] for each in found) for name in ("oldest", "random", "zone"))
    assert oldest < random < zone


def test_a_narrow_beginning_saves_repeat_moves_and_takes_longer() -> None:
    snapshot, names = lot_of(0, 0, times=1, zones=3)
    full, slow = (repeats_and_minutes(snapshot, names, 3, name) for name in ("full", "slow"))
    assert full[0] == repeats(snapshot, names, 3)["oldest"]
    assert slow[0] < full[0]
    assert slow[1] > full[1]


@pytest.mark.parametrize("order", Order)
def test_the_order_without_gates_is_that_of_the_agents(order: Order) -> None:
    snapshot, names = lot_of(1, 0, times=2, zones=3)
    for asking, at_once in ((16, 3), (24, 1), (24, 10)):
        agents, alone = (
            simulated.rolled_out(snapshot, names[:asking], rules(snapshot, order=order, at_once=at_once))
            for rules in (simulated.as_agents_go, by_order)
        )
        assert alone.double_moves == agents.double_moves
        assert [each.node for each in alone.visits] == [each.node for each in agents.visits]


def test_a_second_soft_taint_changes_where_pods_land() -> None:
    lots = [lot_of(0, lot, times=5, zones=3) for lot in range(2)]
    one, two = ([repeats_with(snapshot, names, 10, two=two) for snapshot, names in lots] for two in (False, True))
    assert one == [repeats(snapshot, names, 10)["oldest"] for snapshot, names in lots]
    assert one != two


def test_the_bench_prints_a_row_for_each_fleet_and_width(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = "--nodes 12 --zones 1 --asking all --at-once 3 25% 10 --seeds 0 1 --lots 1 --processes 1"
    monkeypatch.setattr("sys.argv", ["bench.moves", *arguments.split()])
    main()
    *_, three, ten = capsys.readouterr().out.splitlines()
    snapshot, names = lot_of(0, 0, times=1, zones=1)
    assert three.startswith("| 12 | 1 | 2 | all | 3 | ")
    assert ten.startswith("| 12 | 1 | 2 | all | 10 | ")
    assert repeats(snapshot, names, 3)["oldest"] == repeats(snapshot, names, 3)["zone"]


def test_in_every_kind_of_fleet_both_orders_obey_the_same_rules() -> None:
    kind = FleetKind(title="small", nodes=24, at_once=5, zones=(1, 3), stays="zone-a", control_plane=4, named=1)
    lot = lot_of_kind(kind, 1)
    assert lot is not None
    chance, ours = lot
    assert set(chance.nodes) == set(ours.nodes)
    assert len(ours.nodes) == 18, "a quarter of the nodes is in the zone that stays"
    control_plane = {visit.node for visit in ours.visits[-3:]}
    assert {visit.node for visit in chance.visits[-3:]} == control_plane
    assert [visit.node for visit in chance.visits] != [visit.node for visit in ours.visits]
    assert row(kind, [lot]).startswith(f"| small | 1 | 5 | {chance.double_moves}.0 | {ours.double_moves}.0 | ")

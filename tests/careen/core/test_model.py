"""Several agents decide in one simulated cluster with random faults. At each step, the simulated cluster checks the
rules of the design and raises an error for a broken rule:

1. No more nodes are down than the concurrency limit allows.
2. A node reboots only under its claim, and only after its drain.
3. Before its reboot, a node releases its claim only if it has no cordon of careen and its host stays up. After its
   reboot, a node releases its claim only if it is ready.
4. careen removes only its own changes from a Node, and in the end removes all of them.
5. No agent removes a claim that another node still uses, and in the end the lock has no claim.

Further rules: with --order=zone, only one zone is down at a time. While a failed node keeps its claim, no other node is
cordoned. A host that has accepted a reboot request is not asked again before the reboot deadline, unless the agent
that asked has died. In the end, no host needs a reboot.
"""

from __future__ import annotations

import functools
import os
from datetime import UTC, datetime

import pytest

from careen.core.facts import keys
from careen.core.facts.policy import Order, Policy
from careen.plan.rollout_rules import RolloutRules
from scheduler_core.simulation.forecast import Forecast
from tests.careen.core.toy_world import World

NAMES = ("n1", "n2", "n3", "n4")
START = datetime(2026, 1, 5, tzinfo=UTC)


def seeds(few: int) -> range:
    """Return the seeds of this run: `few` of them, multiplied by the number in the environment variable MODEL_SEEDS."""
    return range(few * int(os.environ.get("MODEL_SEEDS", "1")))


def a_policy(concurrency: int, order: Order = Order.OLDEST):
    @functools.cache  # asked at every event
    def policy(name: str) -> Policy:
        return Policy(
            node_name=name,
            concurrency=concurrency,
            order=order,
            reboot_deadline_seconds=120,
            verify_timeout_seconds=120,
            settle_timeout_seconds=120,
            failure_backoff_seconds=20,
            failure_backoff_limit_seconds=60,
            unknown_patience_seconds=30,
            pre_reboot_labels={"pool": "maintenance"},
        )

    return policy


def a_world(seed: int, concurrency: int = 1, fault_rate: float = 0.05, order: Order = Order.OLDEST) -> World:
    world = World(seed=seed, policy=a_policy(concurrency, order), names=NAMES, fault_rate=fault_rate)
    for name in NAMES:
        world.at(world.random.uniform(0, 30), lambda name=name: ask(world, name))
    return world


def ask(world: World, name: str) -> None:
    world.hosts[name].need = True


def calm(world: World) -> None:
    """End the faults, undo what people did, and run the simulation until nothing changes any more."""
    world.fault_rate = 0.0
    for name in NAMES:
        world.hosts[name].reboot_behaviour = "works"
        world.annotate(name, keys.HOLD, None)
        if world.nodes[name] is None:
            world.recreate_node(name)
    for name in sorted(world.persons_cordons):
        world.person_uncordons(name)
    world.pause(on=False)
    for _ in range(8):
        was_at_rest = world.is_at_rest()
        for name in NAMES:
            if world.progress(name).failed:
                world.annotate(name, keys.RETRY, "2026-01-05T00:00:00Z")
        world.run(world.now + 400)
        if was_at_rest:  # and has stayed so
            break
    world.check_quiet()


@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize("concurrency", [1, 2])
def test_without_faults_every_node_reboots_once_and_the_concurrency_limit_is_reached(
    concurrency: int, order: Order
) -> None:
    world = a_world(1, concurrency, fault_rate=0.0, order=order)
    world.run(400)
    world.check_quiet()
    assert world.reboots == dict.fromkeys(NAMES, 1)
    assert world.peak == concurrency


@pytest.mark.parametrize("order", [Order.OLDEST, Order.ZONE])
@pytest.mark.parametrize("seed", seeds(3))
def test_the_agents_reboot_their_nodes_in_the_planned_order(seed: int, order: Order) -> None:
    world, went = a_world(8000 + seed, fault_rate=0.0, order=order), []
    world.on_phase = lambda name, phase: went.append(name) if phase == "Draining" else None
    # This claim fills the lock until `unlock`. In this time, every node becomes ready and is named in the line.
    world.write_lock('{"nodeID":"elsewhere","created":"2026-01-05T00:00:00Z"}')
    world.run(60)
    rules = RolloutRules(
        [node.view for node in world.nodes.values() if node is not None],
        world.policy(NAMES[0]),
        named=world.content().line.names,
    )
    foretold = []
    while waiting := [name for name in NAMES if name not in foretold]:
        name = rules.line(waiting, START, lambda _: 0)[0]
        assert rules.refusal(name, START, Forecast(node=name, made_at="")) is None
        rules.claimed(name, START)
        assert rules.late_refusal(name, START) is None
        rules.released(name, START)
        foretold.append(name)
    world.unlock("elsewhere")
    world.run(600)
    assert went == foretold


@pytest.mark.parametrize("seed", seeds(10))
def test_lost_and_late_answers_and_crashes_break_no_rule_of_the_design(seed: int) -> None:
    world = a_world(seed, concurrency=1 + seed % 2, fault_rate=0.03 + 0.03 * (seed % 3))
    world.run(600)
    calm(world)


@pytest.mark.parametrize("order", [Order.ZONE, Order.FEWEST_MOVES])
@pytest.mark.parametrize("seed", seeds(5))
def test_agents_with_another_order_of_reboots_break_no_rule(seed: int, order: Order) -> None:
    """Agents crash, requests are lost or late, and the lock is lost once, because the DaemonSet is recreated."""
    world = a_world(7000 + seed, concurrency=2 + seed % 2, fault_rate=0.03 + 0.03 * (seed % 3), order=order)
    world.at(world.random.uniform(5, 200), world.recreate_daemonset)
    world.run(600)
    calm(world)


@pytest.mark.parametrize("seed", seeds(10))
def test_actions_of_people_such_as_holds_and_cordons_break_no_rule_of_the_design(seed: int) -> None:
    world = a_world(1000 + seed, concurrency=1 + seed % 2, fault_rate=0.02)
    chance = world.random
    for _ in range(12):
        name, when = chance.choice(NAMES), chance.uniform(5, 500)
        act = chance.choice(
            [
                lambda name=name: world.annotate(name, keys.HOLD, "people"),
                lambda name=name: world.annotate(name, keys.HOLD, None),
                lambda name=name: world.person_cordons(name),
                lambda name=name: world.person_uncordons(name),
                lambda: world.pause(on=True),
                lambda: world.pause(on=False),
                lambda name=name: world.unlock(name),
                lambda name=name: setattr(world.hosts[name], "need", False),
                lambda name=name: ask(world, name),
            ]
        )
        world.at(when, act)
    world.run(600)
    calm(world)


@pytest.mark.parametrize("phase", ["Waiting", "Claiming", "Draining", "Rebooting", "Verifying", "Settling"])
@pytest.mark.parametrize("seed", seeds(4))
def test_events_right_after_a_phase_change_break_no_rule_of_the_design(seed: int, phase: str) -> None:
    """Within a second after a node enters the given phase, people change objects and agents crash."""
    world = a_world(5000 + seed, concurrency=1 + seed % 2, fault_rate=0.02)
    chance = world.random

    def strike(name: str, entered: str) -> None:
        if entered != phase or chance.random() < 0.3 or world.now > 500:
            return
        other = chance.choice(NAMES)
        world.at(
            chance.choice([0.0, 0.02, 0.3, 1.0]),
            chance.choice(
                [
                    world.recreate_daemonset,
                    lambda: world.unlock(name),
                    lambda: world.pause(on=True),
                    lambda: world.pause(on=False),
                    lambda: world.annotate(name, keys.HOLD, "people"),
                    lambda: world.annotate(name, keys.HOLD, None),
                    lambda: world.person_uncordons(name),
                    lambda: world.person_cordons(other),
                    lambda: world.kill_agent(name),
                    lambda: setattr(world.hosts[name], "need", False),
                    lambda: ask(world, name),
                ]
            ),
        )

    world.on_phase = strike
    world.run(600)
    calm(world)


@pytest.mark.parametrize("phase", ["Waiting", "Claiming", "Draining", "Rebooting", "Verifying", "Settling", "Failed"])
@pytest.mark.parametrize("seed", seeds(4))
def test_a_progress_record_lost_in_any_phase_breaks_no_rule_of_the_design(seed: int, phase: str) -> None:
    world = a_world(12_100 + seed, concurrency=1 + seed % 2, fault_rate=0.02 * (seed % 3))
    for name in NAMES:
        world.hosts[name].goes_down_within = world.random.choice([4.0, 40.0])
        world.hosts[name].reboot_behaviour = (
            world.random.choice(["works", "works", "fails", "silent"]) if phase == "Failed" else "works"
        )

    def wipe(name: str, entered: str) -> None:
        if entered == phase and world.now < 500 and (not world.wiped or world.random.random() < 0.6):
            world.at(world.random.choice([0.0, 0.02, 0.3, 1.0, 5.0]), lambda: world.wipe_record(name))
            if world.random.random() < 0.3:
                world.at(5.0, lambda: world.kill_agent(name))

    world.on_phase = wipe
    world.run(900)
    calm(world)
    assert world.wiped


@pytest.mark.parametrize("seed", seeds(4))
def test_a_second_agent_process_on_the_same_host_breaks_no_rule_of_the_design(seed: int) -> None:
    world = a_world(6000 + seed, concurrency=1 + seed % 2, fault_rate=0.02)
    for _ in range(4):
        name = world.random.choice(NAMES)
        world.at(world.random.uniform(1, 120), lambda name=name: world.start_agent(name, 0.0))
    world.run(600)
    calm(world)


@pytest.mark.parametrize("seed", seeds(12))
def test_two_agents_on_one_host_do_not_both_ask_for_the_same_reboot(seed: int) -> None:
    """Both agents run, because the host has no lock file that would stop the second agent. Requests are lost or late,
    and both agents continue to run while the host shuts down. Neither agent releases the claim during the shutdown."""
    world = a_world(11_000 + seed, concurrency=1 + seed % 2, fault_rate=0.04 * (seed % 4))
    for name in NAMES:
        world.hosts[name].goes_down_within = world.random.choice([4.0, 40.0, 100.0])
        world.start_agent(name, world.random.uniform(0, 60))
    world.run(1200)
    calm(world)


@pytest.mark.parametrize("seed", seeds(6))
def test_hosts_that_refuse_or_ignore_the_reboot_break_no_rule_of_the_design(seed: int) -> None:
    world = a_world(2000 + seed, concurrency=1 + seed % 2, fault_rate=0.02)
    for name in NAMES:
        world.hosts[name].reboot_behaviour = world.random.choice(["works", "fails", "silent"])
        world.hosts[name].need_survives = world.random.choice([0, 0, 1, 3])
    world.run(900)
    calm(world)


@pytest.mark.parametrize("seed", seeds(6))
def test_after_a_failure_no_other_node_reboots_until_a_person_acts(seed: int) -> None:
    """The simulated cluster raises an error if an agent cordons a node although another claim has been marked as failed
    for a while."""
    world = a_world(9000 + seed, concurrency=3, fault_rate=0.01 * (seed % 3))
    stuck = world.random.choice(NAMES)
    world.hosts[stuck].reboot_behaviour = "silent"
    while not world.content().failed:
        assert world.now < 2000, "a host that never reboots is not marked as failed"
        world.run(world.now + 100)
    world.run(world.now + 100)  # the other working nodes have finished
    for name in NAMES:
        ask(world, name)
    halted = {name: world.reboots.get(name, 0) for name in NAMES}
    world.run(world.now + 300)
    assert [entry.node for entry in world.content().failed] == [stuck]
    assert {name: world.reboots.get(name, 0) for name in NAMES} == halted
    assert all(world.hosts[name].need for name in NAMES)
    calm(world)


@pytest.mark.parametrize("seed", seeds(6))
def test_agents_break_no_rule_after_the_daemonset_is_recreated(seed: int) -> None:
    """The new DaemonSet has no lock annotation, so all claims are lost. The docstring of this module lists the
    rules."""
    world = a_world(3000 + seed, concurrency=1 + seed % 2, fault_rate=0.02)
    for _ in range(3):
        world.at(world.random.uniform(5, 200), world.recreate_daemonset)
    world.run(600)
    calm(world)


@pytest.mark.parametrize("seed", seeds(6))
def test_deleted_nodes_break_no_rule_of_the_design_and_leave_no_claim(seed: int) -> None:
    world = a_world(4000 + seed, concurrency=1 + seed % 2, fault_rate=0.02)
    for _ in range(3):
        name = world.random.choice(NAMES)
        world.at(world.random.uniform(5, 200), lambda name=name: world.delete_node(name))
    world.run(600)
    calm(world)

"""The phase Draining: the agent evicts pods until the node is empty, and undoes the drain if a person or a gate forbids
it, or if the host no longer asks for a reboot."""

from __future__ import annotations

from careen.core.actions import Evict
from careen.core.decision import Decision, Refusal
from careen.core.drain import baseline, drain_memory, drain_plan, slow_pods, volumes
from careen.core.drain.drain_plan import DrainPlan
from careen.core.drain.slow_pods import SlowDrain
from careen.core.facts.memory import after_evicting_new_pods
from careen.core.facts.observation import NeedAnswer, NotAsked, PodView, Unknown
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.reasons import Code
from careen.core.facts.times import span
from careen.core.gates.hold import hold
from careen.core.gates.host_state import host_state
from careen.core.gates.question import When
from careen.core.gates.settings import settings
from careen.core.outcomes import Status, Stay, Transition, move, stay
from careen.core.people import requests
from careen.core.situation import Situation
from careen.core.steps import maintenance, rebooting
from careen.core.steps.shared import failing, late_gates, working
from scheduler_core.sentences import first_few
from scheduler_core.values import replace_value as replace

LOOK_SECONDS = 2.0


def decide(situation: Situation) -> Decision:
    """Undo the drain, evict more pods, or go on to the reboot or the maintenance."""
    return _called_off(situation) or working.put_back(situation) or _unknown(situation) or _drain(situation)


def _called_off(situation: Situation) -> Decision | None:
    if found := late_gates.called_off(situation):
        return found
    refused = hold.ask(situation, When.BEFORE_REBOOT)
    if refused is not None and refused.code is not Code.LOCK_UNKNOWN:
        return late_gates.undone(situation, refused, refused.code)
    if unusable := settings.ask(situation, When.BEFORE_REBOOT):
        return late_gates.undone(situation, unusable, unusable.code)
    if not situation.node.unschedulable:
        return failing.uncordoned(situation, "during the drain")
    return None


def _unknown(situation: Situation) -> Decision | None:
    """Evict no further pods while a required fact is unknown; undo the drain if that lasts too long."""
    pods = situation.seen.pods
    refused = hold.ask(situation, When.BEFORE_REBOOT)
    if refused is None and (situation.seen.need.answer is NeedAnswer.UNKNOWN or not situation.boot):
        refused = host_state.ask(situation, When.BEFORE_REBOOT)
    if refused is None and not isinstance(pods, tuple):
        refused = Refusal(
            gate="drain", code=Code.PODS_UNKNOWN, sentence=f"the pods of this node cannot be listed: {pods.why}"
        )
    return late_gates.wait_patiently(situation, refused) if refused is not None else None


def _drain(situation: Situation) -> Decision:
    policy, pods = situation.policy.drain, situation.seen.pods
    assert isinstance(pods, tuple)
    _forget_gone(situation, pods)
    plan, memory = working.plan_of(situation, pods), situation.memory
    slow = slow_pods.look(situation, plan)
    if plan.is_done and (request := requests.to_keep_down(situation)):
        return maintenance.begin(situation, request)
    if plan.is_done:
        return _wait_for_volumes(situation, plan) or _go_on(
            situation,
            Code.REBOOT_ANNOUNCED,
            f"the node is drained{drain_plan.describe_returning(plan)}{volumes.said(situation, plan)}, and no gate "
            "refuses: the node reboots",
        )
    elapsed = (situation.elapsed(situation.progress.drain_started) or 0.0) - situation.policy.balancer_settle_seconds
    if elapsed < 0:
        sentence = f"the node waits {span(round(-elapsed))} before the first eviction (--load-balancer-settle)"
        return stay(
            situation, Status(Code.DRAIN_STARTED, sentence, is_silent=True), Stay(look=min(-elapsed, LOOK_SECONDS))
        )
    if policy.timeout_seconds > 0 and elapsed > policy.timeout_seconds:
        return _timed_out(situation, plan, slow)
    if policy.timeout_seconds == 0 and slow_pods.is_out_of_time(slow, elapsed):
        return _too_slow(situation, plan, slow, elapsed)
    if (older := working.older_claims(situation)) and slow_pods.is_refused_for_long(situation, plan, slow):
        return _give_way(situation, plan, older)
    plan = slow_pods.held_back(plan, slow, elapsed)
    return _count_first(situation, plan) or _evict(
        situation, plan, f"{drain_plan.have_to_leave(len(plan.left))}: {drain_plan.describe(plan, memory)}"
    )


def _wait_for_volumes(situation: Situation, plan: DrainPlan) -> Decision | None:
    left = volumes.awaited(situation, plan)
    if not left:
        return None
    waited = volumes.waited_seconds(situation)
    status = Status(Code.DETACHING, f"the node is drained and waits until its volumes are detached: {first_few(left)}")
    look = volumes.look_seconds(waited or 0.0)
    if waited is None:
        progress = replace(situation.progress, drained=situation.mark())
        return move(situation, status, Transition(Phase.DRAINING, progress, look=look))
    return stay(situation, status, Stay(look=look))


def _count_first(situation: Situation, plan: DrainPlan) -> Decision | None:
    """Add the workloads to the baseline whose first pod came to this node after it. None if there is none, or if their
    controllers no longer exist."""
    lacking = baseline.unrecorded(situation, plan.now)
    if not lacking:
        return None
    situation.need(Evidence.OWNERS)
    owners = situation.seen.owners
    if isinstance(owners, (Unknown, NotAsked)):
        why = f"careen cannot tell how healthy the workloads of new pods are: {owners.why}"
        return late_gates.wait_patiently(situation, Refusal(gate="drain", code=Code.OWNERS_UNKNOWN, sentence=why))
    rows = tuple(row for row in owners if row.uid in lacking)
    if not rows:
        return None
    progress = replace(situation.progress, owners=(*situation.progress.owners, *rows))
    status = Status(Code.DRAINING, f"{drain_plan.have_to_leave(len(plan.left))}; some of them came after the cordon")
    return move(situation, status, Transition(Phase.DRAINING, progress))


def _evict(situation: Situation, plan: DrainPlan, sentence: str) -> Decision:
    policy, seen = situation.policy.drain, situation.seen
    coming = drain_plan.owners_of_new_pods(plan)
    evicting = after_evicting_new_pods(situation.memory, coming, uptime=seen.uptime, jitter=seen.chance.jitter)
    situation.remember(drain=evicting.drain)
    return stay(
        situation,
        Status(Code.DRAINING, sentence),
        Stay(
            look=plan.look_again_seconds,
            actions=(Evict(pods=drain_plan.requests(plan, policy), parallel=policy.parallel),) if plan.now else (),
        ),
    )


def _forget_gone(situation: Situation, pods: tuple[PodView, ...]) -> None:
    """Forget the eviction requests and back-offs of pods that have left. A new pod of the same name has another UID."""
    here, drain = frozenset(pod.uid for pod in pods), situation.memory.drain
    left = {uid: seen for uid, seen in drain.evictions.items() if uid in here}
    situation.remember(drain=replace(drain, evictions=left, first=drain.first or here))


def _timed_out(situation: Situation, plan: DrainPlan, slow: SlowDrain) -> Decision:
    policy, described = situation.policy.drain, drain_plan.describe(plan, situation.memory)
    if requests.to_keep_down(situation) is None and drain_plan.is_force_earned(plan, policy, situation.memory):
        return _go_on(
            situation, Code.FORCED, f"--force-reboot: the node reboots although these pods are still on it: {described}"
        )
    if policy.force_reboot and not drain_plan.is_hopeless(plan, policy, situation.memory):
        return _evict(
            situation, plan, f"the agent requests the evictions again before --force-reboot applies: {described}"
        )
    if slow.is_slow:
        return _too_slow(situation, plan, slow, policy.timeout_seconds)
    return failing.undone(
        situation, Code.DRAIN_TIMEOUT, f"the drain did not finish within {span(policy.timeout_seconds)}: {described}"
    )


def _give_way(situation: Situation, plan: DrainPlan, older: tuple[str, ...]) -> Decision:
    waited, described = span(slow_pods.GIVES_WAY_SECONDS), drain_plan.describe(plan, situation.memory)
    return failing.undone(
        situation,
        Code.DRAIN_TIMEOUT,
        f"no pod has left for {waited}, and what refuses the evictions may wait for this node: the drain gives way to "
        f"that of {first_few(list(older))}, whose claim is older: {described}",
    )


def _too_slow(situation: Situation, plan: DrainPlan, slow: SlowDrain, waited: float) -> Decision:
    described = drain_plan.describe(plan, situation.memory)
    pause = span(round(drain_memory.FIRST_PAUSE_SECONDS))
    return failing.undone(
        situation,
        Code.SLOW_PODS,
        f"these pods did not leave within {span(round(waited))}, so the drain is undone, and the next try is at least "
        f"{pause} away: {described}",
        memory=slow_pods.after_undo(situation, slow),
    )


def _go_on(situation: Situation, code: Code, sentence: str) -> Decision:
    """The node is empty, or reboots with pods on it (--force-reboot): wait for --reboot-delay, evaluate the gates
    again, and announce the reboot."""
    delay = situation.policy.reboot_delay_seconds
    waits = f"the node is drained and waits {span(round(delay))} before its reboot (--reboot-delay)"
    if delay > 0:
        waited = situation.elapsed(situation.progress.drained)
        if waited is None:
            progress = replace(situation.progress, drained=situation.mark())
            return move(
                situation,
                Status(Code.DRAINED, waits),
                Transition(Phase.DRAINING, progress, look=min(delay, LOOK_SECONDS)),
            )
        if waited < delay:
            return stay(
                situation,
                Status(Code.DRAINED, waits),
                Stay(look=min(delay - waited, LOOK_SECONDS)),
            )
    return late_gates.decide(situation) or rebooting.announce(
        situation, code, f"{sentence}{late_gates.passed(situation)}"
    )

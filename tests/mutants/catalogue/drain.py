"""Mistakes in the drain: which pods it evicts and when, which pods it may delete by force, and how it compares the
health of workloads with the health before the drain.
"""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_PLAN, _LOOKS, _BASELINE, _OBJECTION = (
    "core/drain/drain_plan.py:",
    "core/drain/drain_looks.py:",
    "core/drain/baseline.py:",
    "core/drain/forecast_objection.py:",
)

MUTANTS = (
    Mutant("why_it_stays: a static pod is evicted", _PLAN + "why_it_stays", "pod.is_mirror or", ""),
    Mutant(
        "why_it_stays: DaemonSet pods are evicted",
        _PLAN + "why_it_stays",
        'if pod.owner_kind == "DaemonSet":',
        "if False:",
    ),
    Mutant(
        "why_it_stays: finished pods are evicted", _PLAN + "why_it_stays", "if pod.phase in _FINISHED:", "if False:"
    ),
    Mutant(
        "why_it_stays: --drain-pod-selector selects the pods that stay",
        _PLAN + "why_it_stays",
        "and not policy.selector.matches(pod.labels)",
        "and policy.selector.matches(pod.labels)",
    ),
    Mutant(
        "why_it_stays: a bare pod that a person bound by hand stays",
        _PLAN + "why_it_stays",
        "and pod.owner_kind and pod.came_bound",
        "and pod.came_bound",
    ),
    Mutant(
        "to_evict: pods that end already are tried again",
        _PLAN + "to_evict",
        "and not pod.is_terminating",
        "",
    ),
    Mutant(
        "is_done: pods that still end are not waited for",
        _PLAN + "DrainPlan.is_done",
        "self.ending or self.now or self.later",
        "self.now or self.later",
    ),
    Mutant(
        "is_done: pods whose eviction was refused a moment ago are not waited for",
        _PLAN + "DrainPlan.is_done",
        "self.ending or self.now or self.later",
        "self.ending or self.now",
    ),
    Mutant(
        "plan: the default of --skip-wait-for-delete-timeout waits for no pod",
        _PLAN + "plan",
        "skip > 0 and (now",
        "(now",
    ),
    Mutant(
        "plan: a pod that was refused is asked again at every look",
        _PLAN + "plan",
        "is_comer=pod.uid in came) > uptime:",
        "is_comer=pod.uid in came) > uptime + 3600:",
    ),
    Mutant(
        "without_eviction: looks for terminating pods that cannot end the drain yet",
        _LOOKS + "without_eviction",
        "if pauses:",
        "if not ending:",
    ),
    Mutant(
        "_after: the pods that a slow turn left over wait like refused ones",
        _LOOKS + "_after",
        "uid not in answered or",
        "uid in answered and",
    ),
    Mutant(
        "_after: a refused eviction is followed by a look that cannot find the node empty",
        _LOOKS + "_after",
        "each.answer not in _ENDS",
        "False",
    ),
    Mutant(
        "_until_next_round: a hold waits as long as a refused pod's pause",
        _LOOKS + "_until_next_round",
        ", LOOK_SECONDS)",
        ", 60.0)",
    ),
    Mutant(
        "_order: StatefulSets go first",
        _PLAN + "_order",
        'pod.owner_kind == "StatefulSet"',
        'pod.owner_kind != "StatefulSet"',
    ),
    Mutant("_order: the most important pods go first", _PLAN + "_order", "pod.priority", "-pod.priority"),
    Mutant(
        "came_after: every pod of the second of the cordon came in spite of it",
        _PLAN + "came_after",
        "> _CLOCK_SECONDS",
        "> -_CLOCK_SECONDS",
    ),
    Mutant(
        "_comes_for_ever: a pod that tolerates the cordon is evicted for ever",
        _PLAN + "_comes_for_ever",
        "pod.tolerates_cordon or bool(pod.came_bound)",
        "bool(pod.came_bound)",
    ),
    Mutant(
        "_comes_for_ever: one round is enough to leave a pod on the node",
        _PLAN + "_comes_for_ever",
        "coming.rounds >= MOST_ROUNDS",
        "coming.rounds >= 1",
    ),
    Mutant(
        "_not_before: pods that come again do not wait for the pause of their kind",
        _PLAN + "_not_before",
        "if is_comer else None",
        "if False else None",
    ),
    Mutant(
        "requests: the grace period of the settings is not sent",
        _PLAN + "requests",
        "grace_seconds=policy.grace_seconds",
        "grace_seconds=None",
    ),
    Mutant(
        "is_force_earned: earned without --force-reboot",
        _PLAN + "is_force_earned",
        "if not policy.force_reboot:\n        return False",
        "if not policy.force_reboot:\n        return True",
    ),
    Mutant(
        "is_force_earned: earned before every pod was judged often enough",
        _PLAN + "is_force_earned",
        "judgements(plan, pod, memory) < policy.attempts_before_force",
        "judgements(plan, pod, memory) < 1",
    ),
    Mutant(
        "is_force_earned: a budget is passed over without its own override",
        _PLAN + "is_force_earned",
        "and not policy.force_past_budgets",
        "and False",
    ),
    Mutant(
        "is_force_earned: a budget's no is forgotten when the last answer was lost",
        _PLAN + "is_force_earned",
        "asked.judgement is EvictAnswer.BUDGET",
        "asked.answer is EvictAnswer.BUDGET",
    ),
    Mutant(
        "judgements: attempts that no server judged count",
        _PLAN + "judgements",
        "asked.judgements if asked else 0",
        "asked.attempts if asked else 0",
    ),
    Mutant(
        "is_hopeless: given up before the pods were judged often enough",
        _PLAN + "is_hopeless",
        "or _is_unheard(plan, pod, memory, enough)",
        "or True",
    ),
    Mutant(
        "after_eviction: an answer that was lost counts as a judgement",
        "core/facts/memory.py:after_eviction",
        "answer in JUDGED",
        "answer in JUDGED or answer is EvictAnswer.UNCLEAR",
    ),
    Mutant(
        "after_eviction: Retry-After is ignored",
        "core/facts/memory.py:after_eviction",
        "max(_pause_after(answer, attempts, jitter), retry_after_seconds)",
        "_pause_after(answer, attempts, jitter)",
    ),
    Mutant(
        "_pause: the back-off of an eviction never grows",
        "core/facts/memory.py:_pause",
        "growth ** min(attempts - 1, 32)",
        "1.0",
    ),
    # ---- the time before ----
    Mutant(
        "services: Jobs have to be as well as before",
        _BASELINE + "services",
        "if owner.kind not in _NOT_COMPARED",
        'if owner.kind != "DaemonSet"',
    ),
    Mutant(
        "taken: workloads that lose no pod are waited for",
        _BASELINE + "taken",
        "if owner.uid in displaced",
        "",
    ),
    Mutant(
        "must_run: careen's own pod is waited for by itself",
        _BASELINE + "must_run",
        "and not is_own",
        "",
    ),
    Mutant(
        "must_run: a DaemonSet pod that ends is waited for",
        _BASELINE + "must_run",
        "and not pod.is_terminating",
        "",
    ),
    Mutant(
        "was_ready: a pod of another template is compared with its predecessor",
        _BASELINE + "was_ready",
        "row is None or (row.ready and row.generation != _revision(pod))",
        "row is None",
    ),
    Mutant(
        "was_ready: a pod that was not ready before has to be ready now",
        _BASELINE + "was_ready",
        "return bool(row.ready)",
        "return True",
    ),
    # ---- the forecast's objections ----
    Mutant(
        "objection_to: pods that can never be evicted are no objection",
        _OBJECTION + "objection_to",
        "if forecast.never and not is_forced:",
        "if False:",
    ),
    Mutant(
        "objection_to: one pod without room more than allowed",
        _OBJECTION + "objection_to",
        "len(pending) > policy.forecast_pending_allowed",
        "len(pending) > policy.forecast_pending_allowed + 1",
    ),
    Mutant(
        "objection_to: pods that cannot be predicted are no objection",
        _OBJECTION + "objection_to",
        "if len(unknown) > policy.forecast_unknown_allowed:",
        "if False:",
    ),
    Mutant(
        "objection_to: --force-reboot alone passes over pods that a budget holds for ever",
        _OBJECTION + "objection_to",
        "policy.drain.force_reboot and policy.drain.force_past_budgets",
        "policy.drain.force_reboot",
    ),
)

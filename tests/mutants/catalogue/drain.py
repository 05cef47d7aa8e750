"""Mistakes in the drain: which pods it evicts and when, when --force-reboot ends it, and how the agent compares the
health of workloads with their health before the drain.
"""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_VOLUMES = "core/drain/volumes.py:"
_PLAN, _LOOKS, _BASELINE, _OBJECTION = (
    "core/drain/drain_plan.py:",
    "core/drain/drain_pauses.py:",
    "core/drain/baseline.py:",
    "core/drain/forecast_objection.py:",
)

MUTANTS = (
    Mutant(
        "Two drains that wait for each other never end",
        "core/drain/slow_pods.py:is_refused_for_long",
        "slow.idle_seconds > GIVES_WAY_SECONDS",
        "False",
    ),
    Mutant(
        "A pod that returns within the difference of the clocks is evicted again",
        _PLAN + "plan",
        "or (first and pod.uid not in first)",
        "",
    ),
    Mutant(
        "The StatefulSet of another API group is read as one of Kubernetes",
        "core/facts/observation.py:PodView.kind_of_owner",
        "if is_ambiguous else",
        "if False else",
    ),
    Mutant(
        "A controller that uncordons after every cordon has a node drained for ever",
        "core/steps/shared/failing.py:undone",
        "code is not Code.WRITE_NOT_KEPT",
        "code not in (Code.WRITE_NOT_KEPT, Code.UNCORDONED_BY_HAND)",
    ),
    Mutant("The drain evicts a static pod", _PLAN + "why_it_stays", "pod.is_mirror or", ""),
    Mutant(
        "The drain evicts DaemonSet pods",
        _PLAN + "why_it_stays",
        'if pod.owner_kind == "DaemonSet":',
        "if False:",
    ),
    Mutant("The drain evicts finished pods", _PLAN + "why_it_stays", "if pod.is_finished:", "if False:"),
    Mutant(
        "--drain-pod-selector selects the pods that stay",
        _PLAN + "why_it_stays",
        "and not policy.selector.matches(pod.labels)",
        "and policy.selector.matches(pod.labels)",
    ),
    Mutant(
        "The drain does not evict a pod that has no controller and that a person bound to the node",
        _PLAN + "why_it_stays",
        "and pod.owner_kind and pod.came_bound",
        "and pod.came_bound",
    ),
    Mutant(
        "The drain evicts terminating pods again",
        _PLAN + "to_evict",
        "and not pod.is_terminating",
        "",
    ),
    Mutant(
        "The drain ends while pods are still terminating",
        _PLAN + "DrainPlan.is_done",
        "self.ending or self.now or self.later",
        "self.now or self.later",
    ),
    Mutant(
        "The drain ends while a pod waits for the retry of its refused eviction",
        _PLAN + "DrainPlan.is_done",
        "self.ending or self.now or self.later",
        "self.ending or self.now",
    ),
    Mutant(
        "The drain does not wait for a terminating pod that tolerates the cordon",
        _PLAN + "_always_returns",
        "if not pod.owner_kind or pod.is_terminating:",
        "if not pod.owner_kind:",
    ),
    Mutant(
        "With the default --skip-wait-for-delete-timeout=0 the drain waits for no pod",
        _PLAN + "plan",
        "skip > 0 and (now",
        "(now",
    ),
    Mutant(
        "A refused eviction is tried again in every turn",
        _PLAN + "plan",
        "is_new=pod.uid in came) > uptime:",
        "is_new=pod.uid in came) > uptime + 3600:",
    ),
    Mutant(
        "While refused pods keep the drain from ending, the agent still polls terminating pods",
        _LOOKS + "without_eviction",
        "if pauses:",
        "if not ending:",
    ),
    Mutant(
        "A turn without time for all evictions is followed by the same pause as a turn that requested all evictions",
        _LOOKS + "_after",
        "uid not in answered or",
        "uid in answered and",
    ),
    Mutant(
        "After a refused eviction the next turn comes before the eviction may be tried again",
        _LOOKS + "_after",
        "each.answer not in ENDS_EVICTION",
        "False",
    ),
    Mutant(
        "While evictions wait for their retry, the agent notices a person's hold too late",
        _LOOKS + "_until_next_round",
        ", LOOK_SECONDS)",
        ", 60.0)",
    ),
    Mutant(
        "The drain evicts StatefulSet pods first",
        _PLAN + "_order",
        'pod.owner_kind == "StatefulSet"',
        'pod.owner_kind != "StatefulSet"',
    ),
    Mutant(
        "The drain evicts the pods of the highest priority first", _PLAN + "_order", "pod.priority", "-pod.priority"
    ),
    Mutant(
        "A pod that was created just before the cordon is treated as created after the cordon",
        _PLAN + "is_created_after",
        "> _CLOCK_SECONDS",
        "> -_CLOCK_SECONDS",
    ),
    Mutant(
        "A pod that tolerates the cordon is evicted again and again",
        _PLAN + "_always_returns",
        "pod.tolerates_cordon or bool(pod.came_bound)",
        "bool(pod.came_bound)",
    ),
    Mutant(
        "After a single round of evictions the drain leaves a recreated pod on the node",
        _PLAN + "_always_returns",
        "coming.rounds >= MOST_ROUNDS",
        "coming.rounds >= 1",
    ),
    Mutant(
        "A recreated pod is evicted again without a pause",
        _PLAN + "_not_before",
        "if is_new else None",
        "if False else None",
    ),
    Mutant(
        "The eviction requests lack the configured grace period",
        _PLAN + "requests",
        "grace_seconds=policy.grace_seconds",
        "grace_seconds=None",
    ),
    Mutant(
        "The agent forces a reboot although --force-reboot is off",
        _PLAN + "is_force_earned",
        "if not policy.force_reboot:\n        return False",
        "if not policy.force_reboot:\n        return True",
    ),
    Mutant(
        "The agent forces a reboot after a single refused eviction of each pod",
        _PLAN + "is_force_earned",
        "judgements(plan, pod, memory) < policy.attempts_before_force",
        "judgements(plan, pod, memory) < 1",
    ),
    Mutant(
        "--force-reboot alone lets the agent reboot past a PodDisruptionBudget",
        _PLAN + "is_force_earned",
        "and not policy.force_past_budgets",
        "and False",
    ),
    Mutant(
        "The agent forgets the refusal by a PodDisruptionBudget when the next response is lost",
        _PLAN + "is_force_earned",
        "asked.judgement is EvictAnswer.BUDGET",
        "asked.answer is EvictAnswer.BUDGET",
    ),
    Mutant(
        "Eviction requests that the API server neither accepted nor refused count towards --force-reboot",
        _PLAN + "judgements",
        "asked.judgements if asked else 0",
        "asked.attempts if asked else 0",
    ),
    Mutant(
        "The drain fails although the agent has not yet requested as many evictions as --force-reboot needs",
        _PLAN + "is_hopeless",
        "or _is_unheard(plan, pod, memory, enough)",
        "or True",
    ),
    Mutant(
        "The agent assumes that the API server decided about an eviction, although no response proves this",
        "core/facts/memory.py:after_eviction",
        "answer in JUDGED",
        "answer in JUDGED or answer is EvictAnswer.UNCLEAR",
    ),
    Mutant(
        "The next try of an eviction ignores the server's Retry-After",
        "core/facts/memory.py:after_eviction",
        "max(_pause_after(answer, attempts, jitter), retry_after_seconds)",
        "_pause_after(answer, attempts, jitter)",
    ),
    Mutant(
        "The pause between tries of an eviction never grows",
        "core/facts/memory.py:_pause",
        "growth ** min(attempts - 1, 32)",
        "1.0",
    ),
    # ---- the health before the drain ----
    Mutant(
        "The node keeps its claim until Jobs are as healthy as before the drain",
        _BASELINE + "services",
        "if _without_group(owner.kind) != _JOB and not is_of_the_node(owner)",
        'if owner.kind != "DaemonSet"',
    ),
    Mutant(
        "The node waits for workloads that lost no pod in the drain",
        _BASELINE + "taken",
        "if owner.uid in displaced",
        "",
    ),
    Mutant(
        "The agent waits for its own pod to become ready",
        _BASELINE + "must_run",
        "and not is_own",
        "",
    ),
    Mutant(
        "The agent waits for a terminating DaemonSet pod to become ready",
        _BASELINE + "must_run",
        "and not pod.is_terminating",
        "",
    ),
    Mutant(
        "A DaemonSet pod of a new template has to become ready because the old pod was ready",
        _BASELINE + "was_ready",
        "row is None or (_is_daemon_set(row) and row.ready and row.generation != _revision(pod))",
        "row is None",
    ),
    Mutant(
        "The agent also waits for a DaemonSet pod that was not ready before the drain",
        _BASELINE + "was_ready",
        "return bool(row.ready)",
        "return True",
    ),
    # ---- what stays on the node ----
    Mutant(
        "A node whose status lists no volume reboots before the volumes are detached",
        _VOLUMES + "_attached",
        "not listed and not situation.progress.volumes",
        "not listed",
    ),
    Mutant(
        "A node waits for the volumes of pods that stay",
        _VOLUMES + "_attached",
        "if not each.stays",
        "",
    ),
    Mutant(
        "A node waits for ever for a volume that stays attached",
        _VOLUMES + "_is_over",
        ">= MOST_SECONDS",
        ">= 1e9",
    ),
    Mutant(
        "A pod within its grace period counts as stuck",
        _PLAN + "stuck",
        "> _STUCK_SECONDS",
        "> -1e9",
    ),
    Mutant(
        "A terminating DaemonSet pod refuses the reboot",
        _PLAN + "stuck",
        "and not why_it_stays(pod, policy)",
        "",
    ),
    # ---- the forecast's objections ----
    Mutant(
        "The forecast gate permits a drain although some pods can never be evicted",
        _OBJECTION + "objection_to",
        "if forecast.never and not is_forced:",
        "if False:",
    ),
    Mutant(
        "The forecast gate allows one pending pod more than the settings",
        _OBJECTION + "objection_to",
        "len(pending) > policy.forecast_pending_allowed",
        "len(pending) > policy.forecast_pending_allowed + 1",
    ),
    Mutant(
        "The forecast gate ignores pods whose outcome is unknown",
        _OBJECTION + "objection_to",
        "if len(unknown) > policy.forecast_unknown_allowed:",
        "if False:",
    ),
    Mutant(
        "--force-reboot without --force-reboot-past-budgets makes the forecast gate ignore pods that cannot be evicted",
        _OBJECTION + "objection_to",
        "policy.drain.force_reboot and policy.drain.force_past_budgets",
        "policy.drain.force_reboot",
    ),
)

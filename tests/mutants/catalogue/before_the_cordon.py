"""Mistakes in the phases before the cordon (idle, waiting and claiming) and in the line of waiting nodes."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_IDLE, _WAITING, _LINE, _CLAIMING = (f"core/steps/{name}.py:" for name in ("idle", "waiting", "line", "claiming"))
_BEHIND = "core/steps/shared/looking_behind.py:"
_PREPARING = "core/steps/shared/preparing.py:"

MUTANTS = (
    # ---- idle ----
    Mutant(
        "idle: an unknown need begins to wait",
        _IDLE + "decide",
        "if need.answer is NeedAnswer.YES:",
        "if need.answer is not NeedAnswer.NO:",
    ),
    Mutant(
        "idle: marks of an earlier agent stay on the node",
        _IDLE + "decide",
        "if _has_leftovers(situation):",
        "if False:",
    ),
    Mutant(
        "_begin_waiting: a taint that another client set is recorded as careen's",
        _IDLE + "_begin_waiting",
        'tainted_at=now if owned else "", taint_key=owned',
        'tainted_at=now, taint_key=situation.policy.taint_key or ""',
    ),
    Mutant(
        "tidy_line: empties the line when the waiting nodes cannot be listed",
        _IDLE + "tidy_line",
        "if isinstance(waiters, tuple) else set(content.line.names)",
        "if isinstance(waiters, tuple) else set()",
    ),
    Mutant(
        "tidy_line: writes into a paused lock",
        _IDLE + "tidy_line",
        "or content.is_paused",
        "",
    ),
    Mutant(
        "_for_its_moment: a thousand nodes taint themselves in the same second",
        _IDLE + "_for_its_moment",
        "if left <= 0:",
        "if True:",
    ),
    # ---- waiting ----
    Mutant(
        "waiting: a claim on its way back is forgotten",
        _WAITING + "decide",
        "if situation.progress.is_giving_back or situation.progress.claim:",
        "if False:",
    ),
    Mutant(
        "waiting: becomes idle although the need is unknown",
        _WAITING + "_is_over",
        "if situation.seen.need.answer is NeedAnswer.NO:",
        "if situation.seen.need.answer is not NeedAnswer.YES:",
    ),
    Mutant(
        "_halted: a node loses its watch of the turn for another node's failure, and is not shown ready",
        _WAITING + "_halted",
        "label=order.READY",
        'label="required"',
    ),
    Mutant(
        "_refused: a node that cannot come keeps its place in the line",
        _WAITING + "_refused",
        "actions=leave_line(situation)",
        "actions=()",
    ),
    Mutant(
        "leave_line: writes into a paused lock",
        _WAITING + "leave_line",
        "or content.is_paused",
        "",
    ),
    Mutant(
        "_forgive: reboots that were counted against the node still count after a retry",
        _WAITING + "_forgive",
        "reboots_for_need=0, tries=0",
        "tries=0",
    ),
    Mutant(
        "_mend_taint: a taint that a person removed stays away",
        _WAITING + "_mend_taint",
        "if taints is None and owned == situation.progress.taint_key:",
        "if owned == situation.progress.taint_key:",
    ),
    # ---- looking behind the lock ----
    Mutant(
        "_is_due: checks the holders at every look",
        _BEHIND + "_is_due",
        "if left > 0 and not is_outdated:",
        "if False:",
    ),
    Mutant(
        "_age_seconds: a claim whose age cannot be read is never checked",
        _BEHIND + "_age_seconds",
        "if seconds >= 0 else OTHERS_LOOK_SECONDS",
        "",
    ),
    Mutant(
        "look: the watch of absent Nodes is not remembered",
        _BEHIND + "look",
        "ghosts=watch.since",
        "ghosts={}",
    ),
    Mutant("look: frees ghosts in a paused lock", _BEHIND + "look", "or content.is_paused", ""),
    Mutant(
        "_mark: marks with a clock that was never compared",
        _BEHIND + "_mark",
        "if isinstance(situation.seen.clock_skew_seconds, Unknown):",
        "if False:",
    ),
    # ---- the line ----
    Mutant(
        "_in_line: starts although it is not its turn",
        _LINE + "_in_line",
        "if start.is_allowed:",
        "if start.is_allowed or start.places > 0:",
    ),
    Mutant(
        "_first_of_all: every node starts if none is named",
        _LINE + "_first_of_all",
        "situation.node.name in line.names[:places]",
        "situation.node.name in line.names",
    ),
    Mutant(
        "_first_of_all: the first of a roll-out by zone brings nodes of another zone",
        _LINE + "_first_of_all",
        "start.places if line.abreast is None else min(start.places, line.abreast)",
        "start.places",
    ),
    Mutant(
        "_first_of_all: claims when the waiting nodes cannot be listed",
        _LINE + "_first_of_all",
        "return start",
        "return replace(start, is_allowed=True)",
    ),
    Mutant(
        "_start: claims although a costly gate refuses",
        _LINE + "_start",
        "return _pass_on(situation, content, refused)",
        "break",
    ),
    Mutant(
        "_claim: the claim id is one that was used before",
        _LINE + "_claim",
        "claim=situation.seen.chance.claim_id",
        'claim=situation.progress.claim or "claim"',
    ),
    Mutant(
        "_claim: the record lacks the time of the claim",
        _LINE + "_claim",
        "claimed=situation.mark()",
        "claimed=None",
    ),
    Mutant(
        "_claim: the record lacks the lock of the claim",
        _LINE + "_claim",
        "lock=situation.reading.object_id",
        'lock=""',
    ),
    Mutant(
        "_claim: the record lacks the boot that the claim is to end",
        _LINE + "_claim",
        "boot_left=situation.boot",
        'boot_left=""',
    ),
    Mutant(
        "_claim: the host's answer under an earlier claim still counts",
        _LINE + "_claim",
        "reboot=None,",
        "",
    ),
    Mutant(
        "in_phase: evictions that were refused under an earlier claim earn the force",
        "core/facts/memory.py:in_phase",
        "if phase not in phases}",
        "if False}",
    ),
    Mutant(
        "_pass_on: the turn is handed on although the next node would be refused as well",
        _LINE + "_pass_on",
        "if refused.is_of_cluster else",
        "if False else",
    ),
    Mutant(
        "_pass_on: the same costly gate is evaluated at every look",
        _LINE + "_pass_on",
        "not_before=situation.seen.uptime + pause",
        "not_before=0.0",
    ),
    Mutant(
        "costly_pause_seconds: the pause after a costly refusal never grows",
        _LINE + "costly_pause_seconds",
        "2.0 ** min(situation.memory.costly.refusals, 10)",
        "1.0",
    ),
    Mutant(
        "_handed_on: a node that was refused stays first in the line",
        _LINE + "_handed_on",
        "content = content.with_line(content.line.passing_over((name,)))",
        "content = content",
    ),
    # ---- preparations ----
    Mutant(
        "used: a preparation counts although something has changed",
        _PREPARING + "used",
        "prepared is None or why_not(situation)",
        "prepared is None",
    ),
    Mutant(
        "lacking: a preparation counts before its inputs are read again",
        _PREPARING + "lacking",
        'if why_not(situation) == "" else ()',
        'if why_not(situation) == "never" else ()',
    ),
    Mutant(
        "why_not: a preparation never gets too old",
        _PREPARING + "why_not",
        "or _why_old(situation, prepared)",
        'or ""',
    ),
    Mutant(
        "why_not: the preparation counts with any holders",
        _PREPARING + "why_not",
        "or _why_others(prepared.holders, holders)",
        'or ""',
    ),
    Mutant(
        "why_not: the preparation counts despite changed Nodes",
        _PREPARING + "why_not",
        "or _why_nodes(situation, prepared)",
        'or ""',
    ),
    Mutant(
        "why_not: a budget that has closed does not matter",
        _PREPARING + "why_not",
        "or _why_budgets(situation, prepared)",
        'or ""',
    ),
    Mutant(
        "_why_pods: a pod that came since is taken for rehearsed",
        _PREPARING + "_why_pods",
        "if pod.uid not in prepared.rehearsed",
        "if False",
    ),
    Mutant(
        "_refused: a preparation that was refused counts",
        _PREPARING + "_refused",
        "if refused := gate.ask(situation, When.CLAIMED):",
        "if (refused := gate.ask(situation, When.CLAIMED)) and False:",
    ),
    Mutant(
        "_is_due: a holder that settles for long is prepared for at every look",
        _PREPARING + "_is_due",
        "situation.seen.uptime - prepared.at >= pause",
        "True",
    ),
    Mutant(
        "_leaving: a node that is not the next in line prepares",
        _PREPARING + "_is_next",
        "is_first and is_full",
        "is_full",
    ),
    # ---- claiming ----
    Mutant(
        "claiming: continues although the host no longer asks",
        _CLAIMING + "decide",
        "if situation.seen.need.answer is NeedAnswer.NO:",
        "if False:",
    ),
    Mutant(
        "claiming: the cheap gates are not evaluated again",
        _CLAIMING + "decide",
        "if refused := refusals(situation, cheap, When.CLAIMED):",
        "if refused := ():",
    ),
    Mutant(
        "claiming: continues with another lock than the claim was meant for",
        _CLAIMING + "decide",
        "if situation.reading.object_id != situation.progress.lock:",
        "if False:",
    ),
    Mutant(
        "claiming: continues to the cordon without an entry in the lock",
        _CLAIMING + "decide",
        "if situation.own_entry is None:",
        "if not content.entries_of(situation.node.name) and not content.entries:",
    ),
    Mutant(
        "claiming: --drain-delay is ignored",
        _CLAIMING + "decide",
        "(left := _delay_left(situation)) > 0",
        "(left := _delay_left(situation)) > 1e9",
    ),
    Mutant(
        "_enter: --order=zone does not hold for the claim",
        _CLAIMING + "_enter",
        "in_one_zone=is_by_zone",
        "in_one_zone=False",
    ),
    Mutant(
        "_wait_a_little: one missing answer costs the claim",
        _CLAIMING + "_wait_a_little",
        "if refused.code not in _PASSING:",
        "if True:",
    ),
    Mutant(
        "_wait_a_little: an answer that never comes keeps the claim for ever",
        _CLAIMING + "_wait_a_little",
        ">= _UNKNOWN_PATIENCE_SECONDS",
        ">= 1e9",
    ),
    Mutant(
        "_ask_everything: the budgets are not checked under the claim",
        _CLAIMING + "_ask_everything",
        "if refused := budgets.ask(situation, When.CLAIMED):",
        "if refused := None:",
    ),
    Mutant(
        "_ask_everything: cordons on a list of nodes that is old",
        _CLAIMING + "_ask_everything",
        "or (isinstance(fleet, Fleet) and _is_old(situation, fleet))",
        "",
    ),
    Mutant(
        "_ask_everything: the other nodes at work are not asked after again with a fresh list",
        _CLAIMING + "_ask_everything",
        "return want(situation, *_LAST)",
        "return want(situation, Evidence.FLEET)",
    ),
    Mutant(
        "_ask_everything: cordons although the health of the workloads is unknown",
        _CLAIMING + "_ask_everything",
        "if isinstance(situation.seen.owners, Unknown):",
        "if False:",
    ),
    Mutant(
        "_ask_everything: cordons beside another node that works in another lock",
        _CLAIMING + "_ask_everything",
        "_others_first(situation) or _cordon(situation, fleet)",
        "_cordon(situation, fleet)",
    ),
    Mutant(
        "_with_fresh_forecast: a forecast counts although others hold claims since",
        _CLAIMING + "_with_fresh_forecast",
        "is_old or taken.holders != line.others_holding(situation, content)",
        "is_old",
    ),
    Mutant(
        "_with_fresh_forecast: a forecast counts for ever",
        _CLAIMING + "_with_fresh_forecast",
        "if is_old or",
        "if",
    ),
    Mutant(
        "_others_first: a list that did not come has no other node at work",
        _CLAIMING + "_others_first",
        "return _wait_a_little(situation, unknown) or _back(situation, unknown.code, unknown.sentence)",
        "return None",
    ),
    Mutant(
        "_others_first: nodes at work without an entry in this lock do not count",
        _CLAIMING + "_others_first",
        "len(content.holders) + len(working)",
        "len(content.holders)",
    ),
    Mutant(
        "_others_first: another node that claims is not waited for",
        _CLAIMING + "_others_first",
        "_wait_for(situation, claiming) if claiming else None",
        "None",
    ),
    Mutant(
        "_wait_for: a node that claims in another lock is ignored after a wait",
        _CLAIMING + "_wait_for",
        "isinstance(progress, UnreadableProgress) or progress.lock != mine",
        "isinstance(progress, UnreadableProgress)",
    ),
    Mutant(
        "_wait_for: a node that claims is not waited for long enough to see its cordon",
        _CLAIMING + "_wait_for",
        "uptime - since > _CLAIMER_PATIENCE_SECONDS",
        "uptime - since >= 0",
    ),
    Mutant(
        "_wait_for: a Node that changes is watched from its first version on",
        _CLAIMING + "_wait_for",
        'situation.memory.claiming.claimers.get(\n            f"{node.name}/{node.resource_version}", uptime\n'
        "        )",
        "min(situation.memory.claiming.claimers.values(), default=uptime)",
    ),
    Mutant(
        "_cordon: a cordon from before the claim is taken for careen's",
        _CLAIMING + "_cordon",
        "is_cordoned_by_us=not is_foreign",
        "is_cordoned_by_us=True",
    ),
    Mutant(
        "_cordon: the cordon may land long after the list of nodes it rests on",
        _CLAIMING + "_cordon",
        "send_before=fleet.read_at_uptime + policy.fleet_max_age_seconds",
        "send_before=None",
    ),
    Mutant(
        "_cordon: labels from before the claim are removed afterwards",
        _CLAIMING + "_cordon",
        "if node.labels.get(key) != value",
        "",
    ),
    Mutant(
        "_cordon: nothing is recorded of the health of the displaced workloads",
        _CLAIMING + "_cordon",
        "owners=baseline.taken(situation, leaving)",
        "owners=()",
    ),
    Mutant(
        "_cordon: the record lacks the start of the drain",
        _CLAIMING + "_cordon",
        "drain_started=situation.mark()",
        "drain_started=None",
    ),
    Mutant(
        "_cordon: the beginning of the drain by the host's clock, which may be wrong",
        _CLAIMING + "_cordon",
        "drain_started_at=rfc3339(situation.server_now)",
        "drain_started_at=rfc3339(situation.seen.now)",
    ),
)

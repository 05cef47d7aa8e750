"""Mistakes in the phases before the cordon (idle, waiting and claiming) and in the line of waiting nodes."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_IDLE, _WAITING, _LINE, _CLAIMING = (f"core/steps/{name}.py:" for name in ("idle", "waiting", "line", "claiming"))
_BEHIND = "core/steps/shared/holder_checks.py:"
_PREPARING = "core/steps/shared/preparing.py:"

MUTANTS = (
    # ---- idle ----
    Mutant(
        "An idle node starts to wait although it is unknown whether the host needs a reboot",
        _IDLE + "decide",
        "if need.answer is NeedAnswer.YES:",
        "if need.answer is not NeedAnswer.NO:",
    ),
    Mutant(
        "An idle node keeps the annotations, label and taint that an earlier agent left",
        _IDLE + "decide",
        "if _has_leftovers(situation):",
        "if False:",
    ),
    Mutant(
        "A node that starts to wait records another client's taint as careen's",
        _IDLE + "_begin_waiting",
        'tainted_at=now if owned else "", taint_key=owned',
        'tainted_at=now, taint_key=situation.policy.taint_key or ""',
    ),
    Mutant(
        "An idle node empties the line when it cannot list the waiting nodes",
        _IDLE + "tidy_line",
        "if waiters is not None else set(content.line.names)",
        "if waiters is not None else set()",
    ),
    Mutant(
        "An idle node writes into a paused lock",
        _IDLE + "tidy_line",
        "or content.is_paused",
        "",
    ),
    Mutant(
        "A thousand nodes taint themselves in the same second",
        _IDLE + "_for_its_moment",
        "if left <= 0:",
        "if True:",
    ),
    # ---- waiting ----
    Mutant(
        "A waiting node forgets a claim that it has not released yet",
        _WAITING + "decide",
        "if situation.progress.is_releasing or situation.progress.claim:",
        "if False:",
    ),
    Mutant(
        "A waiting node becomes idle although it is unknown whether the host needs a reboot",
        _WAITING + "_is_over",
        "if situation.seen.need.answer is NeedAnswer.NO:",
        "if situation.seen.need.answer is not NeedAnswer.YES:",
    ),
    Mutant(
        "A waiting node loses its label `ready` when another node fails",
        _WAITING + "_halted",
        "label=order.READY",
        'label="required"',
    ),
    Mutant(
        "A node stays in the line although its gates refuse",
        _WAITING + "_refused",
        "actions=leave_line(situation)",
        "actions=()",
    ),
    Mutant(
        "A node that leaves the line writes into a paused lock",
        _WAITING + "leave_line",
        "or content.is_paused",
        "",
    ),
    Mutant(
        "After a person's retry, the node's earlier reboots are still counted for the loop limit",
        _WAITING + "_forgive",
        "reboots_for_need=0, tries=0",
        "tries=0",
    ),
    Mutant(
        "The agent does not add its taint again after a person removed it",
        _WAITING + "_mend_taint",
        "if taints is None and owned == situation.progress.taint_key:",
        "if owned == situation.progress.taint_key:",
    ),
    # ---- checks of other holders ----
    Mutant(
        "A waiting node checks the holders in every turn",
        _BEHIND + "_is_due",
        "if left > 0 and not is_outdated:",
        "if False:",
    ),
    Mutant(
        "A claim whose age cannot be read is never checked",
        _BEHIND + "_age_seconds",
        "if seconds >= 0 else OTHERS_LOOK_SECONDS",
        "",
    ),
    Mutant(
        "Every check of the holders forgets since when a holder's Node has been missing",
        _BEHIND + "look",
        "suspected=stale.suspected",
        "suspected={}",
    ),
    Mutant(
        "The agent removes a claim without a holder from a paused lock", _BEHIND + "look", "or content.is_paused", ""
    ),
    Mutant(
        "The agent marks overdue holders although it never compared its clock with the API server's",
        _BEHIND + "_mark",
        "if isinstance(situation.seen.clock_skew_seconds, Unknown):",
        "if False:",
    ),
    # ---- the line ----
    Mutant(
        "A node takes a claim although other nodes come first in the line",
        _LINE + "_in_line",
        "if start.is_allowed:",
        "if start.is_allowed or start.places > 0:",
    ),
    Mutant(
        "If the lock names no node, more nodes start than there are free slots",
        _LINE + "_first_of_all",
        "situation.node.name in line.names[:places]",
        "situation.node.name in line.names",
    ),
    Mutant(
        "With --order=zone the first claims of a roll-out belong to nodes of several zones",
        _LINE + "_first_of_all",
        "start.places if line.abreast is None else min(start.places, line.abreast)",
        "start.places",
    ),
    Mutant(
        "A node takes the first claim although it cannot list the waiting nodes",
        _LINE + "_first_of_all",
        "return start",
        "return replace(start, is_allowed=True)",
    ),
    Mutant(
        "A node takes a claim although a costly gate refuses",
        _LINE + "_start",
        "return _pass_on(situation, content, refused)",
        "break",
    ),
    Mutant(
        "A new claim has the id of an earlier claim",
        _LINE + "_claim",
        "claim=situation.seen.chance.claim_id",
        'claim=situation.progress.claim or "claim"',
    ),
    Mutant(
        "The record lacks the time of the claim",
        _LINE + "_claim",
        "claimed=situation.mark()",
        "claimed=None",
    ),
    Mutant(
        "The record does not name the lock that contains the claim",
        _LINE + "_claim",
        "lock=situation.reading.object_id",
        'lock=""',
    ),
    Mutant(
        "The record does not name the boot that the reboot will end",
        _LINE + "_claim",
        "boot_left=situation.boot",
        'boot_left=""',
    ),
    Mutant(
        "When a node takes a new claim, its agent does not forget the result of an earlier reboot request",
        _LINE + "_claim",
        "reboot=None,",
        "",
    ),
    Mutant(
        "Refused evictions under an earlier claim are counted as attempts for --force-reboot",
        "core/facts/memory.py:in_phase",
        "if phase not in phases}",
        "if False}",
    ),
    Mutant(
        "A refused node lets the next node start although the refusal concerns the whole cluster",
        _LINE + "_pass_on",
        "if refused.is_of_cluster else",
        "if False else",
    ),
    Mutant(
        "Every turn asks a costly gate again after the gate refused",
        _LINE + "put_off",
        "not_before = situation.seen.uptime + pause",
        "not_before = 0.0",
    ),
    Mutant(
        "After the second refusal of a costly gate, the agent does not wait longer than after the first refusal",
        _LINE + "costly_pause_seconds",
        "2.0 ** min(situation.memory.costly.refusals, 10)",
        "1.0",
    ),
    Mutant(
        "A refused node stays first in the line",
        _LINE + "_at_the_end",
        "content = content.with_line(content.line.passing_over((name,)))",
        "content = content",
    ),
    # ---- preparations ----
    Mutant(
        "A node uses its prepared forecast although the cluster has changed",
        _PREPARING + "used",
        "prepared is None or why_not(situation)",
        "prepared is None",
    ),
    Mutant(
        "A node uses its prepared forecast without reading the Nodes and pods again",
        _PREPARING + "lacking",
        'if why_not(situation) == "" else ()',
        'if why_not(situation) == "never" else ()',
    ),
    Mutant(
        "A node uses its prepared forecast however old it is",
        _PREPARING + "why_not",
        "or _why_old(situation, prepared)",
        'or ""',
    ),
    Mutant(
        "A node uses its prepared forecast although other nodes hold claims now",
        _PREPARING + "why_not",
        "or _why_others(prepared.holders, holders)",
        'or ""',
    ),
    Mutant(
        "A node uses its prepared forecast although Nodes have changed",
        _PREPARING + "why_not",
        "or _why_nodes(situation, prepared)",
        'or ""',
    ),
    Mutant(
        "A node uses its prepared forecast although a PodDisruptionBudget has no room any more",
        _PREPARING + "why_not",
        "or _why_budgets(situation, prepared)",
        'or ""',
    ),
    Mutant(
        "A pod that was created after the dry runs is treated as evictable",
        _PREPARING + "_why_pods",
        "if pod.uid not in prepared.rehearsed",
        "if False",
    ),
    Mutant(
        "A node uses its prepared forecast although a gate refused the drain when the forecast was made",
        _PREPARING + "_refused",
        "if refused := gate.ask(situation, When.CLAIMED):",
        "if (refused := gate.ask(situation, When.CLAIMED)) and False:",
    ),
    Mutant(
        "While a holder settles for a long time, the next node makes a new forecast in every turn",
        _PREPARING + "_is_due",
        "situation.seen.uptime - prepared.at >= pause",
        "True",
    ),
    Mutant(
        "A node makes its forecast in advance although it is not the next in line",
        _PREPARING + "_is_next",
        "is_first and is_full",
        "is_full",
    ),
    # ---- claiming ----
    Mutant(
        "A node in Claiming continues although the host no longer needs a reboot",
        _CLAIMING + "decide",
        "if situation.seen.need.answer is NeedAnswer.NO:",
        "if False:",
    ),
    Mutant(
        "A node in Claiming does not ask those gates again that are cheap to evaluate, such as the gate `hold`",
        _CLAIMING + "decide",
        "if refused := refusals(situation, cheap, When.CLAIMED):",
        "if refused := ():",
    ),
    Mutant(
        "A node in Claiming continues although the lock was replaced",
        _CLAIMING + "decide",
        "if situation.reading.object_id != situation.progress.lock:",
        "if False:",
    ),
    Mutant(
        "A node cordons itself without an entry in the lock",
        _CLAIMING + "decide",
        "if situation.own_entry is None:",
        "if not content.entries_of(situation.node.name) and not content.entries:",
    ),
    Mutant(
        "--drain-delay has no effect",
        _CLAIMING + "decide",
        "(left := _delay_left(situation)) > 0",
        "(left := _delay_left(situation)) > 1e9",
    ),
    Mutant(
        "A node in Claiming does not apply --order=zone",
        _CLAIMING + "_enter",
        "in_one_zone=is_by_zone",
        "in_one_zone=False",
    ),
    Mutant(
        "A node in Claiming gives up its claim as soon as a fact for a gate is unknown",
        _CLAIMING + "_wait_a_little",
        "if refused.code not in _PASSING:",
        "if True:",
    ),
    Mutant(
        "A node in Claiming keeps its claim for ever while a fact for a gate is unknown",
        _CLAIMING + "_wait_a_little",
        ">= _UNKNOWN_PATIENCE_SECONDS",
        ">= 1e9",
    ),
    Mutant(
        "A node in Claiming does not ask the gate `budgets`",
        _CLAIMING + "_ask_everything",
        "if refused := budgets.ask(situation, When.CLAIMED):",
        "if refused := None:",
    ),
    Mutant(
        "A node cordons itself although its list of Nodes is old",
        _CLAIMING + "_ask_everything",
        "or (isinstance(fleet, Fleet) and _is_old(situation, fleet))",
        "",
    ),
    Mutant(
        "Right before the cordon, a node lists the Nodes again but does not read the lock again",
        _CLAIMING + "_ask_everything",
        "situation.read_again(*_LAST)",
        "situation.read_again(Evidence.FLEET)",
    ),
    Mutant(
        "A node cordons itself although the health of its workloads is unknown",
        _CLAIMING + "_ask_everything",
        "if isinstance(situation.seen.owners, Unknown):",
        "if False:",
    ),
    Mutant(
        "A node cordons itself while another node is down under a claim in another lock",
        _CLAIMING + "_ask_everything",
        "_others_first(situation, content) or _cordon(situation, fleet)",
        "_cordon(situation, fleet)",
    ),
    Mutant(
        "A node keeps its forecast although other nodes have taken claims since then",
        _CLAIMING + "_with_fresh_forecast",
        "is_old or taken.holders != situation.other_holders",
        "is_old",
    ),
    Mutant(
        "A node keeps its forecast although the forecast is too old",
        _CLAIMING + "_with_fresh_forecast",
        "if is_old or",
        "if",
    ),
    Mutant(
        "A node in Claiming that cannot list the other nodes assumes that none of them is down",
        _CLAIMING + "_others_first",
        'return _unknown(situation, "peers", Code.FLEET_UNKNOWN, why)',
        "return None",
    ),
    Mutant(
        "Nodes that are down without a claim in this lock are not counted for the lock's limit",
        _CLAIMING + "_others_first",
        "len(content.holders) + len(working)",
        "len(content.holders)",
    ),
    Mutant(
        "A node in Claiming does not wait for another node in Claiming",
        _CLAIMING + "_others_first",
        "_wait_for(situation, claiming) if claiming else None",
        "None",
    ),
    Mutant(
        "If another node takes a claim in another lock, this node waits and then cordons itself",
        _CLAIMING + "_wait_for",
        "isinstance(progress, UnreadableProgress) or progress.lock != mine",
        "isinstance(progress, UnreadableProgress)",
    ),
    Mutant(
        "A node in Claiming does not wait long enough to see another node's cordon",
        _CLAIMING + "_wait_for",
        "uptime - since > _CLAIMER_PATIENCE_SECONDS",
        "uptime - since >= 0",
    ),
    Mutant(
        "While a node waits for another node that is in Claiming, a change of the other Node does not restart the wait",
        _CLAIMING + "_wait_for",
        "before.claimers.get(state, uptime)",
        "min(before.claimers.values(), default=uptime)",
    ),
    Mutant(
        "A cordon that another client set before the claim is recorded as careen's",
        _CLAIMING + "_cordon",
        "is_cordoned_by_us=not is_foreign",
        "is_cordoned_by_us=True",
    ),
    Mutant(
        "The cordon may be sent long after the list of Nodes was read",
        _CLAIMING + "_cordon",
        "send_before=fleet.read_at_uptime + policy.fleet_max_age_seconds",
        "send_before=None",
    ),
    Mutant(
        "The record stores the old value of labels that the cordon does not change",
        _CLAIMING + "_cordon",
        "if node.labels.get(key) != value",
        "",
    ),
    Mutant(
        "The record does not store the health of the displaced workloads",
        _CLAIMING + "_cordon",
        "owners=_baseline(situation, leaving)",
        "owners=()",
    ),
    Mutant(
        "The record lacks the start of the drain",
        _CLAIMING + "_cordon",
        "drain_started=situation.mark()",
        "drain_started=None",
    ),
    Mutant(
        "The record has the drain's start time by the host's clock, which may be wrong",
        _CLAIMING + "_cordon",
        "drain_started_at=rfc3339(situation.server_now)",
        "drain_started_at=rfc3339(situation.seen.now)",
    ),
)

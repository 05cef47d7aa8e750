"""Mistakes in the record of a node's progress (an annotation): its content, its parsing, its writing, and decisions
without a record."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_PROGRESS = "core/facts/progress.py:"
_RECOVERING, _OUTCOMES, _DECIDE = "core/steps/recovering.py:", "core/outcomes.py:", "core/decide.py:"
_TAINT, _RESCUE = "core/node/own_taint.py:", "core/rescue.py:"
_RESTORING = "core/node/restoring.py:"

MUTANTS = (
    # ---- an entry without a record ----
    Mutant(
        "The agent removes kured's claim while kured still runs",
        _RECOVERING + "_from_kured",
        "situation.read(Evidence.FOREIGN) != () or",
        "",
    ),
    Mutant(
        "The agent removes kured's claim while the node is not Ready",
        _RECOVERING + "_from_kured",
        "or not situation.node.ready",
        "",
    ),
    Mutant(
        "The agent uncordons a node that was cordoned before kured's claim",
        _RECOVERING + "_from_kured",
        "and not entry.cordoned and not entry.unread",
        "and not entry.unread",
    ),
    Mutant(
        "The agent uncordons a node because of an entry that cannot be read in full",
        _RECOVERING + "_from_kured",
        "and not entry.cordoned and not entry.unread",
        "and not entry.cordoned",
    ),
    Mutant(
        "The agent treats its claim as lost although the Node that it has just read names the claim",
        _RECOVERING + "_from_careen",
        "return None\n    if entry.boot and",
        "pass\n    if entry.boot and",
    ),
    Mutant(
        "The agent does not find a claim id in a record that cannot be parsed",
        _RECOVERING + "_is_known",
        'entry.id in annotations.get(keys.PROGRESS, "")',
        'f\'"claim":"{entry.id}"\' in annotations.get(keys.PROGRESS, "")',
    ),
    Mutant(
        "A claim of an earlier boot is released without verifying the new boot",
        _RECOVERING + "_from_careen",
        "if entry.boot and not is_same_boot(entry.boot, situation.boot):",
        "if False:",
    ),
    Mutant(
        "The agent adopts a claim of a deleted Node with the same name",
        _RECOVERING + "_from_careen",
        "entry.uid == situation.node.uid and cordons.looks_like_ours(situation.node)",
        "cordons.looks_like_ours(situation.node)",
    ),
    Mutant(
        "The agent adopts a claim and undoes the drain although the host may be rebooting",
        _RECOVERING + "_from_careen",
        "if _may_be_rebooting(situation, entry)",
        "if False",
    ),
    Mutant(
        "If the Node was recreated, the agent releases the claim of the old Node without any wait",
        _RECOVERING + "_from_careen",
        "if entry not in stale.proven:",
        "if False:",
    ),
    Mutant(
        "The agent concludes from the record of one claim that the host stays up under another claim",
        _RECOVERING + "_is_surely_not_rebooting",
        "or held.claim != entry.id",
        "",
    ),
    Mutant(
        "The agent assumes that the host stays up although the claim was made on another boot",
        _RECOVERING + "_is_surely_not_rebooting",
        "or not is_same_boot(entry.boot, situation.boot)",
        "",
    ),
    Mutant(
        "The agent assumes that the host stays up although the result of its reboot request is unknown",
        _RECOVERING + "_is_surely_not_rebooting",
        "asked.announcement == 1 and asked.outcome in _STAYS_UP",
        "asked.announcement == 1",
    ),
    Mutant(
        "The agent assumes that the host stays up although an earlier process announced a reboot",
        _RECOVERING + "_is_surely_not_rebooting",
        "asked.announcement == 1 and asked.outcome in _STAYS_UP",
        "asked.outcome in _STAYS_UP",
    ),
    Mutant(
        "The agent assumes that the host stays up although the record announced a reboot",
        _RECOVERING + "_is_surely_not_rebooting",
        "return not held.is_announced",
        "return True",
    ),
    Mutant(
        "The agent removes a cordon although the managed fields name another client",
        "core/node/cordons.py:is_ours_under_claim",
        "if node.cordoned_by:",
        "if False:",
    ),
    Mutant(
        "Without its record, the agent removes a cordon that was set before the claim",
        "core/node/cordons.py:is_ours_under_claim",
        "and not was_cordoned and looks_like_ours(node)",
        "and looks_like_ours(node)",
    ),
    Mutant(
        "The agent removes careen's leftover cordon from a node that is not Ready",
        _RECOVERING + "_lone_cordon",
        "or not node.ready",
        "",
    ),
    Mutant(
        "The agent removes a leftover cordon that careen and another client both set",
        _RECOVERING + "_lone_cordon",
        "not cordons.is_cordon_proven(node)",
        "not node.unschedulable",
    ),
    Mutant(
        "The agent adopts a claim without recording that it has already asked the host",
        _RECOVERING + "_adopt_to_reboot",
        "is_asked=_has_asked(situation.memory.reboot, entry)",
        "is_asked=False",
    ),
    Mutant(
        "The agent adopts a claim without counting the reboot that has happened",
        _RECOVERING + "_adopt_after_boot",
        "situation.progress.reboots_for_need + 1",
        "situation.progress.reboots_for_need",
    ),
    Mutant(
        "The agent adopts a claim and never releases it",
        _RECOVERING + "_adopt_to_undo",
        "is_releasing=True,",
        "",
    ),
    Mutant(
        "If a rebooting node has lost its record, the agent changes the Node before the agent has looked up the claim",
        _RECOVERING + "_not_before_it_is_read",
        "situation.phase is not Phase.IDLE or not says_announced(situation.node)",
        "True",
    ),
    # ---- decide ----
    Mutant(
        "A node with a claim continues although its boot id is unknown",
        _DECIDE + "_decide",
        "if not situation.boot and not _can_be_undone(situation):",
        "if False:",
    ),
    Mutant(
        "A new boot is not verified",
        _DECIDE + "_decide",
        "if situation.boot and _is_new_boot(situation):",
        "if False:",
    ),
    Mutant(
        "The agent does not notice a second reboot under the same claim",
        _DECIDE + "_is_new_boot",
        "progress.verify_started is not None and is_same_boot(progress.verify_started.boot, situation.boot)",
        "progress.verify_started is not None",
    ),
    Mutant(
        "After a person removed careen's cordon, a new cordon of the person is treated as careen's",
        _DECIDE + "_disown_cordon",
        "not progress.is_cordoned_by_us\n        or situation.node.unschedulable",
        "True or not progress.is_cordoned_by_us\n        or situation.node.unschedulable",
    ),
    Mutant(
        "An idle node never checks the lock for a claim that its record does not name",
        _DECIDE + "_reconcile",
        "idle.wants_reboot(situation) or _is_reconciled(memory, uptime)",
        "True",
    ),
    Mutant(
        "A node that needs a reboot does not notice that a person deleted its record",
        _DECIDE + "_reconcile",
        "if is_settled and not cordons.looks_like_ours(situation.node):",
        "if is_settled:",
    ),
    Mutant(
        "A refusal for a deleted Node is also used for the new Node with the same name",
        _DECIDE + "_memory",
        "if memory.node_uid != node.uid:",
        "if not memory.node_uid:",
    ),
    Mutant(
        "When the Node is recreated, the agent forgets that it asked the host to reboot",
        _DECIDE + "_memory",
        "Memory(node_uid=node.uid, reboot=memory.reboot,",
        "Memory(node_uid=node.uid,",
    ),
    Mutant(
        "The agent's memory does not keep the claim that the record names",
        _DECIDE + "_memory",
        "if progress.claim:",
        "if False:",
    ),
    Mutant(
        "Other agents accept a record that the node's own agent treats as unreadable",
        _PROGRESS + "consistent",
        "return UnreadableProgress(why) if why else written",
        "return written",
    ),
    Mutant(
        "A record with a claim but without a boot id is accepted",
        _PROGRESS + "_contradiction",
        "if bool(progress.claim) is not bool(progress.boot_left):",
        "if False:",
    ),
    Mutant(
        "A record without a claim is accepted in a phase that needs a claim",
        _PROGRESS + "_contradiction",
        "if phase in UNDER_CLAIM and (not progress.claim or progress.is_releasing):",
        "if False:",
    ),
    Mutant(
        "A record with an unknown phase is accepted",
        _PROGRESS + "_contradiction",
        "if not is_phase(progress.phase):",
        "if False:",
    ),
    Mutant(
        "The agent removes its taint from a node with an unreadable record although the host needs a reboot",
        _DECIDE + "_unreadable",
        "if observation.need.answer is NeedAnswer.NO else frozenset()",
        "",
    ),
    # ---- the record itself ----
    Mutant(
        "A record in a newer format is read as if it had the present format",
        "core/facts/progress.py:from_annotation",
        "if whole(version, VERSION, 1) is None:",
        "if whole(version, 1000, 1) is None:",
    ),
    Mutant(
        "A record that is not JSON is treated as empty",
        "core/facts/progress.py:from_annotation",
        'return UnreadableProgress("the annotation careen.dev/progress is not JSON that careen wrote")',
        "return Progress()",
    ),
    Mutant(
        "The record does not tell the next process that the host was asked to reboot",
        "core/facts/progress.py:_plain",
        '({"asked": True} if value.is_asked else {})',
        "({})",
    ),
    Mutant(
        "JSON's `true` is read as the number 1",
        "core/facts/untrusted.py:whole",
        "type(value) is int",
        "isinstance(value, int)",
    ),
    Mutant(
        "A time without a time zone is accepted, and comparing it raises an error",
        "core/facts/times.py:from_rfc3339",
        "if at.tzinfo is not None else None",
        "if at is not None else None",
    ),
    # ---- writing the record ----
    Mutant(
        "A patch of the Node lacks the resourceVersion that the agent read",
        _OUTCOMES + "_patch",
        "resource_version=situation.node.resource_version",
        'resource_version=""',
    ),
    Mutant(
        "Actions that must follow the patch of the Node come before the patch",
        _OUTCOMES + "move",
        "(*to.first, _patch(situation, status, to), *after)",
        "(*after, *to.first, _patch(situation, status, to))",
    ),
    Mutant(
        "When a drain is undone, the patch that uncordons the Node also removes the claim id from the record",
        _OUTCOMES + "undo",
        "is_releasing=True,",
        'is_releasing=True, claim="",',
    ),
    Mutant(
        "When a drain is undone, the claim leaves the lock before the Node is uncordoned",
        _OUTCOMES + "undo",
        "then=(*(() if settles else removal(situation)), *to.then)",
        "first=removal(situation)",
    ),
    Mutant(
        "After the undo of a drain the record still says that careen set the cordon",
        _OUTCOMES + "undo",
        "is_cordoned_by_us=False,",
        "",
    ),
    Mutant(
        "A drain after an undone drain keeps the old start time",
        _OUTCOMES + "undo",
        "drain_started=None,",
        "",
    ),
    Mutant(
        "The undo of a drain removes a cordon that was set before the claim",
        _RESTORING + "as_before",
        "is_ours and node.unschedulable",
        "node.unschedulable",
    ),
    Mutant(
        "The undo of a drain resets a label that another client has changed since",
        "core/node/changed_labels.py:before_the_drain",
        "if key not in ours or node.labels.get(key) == ours[key]",
        "",
    ),
    Mutant(
        "A taint that another client set is recorded as careen's",
        _TAINT + "with_ours",
        'wanted if wanted in ours else ""',
        "wanted",
    ),
    Mutant(
        "careen's taint replaces the taints of other clients",
        _TAINT + "with_ours",
        "(*taints, Taint(key=wanted, effect=keys.TAINT_EFFECT))",
        "(Taint(key=wanted, effect=keys.TAINT_EFFECT),)",
    ),
    Mutant(
        "The memory loses the time of the next read of the lock when the node becomes idle",
        _OUTCOMES + "go_home",
        "lock_due=situation.memory.lock_due,",
        "",
    ),
    Mutant(
        "A write of the lock does not name the resourceVersion that the agent read",
        _OUTCOMES + "write_lock",
        "expected_resource_version=reading.resource_version",
        'expected_resource_version=""',
    ),
    Mutant(
        "The settings that were stored for a claim stay on the Node after the claim's release",
        _OUTCOMES + "_kept_settings",
        "(situation.policy.kept_settings or None) if progress.claim else None",
        "situation.policy.kept_settings or None",
    ),
    Mutant(
        "Every turn gives a continuing refusal a new start time",
        "core/decision.py:with_since",
        "each.since or before.get((each.gate, each.code)) or now",
        "each.since or now",
    ),
    Mutant(
        "Another client's taint with the configured key is treated as careen's",
        _TAINT + "proven",
        "if node.tainted_by != (keys.TAINT_MANAGER,):",
        "if False:",
    ),
    Mutant(
        "A NoExecute taint with careen's key is treated as careen's",
        _TAINT + "without",
        "taint.key in ours and taint.effect == keys.TAINT_EFFECT",
        "taint.key in ours",
    ),
    Mutant(
        "A failed node restores its missing claim without the failure mark",
        "core/situation.py:Situation.new_entry",
        'progress.failed if self.phase is Phase.FAILED else ""',
        '""',
    ),
    Mutant(
        "A restored claim records careen's own cordon as a cordon that was set before the claim",
        "core/situation.py:Situation.new_entry",
        "progress.prior_unschedulable if progress.drain_started else cordons.is_foreign(self.node)",
        "self.node.unschedulable",
    ),
    Mutant(
        "A claim that is restored after the reboot records the new boot instead of the old boot",
        "core/situation.py:Situation.new_entry",
        "progress.boot_left or self.boot",
        "self.boot",
    ),
    Mutant(
        "The agent ignores the known difference between its own clock and the API server's clock",
        "core/situation.py:Situation.server_now",
        "known(self.seen.clock_skew_seconds) or 0.0",
        "0.0",
    ),
    # ---- the undo after broken turns ----
    Mutant(
        "After failed turns the agent undoes a drain although the reboot was announced",
        _RESCUE + "is_under_way",
        "set(told) <= _BEFORE_THE_REBOOT",
        "set(told) & _BEFORE_THE_REBOOT",
    ),
    Mutant(
        "After failed turns the agent undoes a drain that a newer release recorded",
        _RESCUE + "is_under_way",
        "and not _is_newer(_record(node))",
        "",
    ),
    Mutant(
        "After failed turns the agent removes another client's cordon",
        _RESCUE + "undone",
        "_is_cordoned(node) and _is_cordon_ours(node, record)",
        "_is_cordoned(node)",
    ),
    Mutant(
        "After failed turns the agent removes a cordon that careen and another client both set",
        _RESCUE + "_is_cordon_ours",
        "managers == {keys.FIELD_MANAGER}",
        "keys.FIELD_MANAGER in managers",
    ),
    Mutant(
        "After failed turns the agent removes the claim from its record but not from the lock",
        _RESCUE + "_released",
        'if not (kept.get("claim") and kept.get("boot_left")):',
        "if True:",
    ),
    Mutant(
        "After failed turns the agent's patch lacks the resourceVersion that it read",
        _RESCUE + "_patch",
        '"resourceVersion": metadata["resourceVersion"],',
        "",
    ),
)

"""Mistakes in a node's record: its content, its parsing, its writing, and decisions without a record."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_PROGRESS = "core/facts/progress.py:"
_RECOVERING, _WRITING, _DECIDE = "core/steps/recovering.py:", "core/writing.py:", "core/decide.py:"
_TAINT, _RESCUE = "core/own_taint.py:", "core/rescue.py:"

MUTANTS = (
    # ---- an entry without a record ----
    Mutant(
        "recovering: kured's entry is taken back while kured still works",
        _RECOVERING + "_from_kured",
        "situation.seen.foreign != () or",
        "",
    ),
    Mutant(
        "recovering: kured's entry is taken back while the node is not ready",
        _RECOVERING + "_from_kured",
        "or not situation.node.ready",
        "",
    ),
    Mutant(
        "recovering: a node that was cordoned before kured's claim is uncordoned",
        _RECOVERING + "_from_kured",
        "and not entry.cordoned and not entry.unread",
        "and not entry.unread",
    ),
    Mutant(
        "recovering: a node is uncordoned for an entry of which not all can be read",
        _RECOVERING + "_from_kured",
        "and not entry.cordoned and not entry.unread",
        "and not entry.cordoned",
    ),
    Mutant(
        "recovering: an own entry is judged without a fresh look at the own Node",
        _RECOVERING + "_from_careen",
        "return None\n    if entry.boot and",
        "pass\n    if entry.boot and",
    ),
    Mutant(
        "_is_known: a record that cannot be read knows of no claim",
        _RECOVERING + "_is_known",
        'entry.id in annotations.get(keys.PROGRESS, "")',
        'f\'"claim":"{entry.id}"\' in annotations.get(keys.PROGRESS, "")',
    ),
    Mutant(
        "recovering: a claim of an earlier boot is released without looking at the new boot",
        _RECOVERING + "_from_careen",
        "if entry.boot and not is_same_boot(entry.boot, situation.boot):",
        "if False:",
    ),
    Mutant(
        "recovering: a former Node's claim is taken for the new Node's",
        _RECOVERING + "_from_careen",
        "entry.uid == situation.node.uid and looks_like_ours(situation)",
        "looks_like_ours(situation)",
    ),
    Mutant(
        "recovering: a claim under which the host may go down is undone",
        _RECOVERING + "_from_careen",
        "if _may_be_rebooting(situation, entry)",
        "if False",
    ),
    Mutant(
        "recovering: a former Node's claim is released at once",
        _RECOVERING + "_from_careen",
        "if entry not in watch.proven:",
        "if False:",
    ),
    Mutant(
        "_is_surely_not_rebooting: a claim that this process never held",
        _RECOVERING + "_is_surely_not_rebooting",
        "or held.claim != entry.id",
        "",
    ),
    Mutant(
        "_is_surely_not_rebooting: a claim of another boot",
        _RECOVERING + "_is_surely_not_rebooting",
        "or not is_same_boot(entry.boot, situation.boot)",
        "",
    ),
    Mutant(
        "_is_surely_not_rebooting: this process asked, and the host's answer was lost",
        _RECOVERING + "_is_surely_not_rebooting",
        "asked.announcement == 1 and asked.outcome in _STAYS_UP",
        "asked.announcement == 1",
    ),
    Mutant(
        "_is_surely_not_rebooting: another process announced before this one",
        _RECOVERING + "_is_surely_not_rebooting",
        "asked.announcement == 1 and asked.outcome in _STAYS_UP",
        "asked.outcome in _STAYS_UP",
    ),
    Mutant(
        "_is_surely_not_rebooting: the record said that the reboot was announced",
        _RECOVERING + "_is_surely_not_rebooting",
        "return not held.is_announced",
        "return True",
    ),
    Mutant(
        "_is_cordon_ours: a cordon is lifted although the server names another client",
        _RECOVERING + "_is_cordon_ours",
        "if node.cordoned_by:",
        "if False:",
    ),
    Mutant(
        "_is_cordon_ours: a cordon from before the claim is lifted",
        _RECOVERING + "_is_cordon_ours",
        "and not entry.cordoned and looks_like_ours(situation)",
        "and looks_like_ours(situation)",
    ),
    Mutant(
        "_lone_cordon: a node that is not ready goes back into service",
        _RECOVERING + "_lone_cordon",
        "or not node.ready",
        "",
    ),
    Mutant(
        "_lone_cordon: a cordon that another client set too is lifted",
        _RECOVERING + "_lone_cordon",
        "not is_cordon_proven(node)",
        "not node.unschedulable",
    ),
    Mutant(
        "_adopt_to_reboot: a host that was asked may be asked again",
        _RECOVERING + "_adopt_to_reboot",
        "is_asked=_has_asked(situation, entry)",
        "is_asked=False",
    ),
    Mutant(
        "_adopt_after_boot: the reboot is not counted",
        _RECOVERING + "_adopt_after_boot",
        "situation.progress.reboots_for_need + 1",
        "situation.progress.reboots_for_need",
    ),
    Mutant(
        "_adopt_to_undo: the claim is taken up and never given back",
        _RECOVERING + "_adopt_to_undo",
        "is_giving_back=True,",
        "",
    ),
    Mutant(
        "_not_before_it_is_read: an idle node without a record continues before it has looked for its claim",
        _RECOVERING + "_not_before_it_is_read",
        "situation.phase is not Phase.IDLE or not says_announced(situation.node)",
        "True",
    ),
    # ---- decide ----
    Mutant(
        "_decide: continues under a claim although the boot is unknown",
        _DECIDE + "_decide",
        "if not situation.boot and not _can_be_undone(situation):",
        "if False:",
    ),
    Mutant(
        "_decide: a new boot is not verified",
        _DECIDE + "_decide",
        "if situation.boot and _is_new_boot(situation):",
        "if False:",
    ),
    Mutant(
        "_is_new_boot: a second reboot under the same claim is not seen",
        _DECIDE + "_is_new_boot",
        "progress.verify_started is not None and is_same_boot(progress.verify_started.boot, situation.boot)",
        "progress.verify_started is not None",
    ),
    Mutant(
        "_disown_cordon: a cordon that a person sets after lifting careen's is lifted as careen's",
        _DECIDE + "_disown_cordon",
        "not progress.is_cordoned_by_us\n        or situation.node.unschedulable",
        "True or not progress.is_cordoned_by_us\n        or situation.node.unschedulable",
    ),
    Mutant(
        "_reconcile: an idle node never compares lock and Node",
        _DECIDE + "_reconcile",
        "idle.wants_reboot(situation) or _is_reconciled(memory, seen.uptime)",
        "True",
    ),
    Mutant(
        "_reconcile: a need hides a record that a person removed",
        _DECIDE + "_reconcile",
        "if is_settled and not recovering.looks_like_ours(situation):",
        "if is_settled:",
    ),
    Mutant(
        "_memory: a refusal of a former Node still counts",
        _DECIDE + "_memory",
        "if memory.node_uid != node.uid:",
        "if not memory.node_uid:",
    ),
    Mutant(
        "_memory: the request to the host is forgotten with the former Node",
        _DECIDE + "_memory",
        "Memory(node_uid=node.uid, reboot=memory.reboot,",
        "Memory(node_uid=node.uid,",
    ),
    Mutant(
        "_memory: the claim that the record held is not remembered",
        _DECIDE + "_memory",
        "if progress.claim:",
        "if False:",
    ),
    Mutant(
        "believed: a record that its own agent takes for unreadable proves something to others",
        _PROGRESS + "believed",
        "return UnreadableProgress(why) if why else written",
        "return written",
    ),
    Mutant(
        "_contradiction: a record with only half of a claim is trusted",
        _PROGRESS + "_contradiction",
        "if bool(progress.claim) is not bool(progress.boot_left):",
        "if False:",
    ),
    Mutant(
        "_contradiction: a phase under a claim without one is trusted",
        _PROGRESS + "_contradiction",
        "if phase in _UNDER_CLAIM and (not progress.claim or progress.is_giving_back):",
        "if False:",
    ),
    Mutant(
        "_contradiction: a phase that this release does not know is an error",
        _PROGRESS + "_contradiction",
        "if not is_phase(progress.phase):",
        "if False:",
    ),
    Mutant(
        "_unreadable: careen's taint is removed while the host still asks",
        _DECIDE + "_unreadable",
        "if observation.need.answer is NeedAnswer.NO else frozenset()",
        "",
    ),
    # ---- the record itself ----
    Mutant(
        "from_annotation: a record of a newer release is guessed at",
        "core/facts/progress.py:from_annotation",
        "if whole(version, VERSION, 1) is None:",
        "if whole(version, 1000, 1) is None:",
    ),
    Mutant(
        "from_annotation: a record that is not JSON is an empty one",
        "core/facts/progress.py:from_annotation",
        'return UnreadableProgress("the annotation careen.dev/progress is not careen\'s JSON")',
        "return Progress()",
    ),
    Mutant(
        "_plain: that the host was asked does not outlive the process",
        "core/facts/progress.py:_plain",
        'asked = {"asked": True} if value.is_asked else {}',
        "asked = {}",
    ),
    Mutant(
        "whole: true is the number one",
        "core/facts/untrusted.py:whole",
        "type(value) is int",
        "isinstance(value, int)",
    ),
    Mutant(
        "from_rfc3339: an instant without a zone is an error later",
        "core/facts/times.py:from_rfc3339",
        "if at.tzinfo is not None else None",
        "if at is not None else None",
    ),
    # ---- how it is written ----
    Mutant(
        "move: the patch is not guarded by the version that was seen",
        _WRITING + "_patch",
        "resource_version=situation.node.resource_version",
        'resource_version=""',
    ),
    Mutant(
        "move: later actions are carried out before the patch",
        _WRITING + "move",
        "(*to.first, _patch(situation, status, to), *to.then,",
        "(*to.then, *to.first, _patch(situation, status, to),",
    ),
    Mutant(
        "undo: the claim leaves the Node together with the cordon",
        _WRITING + "undo",
        "is_giving_back=True,",
        'is_giving_back=True, claim="",',
    ),
    Mutant(
        "undo: the entry leaves the lock before the cordon is undone",
        _WRITING + "undo",
        "then=(*removal(situation), *to.then)",
        "first=removal(situation)",
    ),
    Mutant(
        "undo: the record still says that the cordon is careen's",
        _WRITING + "undo",
        "is_cordoned_by_us=False,",
        "",
    ),
    Mutant(
        "undo: the next drain begins with the clock of this one",
        _WRITING + "undo",
        "drain_started=None,",
        "",
    ),
    Mutant(
        "prior_cordon: a cordon from before the claim is lifted",
        _WRITING + "prior_cordon",
        "progress.is_cordoned_by_us and situation.node.unschedulable",
        "situation.node.unschedulable",
    ),
    Mutant(
        "prior_labels: a label that another client changed meanwhile is set back",
        _WRITING + "prior_labels",
        "if key not in ours or now.get(key) == ours[key]",
        "",
    ),
    Mutant(
        "with_our_taint: a taint that another client set becomes careen's",
        _WRITING + "with_our_taint",
        'wanted if wanted in ours else ""',
        "wanted",
    ),
    Mutant(
        "with_our_taint: foreign taints are lost",
        _WRITING + "with_our_taint",
        "(*taints, Taint(key=wanted, effect=keys.TAINT_EFFECT))",
        "(Taint(key=wanted, effect=keys.TAINT_EFFECT),)",
    ),
    Mutant(
        "go_home: the time of the next look at the lock is lost",
        _WRITING + "go_home",
        "lock_due=situation.memory.lock_due,",
        "",
    ),
    Mutant(
        "write_lock: the write is not guarded by the version that was seen",
        _WRITING + "write_lock",
        "expected_resource_version=reading.resource_version",
        'expected_resource_version=""',
    ),
    Mutant(
        "_kept_settings: the settings of a claim stay on the Node without one",
        _WRITING + "_kept_settings",
        "(situation.policy.kept_settings or None) if progress.claim else None",
        "situation.policy.kept_settings or None",
    ),
    Mutant(
        "with_since: a refusal that lasts restarts at every look",
        _WRITING + "with_since",
        "each.since or before.get((each.gate, each.code)) or situation.seen.now",
        "each.since or situation.seen.now",
    ),
    Mutant(
        "own_taint: a foreign taint under a configured key is careen's without a record",
        _TAINT + "keys_of_ours",
        "node.tainted_by == (keys.TAINT_MANAGER,) and our_taint",
        "our_taint",
    ),
    Mutant(
        "own_taint: the same key with NoExecute is careen's",
        _TAINT + "without",
        "taint.key in ours and taint.effect == keys.TAINT_EFFECT",
        "taint.key in ours",
    ),
    Mutant(
        "new_entry: the claim of a failed node is restored without its failure",
        "core/situation.py:Situation.new_entry",
        'progress.failed if self.phase is Phase.FAILED else ""',
        '""',
    ),
    Mutant(
        "new_entry: an entry that is restored says that the node was cordoned before",
        "core/situation.py:Situation.new_entry",
        "progress.prior_unschedulable if progress.drain_started else cordons.is_foreign(self.node)",
        "self.node.unschedulable",
    ),
    Mutant(
        "new_entry: an entry that is restored on a new boot names the new boot",
        "core/situation.py:Situation.new_entry",
        "progress.boot_left or self.boot",
        "self.boot",
    ),
    Mutant(
        "server_now: the host's clock although it was compared",
        "core/situation.py:Situation.server_now",
        "0.0 if isinstance(skew, Unknown) else skew",
        "0.0",
    ),
    # ---- the way home when turns break ----
    Mutant(
        "is_under_way: a node whose reboot was announced is undone",
        _RESCUE + "is_under_way",
        "set(told) <= _BEFORE_THE_REBOOT",
        "set(told) & _BEFORE_THE_REBOOT",
    ),
    Mutant(
        "is_under_way: the record of a newer release is undone",
        _RESCUE + "is_under_way",
        "and not _is_newer(_record(node))",
        "",
    ),
    Mutant(
        "undone: a foreign cordon is lifted",
        _RESCUE + "undone",
        "_is_cordoned(node) and _is_cordon_ours(node, record)",
        "_is_cordoned(node)",
    ),
    Mutant(
        "_is_cordon_ours: a cordon that another client set too is lifted",
        _RESCUE + "_is_cordon_ours",
        "managers == {keys.FIELD_MANAGER}",
        "keys.FIELD_MANAGER in managers",
    ),
    Mutant(
        "_given_back: the record loses the claim, so that its entry becomes a ghost",
        _RESCUE + "_given_back",
        'if not (kept.get("claim") and kept.get("boot_left")):',
        "if True:",
    ),
    Mutant(
        "_patch: the rescue is not guarded by the version that was seen",
        _RESCUE + "_patch",
        '"resourceVersion": metadata["resourceVersion"],',
        "",
    ),
)

"""Mistakes in the shell's actions and observations: `agent/apply.py` and `agent/observe.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_APPLY, _OBSERVE = "agent/apply.py:", "agent/observe.py:"

MUTANTS = (
    # ---- hands ----
    Mutant(
        "apply: continues behind an action that did not certainly succeed",
        _APPLY + "Applier.apply",
        "return self._stopped(stop, action, tellings_of(actions[number:]))",
        "continue",
    ),
    Mutant(
        "_stopped: the effect of a landed write is not reported",
        _APPLY + "Applier._stopped",
        "if self._is_anything_written:\n            self.tell(rest)",
        "if False:\n            self.tell(rest)",
    ),
    Mutant(
        "_stopped: reports a write that did not land",
        _APPLY + "Applier._stopped",
        "if self._is_anything_written:\n            self.tell(rest)",
        "if True:\n            self.tell(rest)",
    ),
    Mutant(
        "_patch_node: a cordon is sent although its list of nodes is too old",
        _APPLY + "Applier._patch_node",
        "patch.send_before is not None and self._hands.host.uptime() >= patch.send_before",
        "False",
    ),
    Mutant(
        "_patch_node: a patch with an unknown result counts as landed",
        _APPLY + "Applier._patch_node",
        "return _stop(patch.purpose, failed)",
        "return None if isinstance(failed, StillUnclear) else _stop(patch.purpose, failed)",
    ),
    Mutant(
        "_patch_node: the next turn rests on the Node of an uncordon's answer, which others change just then",
        _APPLY + "Applier._patch_node",
        "None if patch.unschedulable is False else node",
        "node",
    ),
    Mutant(
        "_patch_node: the age of the Node counts from the answer",
        _APPLY + "Applier._patch_node",
        "= True, True, began",
        "= True, True, self._hands.api.clock.monotonic()",
    ),
    Mutant(
        "_write_lock: a write with an unknown result counts as landed",
        _APPLY + "Applier._write_lock",
        "return _stop(wanted.purpose, failed)",
        "return None if isinstance(failed, StillUnclear) else _stop(wanted.purpose, failed)",
    ),
    Mutant(
        "_stop: a missing right is tried again like a conflict",
        _APPLY + "_stop",
        "is_refusal=isinstance(failed, Rejected)",
        "is_refusal=False",
    ),
    Mutant(
        "_confirm_claim: reboots although the lock cannot be read",
        _APPLY + "Applier._confirm_claim",
        'return Stop(f"the claim cannot be confirmed: {error}")',
        "self._confirmed_at = asked_at\n            return None if error else None",
    ),
    Mutant(
        "_confirm_claim: reboots although the claim is not in the lock",
        _APPLY + "Applier._confirm_claim",
        "if not lock.confirms(reading.content, claim.node, claim.claim):",
        "if False:",
    ),
    Mutant(
        "_confirm_claim: the age of the confirmation counts from the answer",
        _APPLY + "Applier._confirm_claim",
        "self._confirmed_at = asked_at",
        "self._confirmed_at = self._hands.api.clock.monotonic()",
    ),
    Mutant(
        "_ask_reboot: asks the host without a confirmation",
        _APPLY + "Applier._ask_reboot",
        "self._confirmed_at is None or hands.api.clock.monotonic() - self._confirmed_at >= order.within_seconds",
        "self._confirmed_at is not None and hands.api.clock.monotonic() - self._confirmed_at >= order.within_seconds",
    ),
    Mutant(
        "_ask_reboot: asks the host on an old confirmation",
        _APPLY + "Applier._ask_reboot",
        "self._confirmed_at is None or hands.api.clock.monotonic() - self._confirmed_at >= order.within_seconds",
        "self._confirmed_at is None",
    ),
    Mutant(
        "_ask_reboot: asks the host on an old announcement",
        _APPLY + "Applier._ask_reboot",
        "order.send_before is not None and hands.host.uptime() >= order.send_before",
        "False",
    ),
    Mutant(
        "_ask_reboot: a turn that is cut short has not asked",
        _APPLY + "Applier._ask_reboot",
        "self._set_memory(before_reboot_asked(self._memory))",
        "before_reboot_asked(self._memory)",
    ),
    Mutant(
        "_ask_reboot: a command that did not answer in time has failed",
        _APPLY + "Applier._ask_reboot",
        "RebootOutcome.UNCLEAR, why",
        "RebootOutcome.FAILED, why",
    ),
    Mutant(
        "_ask_reboot: a command that failed is under way",
        _APPLY + "Applier._ask_reboot",
        "RebootOutcome.FAILED, why",
        "RebootOutcome.ACCEPTED, why",
    ),
    Mutant(
        "_evict: a slow webhook keeps the turn from its next look for ever",
        _APPLY + "Applier._evict",
        "if clock.monotonic() >= until:",
        "if False:",
    ),
    Mutant(
        "_evict: --drain-parallel is ignored",
        _APPLY + "Applier._evict",
        "range(min(batch.parallel, len(batch.pods)))",
        "range(len(batch.pods))",
    ),
    Mutant(
        "_evict: one eviction does not wait for the replacement of the last",
        _APPLY + "Applier._evict",
        "if batch.parallel == 1:",
        "if False:",
    ),
    Mutant(
        "_evicted: the answer of an eviction is not remembered",
        _APPLY + "Applier._evicted",
        "self._set_memory(",
        "(lambda memory: None)(",
    ),
    Mutant(
        "_evicted: the server's Retry-After is not remembered",
        _APPLY + "Applier._evicted",
        "retry_after_seconds=result.retry_after_seconds,",
        "",
    ),
    Mutant(
        "_set_memory: what must not be forgotten is lost when the turn is cut short",
        _APPLY + "Applier._set_memory",
        "self._remember(memory)",
        "memory",
    ),
    Mutant(
        "tellings_of: reports a reboot that was not confirmed",
        _APPLY + "tellings_of",
        "isinstance(each, Notify) and not is_asked",
        "isinstance(each, Notify)",
    ),
    # ---- senses ----
    Mutant(
        "begin: a need that was just seen rests on an old view of the Node",
        _OBSERVE + "Observer.begin",
        "0.0 if is_news else self._node_max_age_seconds(phase)",
        "self._node_max_age_seconds(phase)",
    ),
    Mutant(
        "begin: a clock that was never compared is right",
        _OBSERVE + "Observer.begin",
        'Unknown("the API server has not sent its time yet") if skew is None else skew',
        "0.0 if skew is None else skew",
    ),
    Mutant(
        "add: evidence is gathered in any order, the holders before the lock",
        _OBSERVE + "Observer.add",
        "else set()), key=list(Evidence).index)",
        "else set()), key=list(Evidence).index, reverse=True)",
    ),
    Mutant(
        "add: the turn's instant is from before the evidence",
        _OBSERVE + "Observer.add",
        "uptime=self._senses.host.uptime(),",
        "",
    ),
    Mutant(
        "_node_max_age_seconds: the answer of an own write passes for ever",
        _OBSERVE + "Observer._node_max_age_seconds",
        "self._is_answer = False",
        "self._is_answer = self._is_answer",
    ),
    Mutant(
        "_own_node: the age of the Node counts from the answer",
        _OBSERVE + "Observer._own_node",
        "(node if isinstance(node, NodeView) else None), now",
        "(node if isinstance(node, NodeView) else None), self._senses.api.clock.monotonic()",
    ),
    Mutant(
        "_own_node: the last view counts as new when the Node cannot be read",
        _OBSERVE + "Observer._own_node",
        "(node if isinstance(node, NodeView) else None), now",
        "(node if isinstance(node, NodeView) else self._node), now",
    ),
    Mutant(
        "_peers: failed nodes are not among those at work",
        _OBSERVE + "Observer._peers",
        "reboot_label=_OF_PEERS",
        "reboot_label=_OF_PEERS[:1]",
    ),
    Mutant(
        "_holders: a lock that cannot be understood has no holders",
        _OBSERVE + "Observer._holders",
        'Unknown("the lock is unknown, and so are its holders")',
        "Holders(nodes=(), absent=frozenset())",
    ),
    Mutant(
        "_read_holders: Nodes that a long list does not have are not absent",
        _OBSERVE + "Observer._read_holders",
        "absent=frozenset(wanted) - every.keys()",
        "absent=frozenset()",
    ),
    Mutant(
        "_fleet: the age of the list counts from the answer",
        _OBSERVE + "Observer._fleet",
        "read_at_uptime=asked_at",
        "read_at_uptime=self._senses.host.uptime()",
    ),
    Mutant(
        "_evictability: a dry run is a real eviction",
        _OBSERVE + "Observer._evictability",
        "dry_run=True",
        "dry_run=False",
    ),
    Mutant(
        "_evictability: pods that were not tried in time are allowed",
        _OBSERVE + "Observer._evictability",
        "answers = {pod.uid: _NOT_TRIED for pod in pods}",
        "answers = {pod.uid: DryRunAnswer(answer=Evictable.ALLOWED) for pod in pods}",
    ),
    Mutant(
        "_evictability: pods that cannot be listed count as none",
        _OBSERVE + "Observer._evictability",
        'Unknown("the pods of this node are not known")',
        "{}",
    ),
    Mutant(
        "_owners: a working node reads the owners of the pods that are there now",
        _OBSERVE + "Observer._owners",
        "_recorded_phase(seen.node) not in _BEFORE_THE_DRAIN",
        "False",
    ),
    Mutant(
        "_known: an API server that gives no answer ends the turn",
        _OBSERVE + "_known",
        "return Unknown(str(error))",
        "raise",
    ),
)

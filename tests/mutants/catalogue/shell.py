"""Mistakes in the agent's code around the decisions: how it observes (`agent/observe.py`) and how it acts
(`agent/apply.py`)."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_APPLY, _OBSERVE = "agent/apply.py:", "agent/observe.py:"

MUTANTS = (
    # ---- actions ----
    Mutant(
        "The turn continues after an action that may have failed",
        _APPLY + "Applier.apply",
        "return self._stopped(stop, action, reports_of(actions[number:]))",
        "continue",
    ),
    Mutant(
        "A turn that stops early does not report its executed writes",
        _APPLY + "Applier._stopped",
        "if self._is_anything_written:\n            self.tell(rest)",
        "if False:\n            self.tell(rest)",
    ),
    Mutant(
        "A turn that stops early reports a write that was not executed",
        _APPLY + "Applier._stopped",
        "if self._is_anything_written:\n            self.tell(rest)",
        "if True:\n            self.tell(rest)",
    ),
    Mutant(
        "The agent sends a cordon although its list of Nodes is too old",
        _APPLY + "Applier._patch_node",
        "patch.send_before is not None and self._hands.host.uptime() >= patch.send_before",
        "False",
    ),
    Mutant(
        "A patch of the Node with an unknown result is treated as executed",
        _APPLY + "Applier._patch_node",
        "return _stop(patch.purpose, failed)",
        "return None if isinstance(failed, StillUnclear) else _stop(patch.purpose, failed)",
    ),
    Mutant(
        "After an uncordon, the next turn does not read the Node again and misses the node controller's change",
        _APPLY + "Applier._patch_node",
        "None if patch.unschedulable is False else node",
        "node",
    ),
    Mutant(
        "The age of a patched Node is measured from the response instead of the request",
        _APPLY + "Applier._patch_node",
        "= True, True, began",
        "= True, True, self._hands.api.clock.monotonic()",
    ),
    Mutant(
        "A write of the lock with an unknown result is treated as executed",
        _APPLY + "Applier._write_lock",
        "return _stop(wanted.purpose, failed)",
        "return None if isinstance(failed, StillUnclear) else _stop(wanted.purpose, failed)",
    ),
    Mutant(
        "A write that the API server rejects, for example for a missing right, is not logged as an error",
        _APPLY + "_stop",
        "is_refusal=isinstance(failed, Rejected)",
        "is_refusal=False",
    ),
    Mutant(
        "The agent reboots the host although the lock cannot be read",
        _APPLY + "Applier._confirm_claim",
        'return Stop(f"the agent cannot check whether the lock still contains its claim: {error}")',
        "self._confirmed_at = asked_at\n            return None if error else None",
    ),
    Mutant(
        "The agent reboots the host although its claim is not in the lock",
        _APPLY + "Applier._confirm_claim",
        "if not lock.confirms(reading.content, claim.node, claim.claim):",
        "if False:",
    ),
    Mutant(
        "The age of the claim's confirmation is measured from the response instead of the request",
        _APPLY + "Applier._confirm_claim",
        "self._confirmed_at = asked_at",
        "self._confirmed_at = self._hands.api.clock.monotonic()",
    ),
    Mutant(
        "The agent asks the host to reboot although its claim was not confirmed",
        _APPLY + "Applier._ask_reboot",
        "self._confirmed_at is None or hands.api.clock.monotonic() - self._confirmed_at >= order.within_seconds",
        "self._confirmed_at is not None and hands.api.clock.monotonic() - self._confirmed_at >= order.within_seconds",
    ),
    Mutant(
        "The agent asks the host to reboot with an old confirmation of its claim",
        _APPLY + "Applier._ask_reboot",
        "self._confirmed_at is None or hands.api.clock.monotonic() - self._confirmed_at >= order.within_seconds",
        "self._confirmed_at is None",
    ),
    Mutant(
        "The agent asks the host to reboot long after its announcement",
        _APPLY + "Applier._ask_reboot",
        "order.send_before is not None and hands.host.uptime() >= order.send_before",
        "False",
    ),
    Mutant(
        "A turn that is cancelled during the reboot command is treated as if it had not asked the host",
        _APPLY + "Applier._ask_reboot",
        "self._set_memory(before_reboot_asked(self._memory))",
        "before_reboot_asked(self._memory)",
    ),
    Mutant(
        "A reboot command that timed out is treated as failed",
        _APPLY + "Applier._ask_reboot",
        "RebootOutcome.UNCLEAR, why",
        "RebootOutcome.FAILED, why",
    ),
    Mutant(
        "A failed reboot command is treated as accepted",
        _APPLY + "Applier._ask_reboot",
        "RebootOutcome.FAILED, why",
        "RebootOutcome.ACCEPTED, why",
    ),
    Mutant(
        "A slow admission webhook keeps the agent from its next turn",
        _APPLY + "Applier._evict",
        "if clock.monotonic() >= until:",
        "if False:",
    ),
    Mutant(
        "--drain-parallel has no effect",
        _APPLY + "Applier._evict",
        "range(min(batch.parallel, len(batch.pods)))",
        "range(len(batch.pods))",
    ),
    Mutant(
        "With --drain-parallel=1, an eviction does not wait until the previous pod is replaced",
        _APPLY + "Applier._evict",
        "if batch.parallel == 1:",
        "if False:",
    ),
    Mutant(
        "The agent forgets the response to an eviction",
        _APPLY + "Applier._evicted",
        "self._set_memory(",
        "(lambda memory: None)(",
    ),
    Mutant(
        "The agent forgets the Retry-After of a refused eviction",
        _APPLY + "Applier._evicted",
        "retry_after_seconds=result.retry_after_seconds,",
        "",
    ),
    Mutant(
        "A cancelled turn forgets what it has already done",
        _APPLY + "Applier._set_memory",
        "self._remember(memory)",
        "memory",
    ),
    Mutant(
        "People get the message about a reboot although the claim was not confirmed",
        _APPLY + "reports_of",
        "isinstance(each, Notify) and not is_asked",
        "isinstance(each, Notify)",
    ),
    # ---- observations ----
    Mutant(
        "The turn that first notices the need for a reboot uses an old copy of the Node",
        _OBSERVE + "Observer.begin",
        "0.0 if is_news else self._node_max_age_seconds(phase)",
        "self._node_max_age_seconds(phase)",
    ),
    Mutant(
        "A clock that was never compared with the API server's is treated as correct",
        _OBSERVE + "Observer.begin",
        'Unknown("the API server has not sent its time yet") if skew is None else skew',
        "0.0 if skew is None else skew",
    ),
    Mutant(
        "The agent reads evidence in the wrong order, for example the holders before the lock",
        _OBSERVE + "Observer.add",
        "else set()), key=list(Evidence).index)",
        "else set()), key=list(Evidence).index, reverse=True)",
    ),
    Mutant(
        "The agent does not read the host's uptime again after it has read facts of the cluster",
        _OBSERVE + "Observer.add",
        "uptime=self._senses.host.uptime(),",
        "",
    ),
    Mutant(
        "An agent trusts its own last write of the Node for ever",
        _OBSERVE + "Observer._node_max_age_seconds",
        "self._is_answer = False",
        "self._is_answer = self._is_answer",
    ),
    Mutant(
        "The age of the agent's copy of the Node counts from the API server's response, not from the request",
        _OBSERVE + "Observer._own_node",
        "(node if isinstance(node, NodeView) else None), now",
        "(node if isinstance(node, NodeView) else None), self._senses.api.clock.monotonic()",
    ),
    Mutant(
        "When the Node cannot be read, its old copy is treated as new",
        _OBSERVE + "Observer._own_node",
        "(node if isinstance(node, NodeView) else None), now",
        "(node if isinstance(node, NodeView) else self._node), now",
    ),
    Mutant(
        "The list of nodes that careen may have taken down leaves out failed nodes",
        _OBSERVE + "Observer._peers",
        "reboot_label=_OF_PEERS",
        "reboot_label=_OF_PEERS[:1]",
    ),
    Mutant(
        "A lock that cannot be parsed is treated as a lock without holders",
        _OBSERVE + "Observer._holders",
        'Unknown("the content of the lock is unknown, so it is also unknown which nodes hold claims")',
        "Holders(nodes=(), absent=frozenset())",
    ),
    Mutant(
        "A holder's Node that is missing from a list of all Nodes is not treated as deleted",
        _OBSERVE + "Observer._read_holders",
        "absent=frozenset(wanted) - every.keys()",
        "absent=frozenset()",
    ),
    Mutant(
        "The age of the list of Nodes is measured from the response instead of the request",
        _OBSERVE + "Observer._fleet",
        "read_at_uptime=asked_at",
        "read_at_uptime=self._senses.host.uptime()",
    ),
    Mutant(
        "A dry run evicts the pods",
        _OBSERVE + "Observer._evictability",
        "dry_run=True",
        "dry_run=False",
    ),
    Mutant(
        "Pods for which the dry run had no time are treated as evictable",
        _OBSERVE + "Observer._evictability",
        "answers = {pod.uid: _NOT_TRIED for pod in pods}",
        "answers = {pod.uid: DryRunAnswer(answer=Evictable.ALLOWED) for pod in pods}",
    ),
    Mutant(
        "If the pods cannot be listed, the dry run assumes that there are none",
        _OBSERVE + "Observer._evictability",
        'Unknown("the pods of this node are not known")',
        "{}",
    ),
    Mutant(
        "After the cordon, the agent reads the owners of the pods that remain, not the owners of the evicted pods",
        _OBSERVE + "Observer._owners",
        "phase not in _BEFORE_THE_DRAIN",
        "False",
    ),
    Mutant(
        "An API server that does not answer ends the turn",
        _OBSERVE + "_known",
        "return Unknown(str(error))",
        "raise",
    ),
)

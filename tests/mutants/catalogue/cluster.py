"""Mistakes in requests to the API server: writes, errors, responses, evictions, and the parsing of objects."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_WRITES, _ERRORS, _ANSWERS, _API = (f"cluster/wire/{name}.py:" for name in ("writes", "errors", "answers", "api"))
_CLIENT, _EVICTIONS, _NODES = "cluster/wire/client.py:", "cluster/evictions.py:", "cluster/nodes.py:"
_OBJECTS, _PODS, _FOREIGN = "cluster/objects.py:", "cluster/pods.py:", "cluster/foreign.py:"
_STORE, _LOSSES = "cluster/lock_store.py:", "core/losses.py:"

_HEALTH = "cluster/workloads/health.py:"

MUTANTS = (
    # ---- guarded writes ----
    Mutant(
        "A write without a resourceVersion is sent",
        _WRITES + "write_guarded",
        "if not version:",
        "if False:",
    ),
    Mutant(
        "A write whose response is lost is treated as executed",
        _WRITES + "write_guarded",
        "if stands(seen):",
        "if True:",
    ),
    Mutant(
        "After a lost response, the agent attributes its own executed write to another client",
        _WRITES + "write_guarded",
        "if stands(seen):",
        "if False:",
    ),
    Mutant(
        "After a lost response, a repeated write overwrites another client's change",
        _WRITES + "write_guarded",
        "if now_at != version:\n            return Stale(write_error)",
        "version = now_at",
    ),
    Mutant(
        "A write whose response is lost is treated as not executed if the object cannot be read again",
        _WRITES + "write_guarded",
        'return StillUnclear(f"{write_error}; after this error the object could not be read again: {read_error}")',
        'return Stale(f"{write_error}; after this error the object could not be read again: {read_error}")',
    ),
    Mutant(
        "After a lost response, a conflict is attributed to another client's write",
        _WRITES + "_ended",
        "None if lost_before else Stale(str(error))",
        "Stale(str(error))",
    ),
    Mutant(
        "A failed write that the server may have executed is treated as proof that nothing was written",
        _WRITES + "_ended",
        "if error.may_have_landed:",
        "if error.may_have_landed and not isinstance(error, Refused):",
    ),
    Mutant(
        "A write that a busy server rejects (429) is treated as a refusal that a person must resolve",
        _WRITES + "_ended",
        "isinstance(error, TooManyRequests) or not isinstance(error, Refused)",
        "not isinstance(error, Refused)",
    ),
    Mutant(
        "After a lost response, a refusal is treated as proof that nothing was written",
        _WRITES + "_ended",
        "None if lost_before else Rejected(str(error))",
        "Rejected(str(error))",
    ),
    # ---- errors ----
    Mutant(
        "A proxy's 404 is treated as a deleted object",
        _ERRORS + "raise_unless_ok",
        'if kind is NotFound and status.kind != "Status":',
        "if False:",
    ),
    Mutant(
        "A redirect is treated as a successful response",
        _ERRORS + "raise_unless_ok",
        "200 <= response.status < 300",
        "200 <= response.status < 400",
    ),
    Mutant(
        "A 5xx response to a write is treated as proof that nothing was written",
        _ERRORS + "raise_unless_ok",
        "ServerFailed if response.status >= 500 else Refused",
        "Refused",
    ),
    Mutant(
        "A Retry-After header stops the agent for years",
        _ERRORS + "retry_after_seconds",
        "min(float(text), LONGEST_RETRY_AFTER_SECONDS)",
        "float(text)",
    ),
    Mutant(
        "A Retry-After date in the past gives a negative pause",
        _ERRORS + "retry_after",
        "max(0.0, (at - now).total_seconds())",
        "(at - now).total_seconds()",
    ),
    # ---- answers ----
    Mutant(
        "A response with an object of another kind is accepted",
        _ANSWERS + "the_object",
        "_same_kind(head, asked.kind, asked, what)",
        "head",
    ),
    Mutant(
        "A response with another object is accepted",
        _ANSWERS + "the_object",
        "_same_object(head.metadata, asked, what)",
        "head",
    ),
    Mutant(
        "An object without a resourceVersion is accepted",
        _ANSWERS + "_same_object",
        "meta.name and meta.uid and meta.resource_version",
        "meta.name and meta.uid",
    ),
    Mutant(
        "An object of another namespace is accepted",
        _ANSWERS + "_same_object",
        "or (asked.namespace and meta.namespace != asked.namespace)",
        "",
    ),
    Mutant(
        "An object of the same kind with another apiVersion is accepted",
        _ANSWERS + "_same_kind",
        "or head.api_version not in (None, asked.api_version)",
        "",
    ),
    Mutant(
        "A list of objects of another kind is accepted",
        _ANSWERS + "the_page",
        '_same_kind(head, f"{asked.kind}List", asked, what)',
        "head",
    ),
    Mutant(
        "A list without a resourceVersion is accepted",
        _ANSWERS + "the_page",
        "if not head.metadata.resource_version:",
        "if False:",
    ),
    Mutant(
        "A server that repeats one page keeps the agent reading for ever",
        _ANSWERS + "the_page",
        "after and head.metadata.continue_token == after",
        "False",
    ),
    Mutant(
        "A Status that reports no success is treated as an eviction",
        _ANSWERS + "is_evicted",
        'said.kind != "Status" or said.status != "Success" or said.code not in (None, 0, 201)',
        'said.kind != "Status"',
    ),
    Mutant(
        "A list item that was not requested is accepted",
        _ANSWERS + "refuse_others",
        "if unselected := next(iter(others), None):",
        "if unselected := None:",
    ),
    # ---- the API ----
    Mutant(
        "The agent reads only the first page of a list",
        _API + "ClusterApi.pages",
        "if not token:",
        "if True:",
    ),
    Mutant(
        "A list that is read again after it expired keeps its old items",
        _API + "ClusterApi.views",
        "found: list[V] = []",
        "found: list[V] = found if last else []",
    ),
    Mutant(
        "A write whose response is lost is sent again",
        _API + "ClusterApi.write",
        "(NotSent, TooManyRequests) if wait_when_busy else (NotSent,)",
        "(NotSent, TooManyRequests, Unclear) if wait_when_busy else (NotSent, Unclear)",
    ),
    Mutant(
        "An eviction that a busy server rejects (429) is repeated within the same turn",
        _API + "ClusterApi.write",
        "if wait_when_busy else",
        "if True else",
    ),
    Mutant(
        "The pause before a repeated request ignores Retry-After",
        _API + "ClusterApi._pause",
        "return asked + longest",
        "return longest",
    ),
    Mutant(
        "The difference between the agent's clock and the API server's clock has the wrong sign",
        _API + "ClusterApi._compare_clocks",
        "self.clock.now() - theirs",
        "theirs - self.clock.now()",
    ),
    Mutant(
        "A response without a Date header is treated as proof of a correct clock",
        _API + "ClusterApi._compare_clocks",
        "if theirs is not None:",
        "if theirs is None:\n            self.clock_skew_seconds = 0.0\n        else:",
    ),
    Mutant(
        "A read is not repeated after a server failure",
        _API + "_may_pass",
        "| ServerFailed",
        "",
    ),
    Mutant(
        "A request whose connection broke is treated as never sent",
        _CLIENT + "ClientTransport._begin",
        "raise (NotSent if was_surely_not_sent(error) else Unclear)(what) from error",
        "raise NotSent(what) from error",
    ),
    Mutant(
        "The client follows a redirect, with the agent's token",
        _CLIENT + "ClientTransport._begin",
        "redirect=False",
        "redirect=True",
        survives="urllib3 follows no redirect with retries=False; redirect=False only makes this explicit",
    ),
    Mutant(
        "A request may still be sent after its caller has given up",
        _CLIENT + "ClientTransport._send_once",
        "if not turn.pass_once():\n                raise NotSent",
        "if False:\n                raise NotSent",
    ),
    Mutant(
        "The client does not read its credentials again after a 401",
        _CLIENT + "ClientTransport.send",
        "response.status == 401 and self._reload()",
        "False",
    ),
    # ---- evictions ----
    Mutant(
        "An eviction without a UID hits a new pod of the same name",
        _EVICTIONS + "eviction",
        'options: dict[str, Any] = {"preconditions": {"uid": pod.uid}}',
        "options: dict[str, Any] = {}",
    ),
    Mutant(
        "The body of a dry-run eviction requests a real eviction",
        _EVICTIONS + "eviction",
        "if dry_run:",
        "if False:",
    ),
    Mutant(
        "The query of a dry-run eviction requests a real eviction",
        _EVICTIONS + "evict",
        "if dry_run else {}",
        "if False else {}",
    ),
    Mutant(
        "Any 2xx response is treated as an eviction",
        _EVICTIONS + "evict",
        'is_evicted(said.body, f"POST {path}/eviction")',
        "said",
    ),
    Mutant(
        "An eviction whose response is lost is treated as accepted",
        _EVICTIONS + "evict",
        "return Evicted(answer=EvictAnswer.UNCLEAR, detail=str(error))",
        "return Evicted(answer=EvictAnswer.ACCEPTED, detail=str(error))",
    ),
    Mutant(
        "Every 429 is treated as a refusal by a PodDisruptionBudget",
        _EVICTIONS + "_judged",
        "isinstance(error, TooManyRequests) and _BUDGET.search(error.message)",
        "isinstance(error, TooManyRequests)",
    ),
    Mutant(
        "The error for a pod with two PodDisruptionBudgets is treated as a server failure",
        _EVICTIONS + "_judged",
        "or (isinstance(error, ServerFailed) and _TWO_BUDGETS in error.message)",
        "",
    ),
    Mutant(
        "An eviction error of a busy or failing server is treated as a refusal",
        _EVICTIONS + "_judged",
        "if isinstance(error, TooManyRequests | ServerFailed):",
        "if False:",
    ),
    Mutant(
        "A refused eviction counts towards --force-reboot although the agent lacked the right to evict",
        _EVICTIONS + "_judged",
        "and not _NO_RIGHT.search(error.message)",
        "",
    ),
    Mutant(
        "A refused eviction counts towards --force-reboot although the 403 response came from a proxy",
        _EVICTIONS + "_judged",
        "and bool(error.reason)",
        "",
    ),
    Mutant(
        "A 404 for the eviction of a pod that still exists is treated as a deleted pod",
        _EVICTIONS + "_explain_not_found",
        "if head.metadata.uid != pod.uid:",
        "if True:",
    ),
    Mutant(
        "A pod that cannot be read is treated as deleted",
        _EVICTIONS + "_explain_not_found",
        "return Evicted(answer=EvictAnswer.UNCLEAR, detail=str(again))",
        "return Evicted(answer=EvictAnswer.GONE, detail=str(again))",
    ),
    Mutant(
        "Every conflict of an eviction is treated as a deleted pod",
        _EVICTIONS + "_explain_conflict",
        'if "uid" in error.message.lower():',
        "if True:",
    ),
    # ---- Nodes and the lock ----
    Mutant(
        "A Node that cannot be read is treated as deleted",
        _NODES + "read_node",
        "except NotFound:",
        "except Exception:",
    ),
    Mutant(
        "A listed Node that does not match the requested label selector is accepted",
        _NODES + "list_nodes",
        "if (reboot_label and node.labels.get(REBOOT_LABEL) not in reboot_label)",
        "if False",
    ),
    Mutant(
        "A patch is treated as executed although the Node does not have the labels of the patch",
        _LOSSES + "wishes",
        "*(Wish(Kind.LABEL, key, value) for key, value in patch.labels.items()),",
        "",
    ),
    Mutant(
        "A patch that cordons or uncordons the Node is treated as executed although the cordon did not change",
        _LOSSES + "wishes",
        '*(() if patch.unschedulable is None else (Wish(Kind.CORDON, "", _SET if patch.unschedulable else None),)),',
        "",
    ),
    Mutant(
        "A patch is treated as not executed because the node controller added another taint",
        _LOSSES + "lacking",
        "_soft(after.taints)",
        "after.taints",
    ),
    Mutant(
        "The Node's managed fields do not show that careen set the cordon",
        _NODES + "_manager",
        '{"fieldManager": FIELD_MANAGER} if patch.unschedulable is not None else {}',
        "{}",
    ),
    Mutant(
        "The Node's managed fields do not show that careen set the taint",
        _NODES + "_manager",
        "if patch.adds_taint:",
        "if False:",
    ),
    Mutant(
        "The patch of a Node has no resourceVersion",
        _NODES + "merge_patch",
        '{"resourceVersion": version}',
        "{}",
    ),
    Mutant(
        "The patch of a Node leaves out an uncordon",
        _NODES + "merge_patch",
        "if patch.unschedulable is not None:",
        "if patch.unschedulable:",
    ),
    Mutant(
        "The agent never removes the last taint of a Node",
        _NODES + "merge_patch",
        "if patch.taints is not None:",
        "if patch.taints:",
    ),
    Mutant(
        "A write is treated as executed although the DaemonSet was recreated",
        _STORE + "LockStore.write",
        "and seen.daemonset_uid == wanted.daemonset_uid",
        "",
    ),
    Mutant(
        "The patch of the lock has no resourceVersion",
        _STORE + "LockStore._patch",
        '"resourceVersion": version, "annotations"',
        '"annotations"',
    ),
    # ---- objects ----
    Mutant(
        "A Node whose Ready condition is Unknown is treated as ready",
        _OBJECTS + "_is_true",
        'condition.status == "True"',
        'condition.status != "False"',
    ),
    Mutant(
        "A client that only updates the status is treated as the author of the cordon",
        _OBJECTS + "_set_by",
        "if not each.subresource and _sets(each, field)",
        "if _sets(each, field)",
    ),
    Mutant(
        "Any owner of a pod is treated as its controller",
        _OBJECTS + "controller_of",
        "if each.controller",
        "",
    ),
    Mutant(
        "A workload that does not set `replicas` is treated as if it wanted 0 replicas",
        _OBJECTS + "owner_health",
        "1 if wanted is None else wanted",
        "wanted or 0",
    ),
    Mutant(
        "A toleration of another key with Exists is treated as a toleration of the cordon",
        _OBJECTS + "_tolerates_cordon",
        '(not toleration.key and toleration.operator == "Exists")',
        'toleration.operator == "Exists"',
    ),
    Mutant(
        "A pod with a grace period of centuries is treated as not terminating",
        _OBJECTS + "_end",
        "bounded(at) or LATEST",
        "bounded(at)",
    ),
    Mutant(
        "A pod that a scheduler placed is treated as bound by its owner",
        _OBJECTS + "_came_bound",
        'not each.subresource and _sets(each, "f:nodeName")',
        '_sets(each, "f:nodeName")',
    ),
    Mutant(
        "The drain evicts pods of other nodes",
        _PODS + "list_pods_on",
        "if pod.spec.node_name != node",
        "if False",
    ),
    Mutant(
        "The node waits for a workload that is being deleted",
        _PODS + "read_owners",
        "if each.metadata.deletion_timestamp is None",
        "",
    ),
    Mutant(
        "A terminating pod counts as ready",
        _HEALTH + "_pods",
        "pod.metadata.deletion_timestamp is None and",
        "",
    ),
    Mutant(
        "A roll-out during the reboot is not noticed",
        _HEALTH + "_read_themselves",
        "row.uid not in now or now[row.uid].replicas < row.replicas",
        "False",
    ),
    Mutant(
        "Any other workload counts as created in the place of a deleted one",
        _HEALTH + "_read_themselves",
        "bool(health.parent) or _is_newer(workload.metadata, since)",
        "True",
    ),
    Mutant(
        "A workload is read itself in every turn",
        _HEALTH + "_of_namespace",
        "counted.alive.get(row.uid, 0) >= row.ready",
        "False",
    ),
    Mutant(
        "Pods of an owner of an unknown kind are lost with the labels that they had",
        _HEALTH + "_of_namespace",
        "row.kind not in WORKLOAD_KINDS and row.selector",
        "False",
    ),
    Mutant(
        "The pods of a workflow must be ready again",
        _HEALTH + "is_foreign",
        "and not pod.is_work",
        "",
    ),
    Mutant(
        "An owner with a known name but of another API group is ignored",
        _HEALTH + "is_foreign",
        "is_plain(pod.owner_kind, pod.owner_api_version)",
        'is_plain(pod.owner_kind, "")',
    ),
    Mutant(
        "A DaemonSet's node affinity does not count",
        "cluster/workloads/daemon_sets.py:_selects",
        "node_affinity(written).required if written is not None else None",
        "None",
    ),
    Mutant(
        "A recreated DaemonSet counts as the recorded one",
        "cluster/workloads/daemon_sets.py:_read",
        "each.metadata.uid == row.uid and",
        "",
    ),
    Mutant(
        "A DaemonSet that is being deleted still wants its pods",
        "cluster/workloads/daemon_sets.py:_read",
        "and each.metadata.deletion_timestamp is None",
        "",
    ),
    Mutant(
        "careen's own DaemonSet is treated as another reboot coordinator",
        _FOREIGN + "find_foreign",
        "place == (namespace, name) or",
        "",
    ),
    Mutant(
        "The agent ignores a lock that another reboot coordinator left",
        _FOREIGN + "find_foreign",
        "elif held := _held((each.metadata.annotations or {}).get(LOCK_ANNOTATION)):",
        "elif held := None:",
    ),
    Mutant(
        "The agent ignores the DaemonSet kube-system/kured while it has no pods yet",
        _FOREIGN + "find_foreign",
        "each.status.desired_number_scheduled if place == KUREDS_PLACE else 0",
        "0",
    ),
    Mutant(
        "Any DaemonSet with kured's image is treated as running although it has no pods yet",
        _FOREIGN + "find_foreign",
        "each.status.desired_number_scheduled if place == KUREDS_PLACE else 0",
        "each.status.desired_number_scheduled",
    ),
    Mutant(
        "A lock on any DaemonSet without pods stops every node",
        _FOREIGN + "find_foreign",
        "or not (pods or place == KUREDS_PLACE)",
        "",
    ),
)

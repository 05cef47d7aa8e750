"""Mistakes in requests to the API server: writes, errors, answers, evictions, and the parsing of objects."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_WRITES, _ERRORS, _ANSWERS, _API = (f"cluster/wire/{name}.py:" for name in ("writes", "errors", "answers", "api"))
_CLIENT, _EVICTIONS, _NODES = "cluster/wire/client.py:", "cluster/evictions.py:", "cluster/nodes.py:"
_OBJECTS, _PODS, _FOREIGN = "cluster/objects.py:", "cluster/pods.py:", "cluster/foreign.py:"
_STORE = "cluster/lock_store.py:"

MUTANTS = (
    # ---- guarded writes ----
    Mutant(
        "write_guarded: a write without a version is sent",
        _WRITES + "write_guarded",
        "if not version:",
        "if False:",
    ),
    Mutant(
        "write_guarded: a lost answer is a write that landed",
        _WRITES + "write_guarded",
        "if stands(seen):",
        "if True:",
    ),
    Mutant(
        "write_guarded: a write that landed in silence is said to be stale",
        _WRITES + "write_guarded",
        "if stands(seen):",
        "if False:",
    ),
    Mutant(
        "write_guarded: overwrites what another client changed after a lost answer",
        _WRITES + "write_guarded",
        "if now_at != version:\n            return Stale(why)",
        "version = now_at",
    ),
    Mutant(
        "write_guarded: an object that cannot be read again counts as written",
        _WRITES + "write_guarded",
        'return StillUnclear(f"{why}; and reading again failed: {error}")',
        'return Stale(f"{why}; and reading again failed: {error}")',
    ),
    Mutant(
        "_ended: a conflict behind a lost answer is another client's write",
        _WRITES + "_ended",
        "None if lost_before else Stale(str(error))",
        "Stale(str(error))",
    ),
    Mutant(
        "_ended: a server's failure half-way is certain",
        _WRITES + "_ended",
        "if error.may_have_landed:",
        "if error.may_have_landed and not isinstance(error, Refused):",
    ),
    Mutant(
        "_ended: a busy server's answer is for a person",
        _WRITES + "_ended",
        "isinstance(error, TooManyRequests) or not isinstance(error, Refused)",
        "not isinstance(error, Refused)",
    ),
    Mutant(
        "_ended: a refusal behind a lost answer is certain",
        _WRITES + "_ended",
        "None if lost_before else Rejected(str(error))",
        "Rejected(str(error))",
    ),
    # ---- errors ----
    Mutant(
        "raise_unless_ok: a 404 of a proxy says that the object does not exist",
        _ERRORS + "raise_unless_ok",
        'if kind is NotFound and status.kind != "Status":',
        "if False:",
    ),
    Mutant(
        "raise_unless_ok: a redirect is an answer",
        _ERRORS + "raise_unless_ok",
        "200 <= response.status < 300",
        "200 <= response.status < 400",
    ),
    Mutant(
        "raise_unless_ok: a 5xx is certain",
        _ERRORS + "raise_unless_ok",
        "ServerFailed if response.status >= 500 else Refused",
        "Refused",
    ),
    Mutant(
        "retry_after: a header keeps the agent from its node for years",
        _ERRORS + "retry_after",
        "min(float(text), LONGEST_RETRY_AFTER_SECONDS)",
        "float(text)",
    ),
    Mutant(
        "retry_after: a date that is past is a negative pause",
        _ERRORS + "retry_after",
        "max(0.0, (at - now).total_seconds())",
        "(at - now).total_seconds()",
    ),
    # ---- answers ----
    Mutant(
        "the_object: an answer of another kind is trusted",
        _ANSWERS + "the_object",
        "_same_kind(head, asked.kind, asked, what)",
        "head",
    ),
    Mutant(
        "the_object: another object's answer is trusted",
        _ANSWERS + "the_object",
        "_same_object(head.metadata, asked, what)",
        "head",
    ),
    Mutant(
        "_same_object: an object without a version is trusted",
        _ANSWERS + "_same_object",
        "meta.name and meta.uid and meta.resource_version",
        "meta.name and meta.uid",
    ),
    Mutant(
        "_same_object: an object of another namespace is trusted",
        _ANSWERS + "_same_object",
        "or (asked.namespace and meta.namespace != asked.namespace)",
        "",
    ),
    Mutant(
        "_same_kind: the same kind of another API is trusted",
        _ANSWERS + "_same_kind",
        "or head.api_version not in (None, asked.api_version)",
        "",
    ),
    Mutant(
        "the_page: a list of another kind is trusted",
        _ANSWERS + "the_page",
        '_same_kind(head, f"{asked.kind}List", asked, what)',
        "head",
    ),
    Mutant(
        "the_page: a list without a version is trusted",
        _ANSWERS + "the_page",
        "if not head.metadata.resource_version:",
        "if False:",
    ),
    Mutant(
        "the_page: the same page for ever",
        _ANSWERS + "the_page",
        "after and head.metadata.continue_token == after",
        "False",
    ),
    Mutant(
        "is_evicted: any answer of 2xx is an eviction",
        _ANSWERS + "is_evicted",
        'said.kind != "Status" or said.status != "Success" or said.code not in (None, 0, 201)',
        'said.kind != "Status"',
    ),
    Mutant(
        "refuse_others: items that were not asked for are trusted",
        _ANSWERS + "refuse_others",
        "if other := next(iter(others), None):",
        "if other := None:",
    ),
    # ---- the API ----
    Mutant(
        "pages: only the first page of a list is read",
        _API + "ClusterApi.pages",
        "if not token:",
        "if True:",
    ),
    Mutant(
        "views: a list that expired continues where it stopped",
        _API + "ClusterApi.views",
        "found: list[V] = []",
        "found: list[V] = found if last else []",
    ),
    Mutant(
        "write: a write whose answer was lost is sent again",
        _API + "ClusterApi.write",
        "(NotSent, TooManyRequests) if wait_when_busy else (NotSent,)",
        "(NotSent, TooManyRequests, Unclear) if wait_when_busy else (NotSent, Unclear)",
    ),
    Mutant(
        "write: an eviction waits for a busy server within the turn",
        _API + "ClusterApi.write",
        "if wait_when_busy else",
        "if True else",
    ),
    Mutant(
        "_pause: Retry-After is ignored",
        _API + "ClusterApi._pause",
        "return asked + longest",
        "return longest",
    ),
    Mutant(
        "_compare_clocks: the clocks the wrong way round",
        _API + "ClusterApi._compare_clocks",
        "self.clock.now() - theirs",
        "theirs - self.clock.now()",
    ),
    Mutant(
        "_compare_clocks: an answer without a date is a right clock",
        _API + "ClusterApi._compare_clocks",
        "if theirs is not None:",
        "if theirs is None:\n            self.clock_skew_seconds = 0.0\n        else:",
    ),
    Mutant(
        "_may_pass: a read that a server failed half-way is not asked again",
        _API + "_may_pass",
        "| ServerFailed",
        "",
    ),
    Mutant(
        "client: a request whose connection broke was never sent",
        _CLIENT + "ClientTransport._begin",
        "raise (NotSent if was_surely_not_sent(error) else Unclear)(what) from error",
        "raise NotSent(what) from error",
    ),
    Mutant(
        "client: follows a redirect, with the agent's token",
        _CLIENT + "ClientTransport._begin",
        "redirect=False",
        "redirect=True",
        survives="urllib3 follows none with retries=False either; the request says both, so that nobody has to know it",
    ),
    Mutant(
        "client: a request that was given up may still be sent",
        _CLIENT + "ClientTransport._send_once",
        "if not turn.pass_once():\n                raise NotSent",
        "if False:\n                raise NotSent",
    ),
    Mutant(
        "client: the credentials are not read again after a 401",
        _CLIENT + "ClientTransport.send",
        "response.status == 401 and self._reload()",
        "False",
    ),
    # ---- evictions ----
    Mutant(
        "eviction: has no UID, so that it hits a successor of the same name",
        _EVICTIONS + "eviction",
        'options: dict[str, Any] = {"preconditions": {"uid": pod.uid}}',
        "options: dict[str, Any] = {}",
    ),
    Mutant(
        "eviction: the body of a dry run requests a real eviction",
        _EVICTIONS + "eviction",
        "if dry_run:",
        "if False:",
    ),
    Mutant(
        "evict: the query of a dry run requests a real eviction",
        _EVICTIONS + "evict",
        "if dry_run else {}",
        "if False else {}",
    ),
    Mutant(
        "evict: any answer of 2xx is an eviction",
        _EVICTIONS + "evict",
        'is_evicted(said.body, f"POST {path}/eviction")',
        "said",
    ),
    Mutant(
        "evict: an answer that was lost is an eviction",
        _EVICTIONS + "evict",
        "return Evicted(answer=EvictAnswer.UNCLEAR, detail=str(error))",
        "return Evicted(answer=EvictAnswer.ACCEPTED, detail=str(error))",
    ),
    Mutant(
        "_judged: every 429 is a budget",
        _EVICTIONS + "_judged",
        "isinstance(error, TooManyRequests) and _BUDGET.search(error.message)",
        "isinstance(error, TooManyRequests)",
    ),
    Mutant(
        "_judged: two budgets that select one pod are a server's failure",
        _EVICTIONS + "_judged",
        "or (isinstance(error, ServerFailed) and _TWO_BUDGETS in error.message)",
        "",
    ),
    Mutant(
        "_judged: a busy or failing server has judged",
        _EVICTIONS + "_judged",
        "if isinstance(error, TooManyRequests | ServerFailed):",
        "if False:",
    ),
    Mutant(
        "_judged: a missing right is a judgement that earns the force",
        _EVICTIONS + "_judged",
        "and not _NO_RIGHT.search(error.message)",
        "",
    ),
    Mutant(
        "_judged: a proxy's 403 is a judgement that earns the force",
        _EVICTIONS + "_judged",
        "and bool(error.reason)",
        "",
    ),
    Mutant(
        "_explain_not_found: every 404 counts as a deleted pod",
        _EVICTIONS + "_explain_not_found",
        "if head.metadata.uid != pod.uid:",
        "if True:",
    ),
    Mutant(
        "_explain_not_found: an unreadable pod counts as deleted",
        _EVICTIONS + "_explain_not_found",
        "return Evicted(answer=EvictAnswer.UNCLEAR, detail=str(again))",
        "return Evicted(answer=EvictAnswer.GONE, detail=str(again))",
    ),
    Mutant(
        "_explain_conflict: every conflict counts as a deleted pod",
        _EVICTIONS + "_explain_conflict",
        'if "uid" in error.message.lower():',
        "if True:",
    ),
    # ---- Nodes and the lock ----
    Mutant(
        "read_node: an unreadable Node counts as deleted",
        _NODES + "read_node",
        "except NotFound:",
        "except Exception:",
    ),
    Mutant(
        "list_nodes: Nodes that the selector leaves out are trusted",
        _NODES + "list_nodes",
        "if reboot_label and node.labels.get(REBOOT_LABEL) not in reboot_label",
        "if False",
    ),
    Mutant(
        "stands: a patch landed although its labels are not there",
        _NODES + "stands",
        "_contains(node.labels, patch.labels)\n        and",
        "",
    ),
    Mutant(
        "stands: a patch landed although the cordon is not there",
        _NODES + "stands",
        "and (patch.unschedulable is None or patch.unschedulable == node.unschedulable)",
        "",
    ),
    Mutant(
        "stands: a patch did not land when the node controller added its own taint",
        _NODES + "_of_others_than_controllers",
        'if not taint.key.startswith("node.kubernetes.io/")',
        "",
    ),
    Mutant(
        "_manager: nothing proves later that a cordon is careen's",
        _NODES + "_manager",
        '{"fieldManager": FIELD_MANAGER} if patch.unschedulable is not None else {}',
        "{}",
    ),
    Mutant(
        "_manager: nothing proves later that a taint is careen's",
        _NODES + "_manager",
        "if patch.adds_taint:",
        "if False:",
    ),
    Mutant(
        "merge_patch: the patch has no version",
        _NODES + "merge_patch",
        '{"resourceVersion": version}',
        "{}",
    ),
    Mutant(
        "merge_patch: an uncordon is no change",
        _NODES + "merge_patch",
        "if patch.unschedulable is not None:",
        "if patch.unschedulable:",
    ),
    Mutant(
        "merge_patch: the last taint is never taken away",
        _NODES + "merge_patch",
        "if patch.taints is not None:",
        "if patch.taints:",
    ),
    Mutant(
        "LockStore.write: the lock of a recreated DaemonSet counts as written",
        _STORE + "LockStore.write",
        "and seen.daemonset_uid == wanted.daemonset_uid",
        "",
    ),
    Mutant(
        "LockStore._patch: the write has no version",
        _STORE + "LockStore._patch",
        '"resourceVersion": version, "annotations"',
        '"annotations"',
    ),
    # ---- objects ----
    Mutant(
        "node_view: a Node whose readiness is Unknown is ready",
        _OBJECTS + "_is_true",
        'condition.status == "True"',
        'condition.status != "False"',
    ),
    Mutant(
        "_set_by: a client that changes the status counts as the author of the cordon",
        _OBJECTS + "_set_by",
        "if not each.subresource and _sets(each, field)",
        "if _sets(each, field)",
    ),
    Mutant(
        "controller_of: any owner is the controller",
        _OBJECTS + "controller_of",
        "if each.controller",
        "",
    ),
    Mutant(
        "owner_health: replicas that are not given are none",
        _OBJECTS + "owner_health",
        "1 if wanted is None else wanted",
        "wanted or 0",
    ),
    Mutant(
        "_tolerates_cordon: a toleration of another key with Exists is one of the cordon",
        _OBJECTS + "_tolerates_cordon",
        '(not toleration.key and toleration.operator == "Exists")',
        'toleration.operator == "Exists"',
    ),
    Mutant(
        "_end: a pod with a grace of centuries does not end",
        _OBJECTS + "_end",
        "bounded(at) or LATEST",
        "bounded(at)",
    ),
    Mutant(
        "_came_bound: a pod that a scheduler placed was bound by its owner",
        _OBJECTS + "_came_bound",
        'not each.subresource and _sets(each, "f:nodeName")',
        '_sets(each, "f:nodeName")',
    ),
    Mutant(
        "list_pods_on: pods of other nodes are drained",
        _PODS + "list_pods_on",
        "if pod.spec.node_name != node",
        "if False",
    ),
    Mutant(
        "read_owners: a workload that is being deleted has to come back",
        _PODS + "read_owners",
        "if each.metadata.deletion_timestamp is None",
        "",
    ),
    Mutant(
        "find_foreign: the own DaemonSet is another coordinator",
        _FOREIGN + "find_foreign",
        "place == (namespace, name) or",
        "",
    ),
    Mutant(
        "find_foreign: a lock that another coordinator left is none",
        _FOREIGN + "find_foreign",
        "elif held := _held((each.metadata.annotations or {}).get(LOCK_ANNOTATION)):",
        "elif held := None:",
    ),
    Mutant(
        "find_foreign: a kured in its own place that is about to start does not run",
        _FOREIGN + "find_foreign",
        "each.status.desired_number_scheduled if place == KUREDS_PLACE else 0",
        "0",
    ),
    Mutant(
        "find_foreign: a DaemonSet that has no pods yet runs kured, whoever made it",
        _FOREIGN + "find_foreign",
        "each.status.desired_number_scheduled if place == KUREDS_PLACE else 0",
        "each.status.desired_number_scheduled",
    ),
    Mutant(
        "find_foreign: a lock on any DaemonSet without pods stops every node",
        _FOREIGN + "find_foreign",
        "or not (pods or place == KUREDS_PLACE)",
        "",
    ),
)

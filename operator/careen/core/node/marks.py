"""The table of everything that careen writes on a Node: what proves that a mark may go, and how long the node's agent
leaves it there.

A change of the table changes the agent (`restoring.py`), `careen cleanup` (`cleanup/`) and the tests of both.
`rescue.py` does without it on purpose.
"""

from __future__ import annotations

from enum import StrEnum

from careen.core.facts import keys
from careen.core.facts.policy import Policy
from careen.core.node.autoscalers import PROTECTION
from scheduler_core.values import Value


class Kind(StrEnum):
    """Where a mark is on a Node."""

    LABEL = "label"
    ANNOTATION = "annotation"
    TAINT = "taint"
    CORDON = "cordon"


class Proof(StrEnum):
    """What proves that a mark may go. Without its proof, a mark stays."""

    KEY = "key"  # only careen writes this key
    PERSON = "person"  # people write this key; it may go once no agent runs that obeys it
    AUTHOR = "author"  # kured writes this key too: the managed fields, or without them --annotate-nodes
    EARLIER_VALUE = "earlier value"  # SET_ANNOTATIONS has the value from before, and careen's value still stands
    RECORD = "record"  # the record, else the managed fields: own_taint.py, cordons.py, changed_labels.py
    REPORT = "report"  # the report of the last reboot: changed_labels.py


class Until(StrEnum):
    """When the node's agent removes a mark. `careen cleanup` removes a mark at any time."""

    SERVICE = "service"  # the node goes back into service
    IDLE = "idle"  # the node becomes Idle
    MET = "met"  # the request is met, expired or unreadable: people/requests.py, decide.py
    CLEANUP = "cleanup"  # never


class MarkRow(Value):
    """One row of the table."""

    kind: Kind
    key: str  # empty: the settings name the keys, or a cordon
    proof: Proof
    until: Until
    is_relied_on: bool = False
    """Whether decisions rest on the mark. If such a mark does not stick (`core/losses.py`), the node goes no further;
    without any other mark, it goes on and the agent says so."""


def _annotations(proof: Proof, until: Until, *named: str, is_relied_on: bool = False) -> tuple[MarkRow, ...]:
    return tuple(MarkRow(Kind.ANNOTATION, key, proof, until, is_relied_on) for key in named)


MARKS: tuple[MarkRow, ...] = (
    MarkRow(Kind.CORDON, "", Proof.RECORD, Until.SERVICE, is_relied_on=True),
    # --pre-reboot-node-labels: a load balancer may wait for them before the drain
    MarkRow(Kind.LABEL, "", Proof.RECORD, Until.SERVICE, is_relied_on=True),
    MarkRow(Kind.LABEL, "", Proof.REPORT, Until.CLEANUP),  # --post-reboot-node-labels
    MarkRow(Kind.LABEL, keys.REBOOT_LABEL, Proof.KEY, Until.IDLE, is_relied_on=True),  # other agents select by it
    MarkRow(Kind.TAINT, keys.DEFAULT_TAINT_KEY, Proof.RECORD, Until.IDLE),  # or the key of --prefer-no-schedule-taint
    *_annotations(Proof.EARLIER_VALUE, Until.SERVICE, *PROTECTION),
    *_annotations(Proof.KEY, Until.SERVICE, keys.SET_ANNOTATIONS, is_relied_on=True),  # else nobody can give them back
    *_annotations(Proof.KEY, Until.IDLE, keys.PROGRESS, keys.SETTINGS, is_relied_on=True),
    *_annotations(
        Proof.KEY,
        Until.IDLE,
        keys.PHASE,
        keys.REASON,
        keys.SINCE,
        keys.NEED,
        keys.REFUSALS,
        keys.REFUSED,
        keys.WARNING,
        keys.FORECAST,
        keys.PREPARED,
        keys.MOVES,
        keys.MOVES_IN_ZONE,
        keys.READY_SINCE,
        keys.KNOWN_AT_THE_CLAIM,
    ),
    *_annotations(Proof.KEY, Until.CLEANUP, keys.LAST_REBOOT, keys.HISTORY, keys.LEARNED_QUERIES, keys.DRAIN_MEMORY),
    *_annotations(Proof.PERSON, Until.IDLE, keys.RETRY),
    *_annotations(Proof.PERSON, Until.MET, keys.REQUEST, keys.RECHECK),
    *_annotations(Proof.PERSON, Until.CLEANUP, keys.HOLD, keys.REBOOT_NOW),
    *_annotations(Proof.AUTHOR, Until.IDLE, keys.KURED_IN_PROGRESS),
    *_annotations(Proof.AUTHOR, Until.CLEANUP, keys.KURED_MOST_RECENT),
)

ANNOTATIONS = {mark.key: mark for mark in MARKS if mark.kind is Kind.ANNOTATION}
LABELS = frozenset(mark.key for mark in MARKS if mark.kind is Kind.LABEL and mark.key)


def is_relied_on(kind: Kind, key: str, *, at_the_cordon: bool) -> bool:
    """Whether decisions rest on this mark. The settings name the keys of other labels: those of the cordon's patch are
    set before the drain, all others afterwards."""
    if kind is Kind.LABEL and key not in LABELS:
        return at_the_cordon
    return any(mark.is_relied_on for mark in MARKS if mark.kind is kind and mark.key == key)


def gone_when_idle(policy: Policy) -> tuple[str, ...]:
    """The annotations that an idle Node does not have. If it has one, an earlier agent process left it behind."""
    return tuple(
        key
        for key, mark in ANNOTATIONS.items()
        if mark.until in (Until.SERVICE, Until.IDLE)
        and mark.proof is not Proof.EARLIER_VALUE  # given back, not removed
        and (mark.proof is not Proof.AUTHOR or is_kureds_key_ours(policy))
    )


def is_kureds_key_ours(policy: Policy | None, authors: tuple[str, ...] | None = None) -> bool:
    """Whether careen wrote an annotation with a key of kured's: by the field managers, or by the settings if the API
    server reports none."""
    return policy is not None and policy.annotate_nodes if authors is None else are_ours(authors)


def are_ours(authors: tuple[str, ...]) -> bool:
    """Whether these field managers are careen's agents and nobody else."""
    return bool(authors) and set(authors) <= {keys.FIELD_MANAGER, keys.TAINT_MANAGER}

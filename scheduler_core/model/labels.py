"""Label selectors, and node selector terms, which also have the operators Gt and Lt.

They differ if a requirement cannot be read: an unreadable label selector ends the pod's cycle with an error, an
unreadable expression of a node selector only makes its own term match nothing
(component-helpers/scheduling/corev1/nodeaffinity, v1.36).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, Protocol, TypeVar

from scheduler_core.values import Value

Labels = Mapping[str, str]
Answer = TypeVar("Answer")


class Requirement(Value):
    """One condition on one label: In, NotIn, Exists or DoesNotExist, in node selectors also Gt and Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Labels) -> bool:
        """An absent label meets NotIn and DoesNotExist."""
        return self.accepts(labels.get(self.key))

    def accepts(self, value: str | None) -> bool:
        """None: the label is absent."""
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case _:
                return self._compares(value)

    def _compares(self, value: str | None) -> bool:
        number, limit = parse_int64(value), parse_int64(self.values[0] if len(self.values) == 1 else None)
        if number is None or limit is None:
            return False
        return number > limit if self.operator == "Gt" else number < limit


def parse_int64(text: str | None) -> int | None:
    """As Go's ParseInt(text, 10, 64): a sign and decimal digits that fit 64 bits; None for any other text."""
    if text is None or not re.fullmatch(r"[+-]?[0-9]+", text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


class LabelSelector(Value):
    """All requirements must match. None selects nothing; an empty tuple selects everything.

    If the selector as written is invalid, `problem` says why. It selects nothing, and a plugin that uses it ends the
    pod's cycle with `problem` as the error, as the scheduler does.
    """

    requirements: tuple[Requirement, ...] | None
    problem: str = ""

    def matches(self, labels: Labels) -> bool:
        if self.requirements is None:
            return False
        return all(requirement.matches(labels) for requirement in self.requirements)

    @property
    def is_empty(self) -> bool:
        """No requirements: selects everything (Selector.Empty in Go)."""
        return self.requirements == ()

    def and_labels(self, labels: Iterable[tuple[str, str]]) -> LabelSelector:
        """Adds the requirement `key in (value)` for each pair. A selector that selects nothing does not change."""
        extra = tuple(Requirement(key, "In", (value,)) for key, value in labels)
        if self.requirements is None or not extra:
            return self
        return LabelSelector(self.requirements + extra, self.problem)


NOTHING: Final = LabelSelector(None)
EVERYTHING: Final = LabelSelector(())


def equality_selector(labels: Mapping[str, str]) -> LabelSelector:
    """Like `matchLabels`. The keys are sorted."""
    return LabelSelector(tuple(Requirement(key, "In", (value,)) for key, value in sorted(labels.items())))


class Answering(Protocol[Answer]):
    """Evaluates the requirements of a node selector: a bool for one node, or an array of bools for many."""

    def meeting(self, expression: Requirement) -> Answer:
        """Whether the labels meet the requirement."""
        ...

    def named(self, field: Requirement) -> Answer:
        """Whether metadata.name meets the requirement. Any other field counts as empty."""
        ...

    def all_of(self, answers: Iterable[Answer]) -> Answer: ...
    def any_of(self, answers: Iterable[Answer]) -> Answer: ...


class OneNode(Value):
    """Selectors read nothing else of a node."""

    labels: Labels
    name: str

    def meeting(self, expression: Requirement) -> bool:
        return expression.accepts(self.labels.get(expression.key))

    def named(self, field: Requirement) -> bool:
        return field.accepts(self.name if field.key == "metadata.name" else "")

    def all_of(self, answers: Iterable[bool]) -> bool:
        return all(answers)

    def any_of(self, answers: Iterable[bool]) -> bool:
        return any(answers)


class NodeSelectorTerm(Value, kw_only=True):
    """Expressions on labels, and on the field metadata.name. All must match.

    An empty term selects no node. If a term cannot be read, `problem` says why, and it selects no node.
    """

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()
    problem: str = ""

    @property
    def is_empty(self) -> bool:
        return not self.expressions and not self.fields

    def matches(self, labels: Labels, node_name: str) -> bool:
        return self.chosen(OneNode(labels, node_name))

    def chosen(self, nodes: Answering[Answer]) -> Answer:
        if self.is_empty or self.problem:
            return nodes.any_of(())
        return nodes.all_of(chain(map(nodes.meeting, self.expressions), map(nodes.named, self.fields)))


class NodeSelector(Value):
    """At least one term must match. Without terms, nothing matches."""

    terms: tuple[NodeSelectorTerm, ...]

    def matches(self, labels: Labels, node_name: str) -> bool:
        return self.chosen(OneNode(labels, node_name))

    def chosen(self, nodes: Answering[Answer]) -> Answer:
        return nodes.any_of(term.chosen(nodes) for term in self.terms)


def chosen(nodes: Answering[Answer], node_selector: Iterable[tuple[str, str]], required: NodeSelector | None) -> Answer:
    """Both the pod's nodeSelector and its required node affinity must match."""
    equal = (nodes.meeting(Requirement(key, "In", (value,))) for key, value in node_selector)
    return nodes.all_of(chain(equal, (each.chosen(nodes) for each in (required,) if each is not None)))


class PreferredNodeTerm(Value):
    """A matching node gets `weight` more points in the score."""

    weight: int
    term: NodeSelectorTerm


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAffinityRules:
    """`required=None`: nothing is required. A selector without terms: no node matches."""

    required: NodeSelector | None = None
    preferred: tuple[PreferredNodeTerm, ...] = field(default=())


# ---- keys and values that the API accepts; an expression with others cannot be read ----

_NAME_PART: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_DNS_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def is_label_key(text: str) -> bool:
    """An optional DNS prefix (≤ 253) with a slash, then a name (≤ 63)."""
    prefix, slash, name = text.rpartition("/")
    if slash and not (0 < len(prefix) <= 253 and _DNS_SUBDOMAIN.fullmatch(prefix)):
        return False
    return "/" not in name and len(name) <= 63 and _NAME_PART.fullmatch(name) is not None


def is_label_value(text: str) -> bool:
    """Empty, or at most 63 characters in the form of a name."""
    return text == "" or (len(text) <= 63 and _NAME_PART.fullmatch(text) is not None)

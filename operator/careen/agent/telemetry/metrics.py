"""The metrics of one agent, with the node's phases and reason codes as labels.

Each agent exports only its own node. `kured_reboot_required` keeps kured's name, because alerts and dashboards use
it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.process_collector import ProcessCollector

from careen.core.decision import Refusal
from careen.core.facts.memory import EvictAnswer, Losses, RebootOutcome
from careen.core.facts.observation import Need, NeedAnswer, SelfTest
from careen.core.facts.phases import Phase
from careen.core.facts.times import from_rfc3339

_GOES_ON = re.compile(
    r"(# (HELP|TYPE) )?(process_cpu_seconds_total|process_resident_memory_bytes|process_virtual_memory_bytes|"
    r"process_open_fds|careen_need_unknown|careen_asleep|careen_api_requests_total)[ {]"
)
_HELP = re.compile(r"# HELP (\S+) (.*)")


class Metrics:
    """All metrics of one agent."""

    def __init__(self, node: str) -> None:
        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._node = node
        self._registry = registry
        self._required = Gauge(
            "kured_reboot_required", "OS requires reboot due to software updates.", ["node"], registry=registry
        )
        self._need_since = Gauge(
            "careen_need_since_seconds",
            "Since when the host has asked for a reboot, as the Node's record says (unix time).",
            ["node"],
            registry=registry,
        )
        self._need_unknown = Gauge(
            "careen_need_unknown",
            "1 while it is unknown whether the host needs a reboot.",
            ["node"],
            registry=registry,
        )
        self._phase = Gauge(
            "careen_phase", "1 for the present phase of the node.", ["node", "phase"], registry=registry
        )
        self._phase_since = Gauge(
            "careen_phase_since_seconds",
            "Since when the node is in its phase (unix time): from the Node's annotation if it has one, otherwise "
            "since this process first saw the phase.",
            ["node"],
            registry=registry,
        )
        self._refused = Gauge(
            "careen_refused",
            "1 for each gate that refuses the reboot now.",
            ["node", "gate", "code"],
            registry=registry,
        )
        self._refused_longest = Gauge(
            "careen_refused_longest_seconds",
            "How many seconds a blocking pod may forbid the reboot before an alert fires: the field `longest` of an "
            "entry of --blocking-pods.",
            ["node", "gate", "code"],
            registry=registry,
        )
        self._refused_since = Gauge(
            "careen_refused_since_seconds",
            "Since when each gate has refused the reboot (unix time).",
            ["node", "gate", "code"],
            registry=registry,
        )
        self.turns = Counter(
            "careen_turns",
            "Turns by outcome: done, stopped (an action failed or its result is unknown), broken (a bug).",
            ["node", "end"],
            registry=registry,
        )
        self.broken_turns = Gauge(
            "careen_broken_turns",
            "How many turns in a row failed with an exception (a bug); 0 while turns succeed.",
            ["node"],
            registry=registry,
        )
        self.turn_seconds = Histogram(
            "careen_turn_seconds",
            "How long a turn took.",
            ["node"],
            buckets=(0.01, 0.1, 1, 5, 15, 60, 300),
            registry=registry,
        )
        self.last_turn = Gauge(
            "careen_last_turn_seconds",
            "When the last turn ended (unix time).",
            ["node"],
            registry=registry,
        )
        self.requests = Counter(
            "careen_api_requests",
            'Requests to the API server, by method and status; the status is "lost" if no answer came.',
            ["node", "method", "status"],
            registry=registry,
        )
        self.evictions = Counter(
            "careen_evictions", "Eviction requests, by answer.", ["node", "answer"], registry=registry
        )
        self.reboots_asked = Counter(
            "careen_reboots_asked", "Reboot requests to the host, by outcome.", ["node", "outcome"], registry=registry
        )
        self.reasons = Counter(
            "careen_changes_of_mind",
            "How often the reason of the node's state changed to this code.",
            ["node", "code"],
            registry=registry,
        )
        self.forecasts = Counter(
            "careen_forecasts", "Forecasts by result: made, unknown.", ["node", "result"], registry=registry
        )
        self.forecast_seconds = Histogram(
            "careen_forecast_seconds",
            "How long a forecast took.",
            ["node"],
            buckets=(0.5, 1, 2, 5, 10, 30, 60),
            registry=registry,
        )
        self.forecast_overdue = Gauge(
            "careen_forecast_overdue",
            "1 while the forecast has refused the reboot for longer than --forecast-patience.",
            ["node"],
            registry=registry,
        )
        self.forecast_pods = Counter(
            "careen_forecast_pods",
            "Evicted pods by result: hit if the replacement runs on one of the nodes in the forecast, miss if it runs "
            "on another node, superseded if the pod has no replacement or the replacement's node is missing from a "
            "shortened forecast. With sampled=true, kube-scheduler examined only a part of the nodes, and 95 of 100 "
            "such pods should be hits.",
            ["node", "result", "sampled"],
            registry=registry,
        )
        self.forecast_first = Counter(
            "careen_forecast_first",
            "The hits and misses of careen_forecast_pods by a stricter rule: hit only if the replacement runs on the "
            "first node in the forecast, otherwise miss.",
            ["node", "result", "sampled"],
            registry=registry,
        )
        self.messages = Counter(
            "careen_messages",
            "Messages to people, by service and result: sent, failed.",
            ["node", "service", "result"],
            registry=registry,
        )
        self._config_ok = Gauge(
            "careen_config_ok",
            "0 while the ConfigMap cannot be used or was deleted (the last good settings stay in force), or while this "
            "agent may use another lock than the other agents.",
            ["node"],
            registry=registry,
        )
        self._single = Gauge(
            "careen_only_agent",
            "1 while this process holds the file lock that allows only one agent on the host, 0 while another process "
            "holds this file lock, -1 if the host has no such file lock.",
            ["node"],
            registry=registry,
        )
        self._asleep = Gauge(
            "careen_asleep",
            "1 while the agent sleeps: it has nothing to do, and a small program looks whether that changes.",
            ["node"],
            registry=registry,
        )
        self._asleep.labels(node).set(0)
        self.missing_rights = Gauge(
            "careen_missing_rights", "How many rights the agent lacks.", ["node"], registry=registry
        )
        self._overdue = Gauge(
            "careen_overdue_holder_timestamp_seconds",
            "Since when a node that holds a claim has been overdue, according to the lock (unix time).",
            ["node", "holder"],
            registry=registry,
        )
        self._not_kept = Gauge(
            "careen_write_not_kept",
            "How often in a row the agent wrote this on the Node or into the lock, and it did not stay there, because "
            "admission altered the write or another client took it back.",
            ["node", "what"],
            registry=registry,
        )
        self._self_test_problems = Gauge(
            "careen_self_test_problems",
            "How many problems would prevent a reboot: problems with the sentinel or the boot id when the agent "
            "started, and problems that the last self-test found.",
            ["node"],
            registry=registry,
        )
        self._shutdown_unheard = Gauge(
            "careen_shutdown_unheard",
            "1 while systemd-logind has a shutdown inhibitor that the signal method would bypass, such as the kubelet.",
            ["node"],
            registry=registry,
        )
        self._problems_besides = 0
        self._shown_phase: Phase | None = None
        self._begin_at_zero()

    def _begin_at_zero(self) -> None:
        """Creates the series of rare counters at 0: Prometheus shows no increase for a series that begins at 1."""
        for answer in EvictAnswer:
            self.evictions.labels(self._node, answer.value)
        for outcome in (RebootOutcome.ACCEPTED, RebootOutcome.FAILED, RebootOutcome.UNCLEAR):
            self.reboots_asked.labels(self._node, outcome.value)
        for end in ("done", "stopped", "broken"):
            self.turns.labels(self._node, end)
        for result in ("made", "unknown"):
            self.forecasts.labels(self._node, result)
        for sampled in ("false", "true"):
            for result in ("hit", "miss"):
                self.forecast_first.labels(self._node, result, sampled)
            for result in ("hit", "miss", "superseded"):
                self.forecast_pods.labels(self._node, result, sampled)

    def show_receivers(self, services: Iterable[str]) -> None:
        """Creates the series of messages for these services, at 0."""
        for service in services:
            for result in ("sent", "failed"):
                self.messages.labels(self._node, service, result)

    def show_need(self, need: Need) -> None:
        """While the need is unknown, `kured_reboot_required`, which is only yes or no, keeps its value."""
        if need.answer is not NeedAnswer.UNKNOWN:
            self._required.labels(self._node).set(need.answer is NeedAnswer.YES)
        self._need_unknown.labels(self._node).set(need.answer is NeedAnswer.UNKNOWN)

    def show_need_since(self, since: float | None) -> None:
        """Since when the host has needed a reboot, according to the record; None removes the series."""
        self._need_since.clear()
        if since is not None:
            self._need_since.labels(self._node).set(since)

    def show_phase(self, phase: Phase, *, at: float, recorded: float | None = None) -> None:
        """The phase, and when it began: `recorded`, which survives a restart of the agent, or else `at` of the first
        call with this phase. Both in seconds since 1970."""
        if phase is not self._shown_phase:
            for each in Phase:
                self._phase.labels(self._node, each.value).set(each is phase)
            self._phase_since.labels(self._node).set(at)
            self._shown_phase = phase
        if recorded is not None:
            self._phase_since.labels(self._node).set(recorded)

    def show_refusals(self, refusals: Iterable[Refusal]) -> None:
        """The gates that refuse now, and no others."""
        self._refused.clear()
        self._refused_since.clear()
        self._refused_longest.clear()
        for refusal in refusals:
            labels = (self._node, refusal.gate, refusal.code.value)
            if refusal.longest_seconds:
                self._refused_longest.labels(*labels).set(refusal.longest_seconds)
            if refusal.since is not None:
                self._refused_since.labels(*labels).set(refusal.since.timestamp())
            self._refused.labels(*labels).set(1)

    def show_overdue(self, holders: Iterable[tuple[str, str]]) -> None:
        """The overdue holders and since when (RFC 3339), and no others."""
        self._overdue.clear()
        for holder, since in holders:
            if (at := from_rfc3339(since)) is not None:
                self._overdue.labels(self._node, holder).set(at.timestamp())

    def show_losses(self, losses: Losses) -> None:
        """The marks that do not stick now, and no others."""
        self._not_kept.clear()
        for what, loss in losses.marks.items():
            if loss.times > loss.is_reverted:
                self._not_kept.labels(self._node, what).set(loss.times)

    def show_config(self, *, ok: bool) -> None:
        """Whether the agent uses the ConfigMap's current settings."""
        self._config_ok.labels(self._node).set(ok)

    def show_self_test(self, test: SelfTest, *, besides: int | None = None) -> None:
        """How many problems would prevent a reboot: the self-test's plus `besides`, those found at the start (None: as
        in the last call)."""
        self._problems_besides = self._problems_besides if besides is None else besides
        self._self_test_problems.labels(self._node).set(self._problems_besides + bool(test.obstacle))
        self._shutdown_unheard.labels(self._node).set(bool(test.warning))

    def show_only_agent(self, value: int) -> None:
        """1: this process is the host's only agent; 0: it is not; -1: unknown, the host offers no file lock."""
        self._single.labels(self._node).set(value)

    def handed_over(self) -> dict[str, Any]:
        """For the sleeper: the text without the families that it goes on with, and the counters of the requests."""
        lines = self.exposition().decode().splitlines()
        kept = [line for line in lines if not _GOES_ON.match(line)]
        helps = {found[1]: found[2] for line in lines if (found := _HELP.match(line))}
        requests = {
            f"{sample.labels['method']} {sample.labels['status']}": sample.value
            for family in self.requests.collect()
            for sample in family.samples
            if sample.name.endswith("_total")
        }
        return {"metrics": "\n".join(kept), "helps": helps, "requests": requests, "counters": self._counters()}

    def _counters(self) -> list[tuple[str, dict[str, str], float]]:
        return [
            (sample.name, sample.labels, sample.value)
            for counter in self._all_counters()
            for family in counter.collect()
            for sample in family.samples
        ]

    def restore(self, counters: object, requests: object) -> None:
        """Continues the counters of the agent that fell asleep. What cannot be used is left out."""
        known = {family.name: each for each in self._all_counters() for family in each.collect()}
        for row in counters if isinstance(counters, list) else []:
            match row:
                case [str(name), dict(labels), float() | int() as value]:
                    self._continue(known, name, labels, float(value))
        for key, value in requests.items() if isinstance(requests, dict) else ():
            method, _, status = str(key).partition(" ")
            if isinstance(value, (int, float)) and value >= 0:
                self.requests.labels(self._node, method, status).inc(value)

    def _continue(
        self, known: Mapping[str, Counter | Histogram], name: str, labels: dict[str, str], value: float
    ) -> None:
        family, _, part = name.rpartition("_")
        counter = known.get(family)
        bound = labels.pop("le", "")
        if counter is None or counter is self.requests or value < 0 or not {*labels} <= {*counter._labelnames}:
            return
        child = counter.labels(**labels)
        if part == "created":
            child._created = value
        elif isinstance(child, Counter) and part == "total":
            child.inc(value)
        elif isinstance(child, Histogram) and part == "sum":
            child._sum.inc(value)
        elif isinstance(child, Histogram) and part == "bucket":
            # The text's buckets are cumulative.
            for index, upper in enumerate(child._upper_bounds):
                if float(bound) == upper:
                    child._buckets[index].inc(value - sum(each.get() for each in child._buckets[:index]))

    def _all_counters(self) -> list[Counter | Histogram]:
        return [each for each in vars(self).values() if isinstance(each, (Counter, Histogram))]

    def exposition(self) -> bytes:
        """What Prometheus scrapes."""
        return generate_latest(self._registry)

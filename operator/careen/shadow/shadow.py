"""`Shadow` keeps a copy of a cluster, and computes at each binding the node that scheduler_core expects.

A binding is compared one second after it was seen: until then another may show that the two were decided in another
order. If several orders are possible and lead to different nodes, the outcome is unknown.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from datetime import datetime
from typing import Final

from careen.core.facts.times import rfc3339
from careen.shadow.comparison import compare, compared
from careen.shadow.other_pods import OtherPods
from careen.shadow.outcomes import Agreement, AgreementReason, Compared, outcome_of
from careen.shadow.pod_events import PodNews, read_news
from careen.shadow.possible_states import CLOSE_SECONDS, RecentChanges, ScheduledPod, note_order
from careen.shadow.tally import RunCounts
from scheduler_core.cache.cluster_cache import ClusterCache
from scheduler_core.cycle import Scheduler
from scheduler_core.learning.search_estimate import MOST_UNSEEN, SearchEstimate
from scheduler_core.model.pod import Pod
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import replace_value

MOST_WAITING: Final = 200
"""Bindings that may wait for their comparison. Further ones are counted but not compared."""
_FEW_WAITING: Final = 20
_FEW_SEARCHES: Final = 200  # a comparison costs in proportion to them


class Shadow:
    """Compares each binding with the expected node. Receives each event before and after `cache` applies it, and counts
    in `tally`."""

    def __init__(
        self,
        cache: ClusterCache,
        scheduler: Scheduler,
        *,
        profiles: Collection[str],
        monotonic: Callable[[], float],
        now: Callable[[], datetime],
    ) -> None:
        """Pods with a schedulerName in `profiles` are compared; `scheduler` must have a profile for each."""
        self.tally = RunCounts()
        self.estimate: SearchEstimate | None = None
        """Where the scheduler's next search starts; None until the first binding, and after a gap in the watch."""
        self._cache = cache
        self._scheduler = scheduler
        self._profiles = profiles
        self._monotonic = monotonic
        self._now = now
        self._turns: dict[str, int] = {}
        self._refused: set[str] = set()
        self._turn = 0
        self._landed: deque[ScheduledPod] = deque()
        self._changes = RecentChanges()
        self._others = OtherPods(monotonic())
        self._is_following = False
        self._news: PodNews | None = None
        self._held: Pod | None = None
        self._before: Snapshot | None = None

    # ---- what the feed says ----

    def before_list(self, kind: str) -> None:
        """A list of pods forgets the bindings that still wait: it does not show in which order pods were bound."""
        if kind == "Pod":
            if self._is_following:
                self.tally.gaps += 1
            self._landed.clear()
            self._turns.clear()
            self._refused.clear()
            self._is_following, self.estimate = True, None

    def before(self, kind: str, line: bytes) -> None:
        """Keeps a snapshot of the cluster before the event if a comparison may need it."""
        self._news = read_news(line) if kind == "Pod" else None
        self._held = self._cache.find_pod(self._news.key) if self._news else None
        self._before = self._cache.snapshot() if self._is_of_interest(kind) else None

    def after(self, kind: str, *, has_changed: bool) -> None:
        """After the event has changed the cluster."""
        news, before = self._news, self._before
        if kind == "Pod" and news is not None:
            self._follow(news, has_changed=has_changed)
        elif has_changed and before is not None:
            self._changes.note(self._turn, self._monotonic(), before)
        self._news = self._held = self._before = None

    def _is_of_interest(self, kind: str) -> bool:
        """Whether a comparison may need the state before this event. Most events of pods need no snapshot."""
        news, held = self._news, self._held
        if kind != "Pod":
            return True
        if news is None or held is None:
            return False
        is_bound = bool(news.node) and not held.node_name
        is_newly_refused = news.is_refused and news.key not in self._refused
        return is_bound or is_newly_refused or (news.is_leaving and not held.terminating)

    # ---- one pod ----

    def _follow(self, news: PodNews, *, has_changed: bool) -> None:
        held, before = self._held, self._before
        if news.is_leaving:
            self._turns.pop(news.key, None)
            self._refused.discard(news.key)
            if before is not None and has_changed and held is not None and held.node_name:
                self._changes.note(self._turn, self._monotonic(), before)
                if news.is_deleted:
                    self._others.leaves(held, before, self._monotonic())
            return
        if news.is_mirror:
            return
        if held is None or held.uid != news.uid:
            if has_changed:
                self._came(news)
        elif before is None or held.node_name:
            return
        elif news.node and has_changed:
            self._refused.discard(news.key)
            self._land(held, news, before)
        elif news.is_refused and news.key not in self._refused:  # a condition is nothing that scheduling reads
            self._refused.add(news.key)
            self._land(held, news, before)

    def _came(self, news: PodNews) -> None:
        self._refused.discard(news.key)
        if news.node:
            self._count(news, AgreementReason.FIRST_SEEN_BOUND)
            self._went_by(news)
            return
        self._turn += 1
        self._turns[news.key] = self._turn

    def _land(self, held: Pod, news: PodNews, before: Snapshot) -> None:
        landed = ScheduledPod(
            pod=held,
            node=news.node,
            before=before,
            turn=self._turns.get(news.key, 0),
            seen_at=self._monotonic(),
            at=rfc3339(self._now()),
        )
        if news.node:
            self._turns.pop(news.key, None)
        reason = self._why_not(landed)
        if reason is not None:
            self._count(news, reason)
            self._went_by(news)
        else:
            landed.earlier = self._changes.before(landed)
            note_order(landed, self._landed)
            self._landed.append(landed)
        if news.node:
            self._changes.bound(held, news.node)
            if news.scheduler in self._scheduler.runners:
                self._others.bound(held, self._monotonic())

    def _went_by(self, news: PodNews) -> None:
        """A binding that cannot be compared still moves the start, which all profiles of the scheduler share."""
        if not news.node or news.scheduler not in self._scheduler.runners:
            return
        if self._landed:
            self._landed[-1].followed_by += 1  # the estimate learns of it after the bindings that still wait
        else:
            self._learn_of_unseen()

    def _learn_of_unseen(self) -> None:
        if self.estimate is not None:
            self.estimate = self.estimate.after_unknown_binding(self._cache.snapshot())

    def _why_not(self, landed: ScheduledPod) -> AgreementReason | None:
        if landed.pod.spec.scheduler_name not in self._profiles:
            return AgreementReason.OTHER_SCHEDULER
        if self._scheduler.configuration.extenders:
            return AgreementReason.EXTENDERS
        if landed.node and landed.node not in landed.before.columns.row_of:
            return AgreementReason.UNKNOWN_NODE
        if any(pod.nominated_node_name and pod.key != landed.pod.key for pod in landed.before.pending):
            return AgreementReason.NOMINATED
        if len(self._landed) >= MOST_WAITING:
            self.estimate = None  # a search went by unseen
            return AgreementReason.BEHIND
        return None

    def _count(self, news: PodNews, reason: AgreementReason) -> None:
        self.tally.add(
            Compared(pod=news.key, profile=news.scheduler, at=rfc3339(self._now()), reason=reason, node=news.node)
        )

    @property
    def learnt(self) -> SearchEstimate | None:
        """What was learned about the next search's start, for a forecast; None if nothing."""
        if self.estimate is None or not self.estimate.followed:
            return None
        return replace_value(self.estimate, others=self._others.per_second(self._monotonic()))

    # ---- comparisons ----

    @property
    def waiting(self) -> int:
        """How many bindings have not been compared yet."""
        return len(self._landed)

    def compare(self, *, at_last: bool = False) -> bool:
        """Compares the pod that was decided first, if it was seen `CLOSE_SECONDS` ago or `at_last` is true. Returns
        whether it compared one."""
        if not self._landed:
            return False
        landed = self._decided_first()
        if not at_last and self._monotonic() - landed.seen_at < CLOSE_SECONDS:
            return False
        self._landed.remove(landed)
        self.tally.add(self._compared(landed))
        for _ in range(min(landed.followed_by, MOST_UNSEEN)):
            self._learn_of_unseen()
        return True

    def _decided_first(self) -> ScheduledPod:
        """The pod that was bound first, or one bound shortly afterwards. The order matters: each search starts where
        the last one ended."""
        oldest = self._landed[0]
        earlier = [each for each in self._landed if each in oldest.decided_before]
        return min((oldest, *earlier), key=lambda each: each.turn)

    def _compared(self, landed: ScheduledPod) -> Compared:
        estimate = self._estimate_for(landed)
        expected = estimate.expect(landed.before, self._scheduler, landed.pod)
        given = compare(expected, landed.node)
        reason = given.reason
        for doubt, state in landed.other_states():
            other = compare(estimate.expect(state, self._scheduler, landed.pod), landed.node)
            if doubt is AgreementReason.ORDER and landed.turn:  # the order of the first list's pods is unknown
                expected = other.expected
            if outcome_of(other.reason) is not outcome_of(reason) and Agreement.CANNOT_SAY is not outcome_of(reason):
                reason = doubt
        if estimate.followed:
            self.estimate = estimate.after_binding(expected, landed.node) if landed.node else estimate
        return compared(given, landed.before, self._scheduler, landed.pod, landed.node, at=landed.at, reason=reason)

    def _estimate_for(self, landed: ScheduledPod) -> SearchEstimate:
        """What is known about the search's start.

        Learning from the first binding takes many simulated searches. While many bindings wait, it does not begin, and
        every node is equally likely.
        """
        if self.estimate is not None and len(self.estimate.followed) <= _FEW_SEARCHES:
            return self.estimate
        if len(self._landed) > _FEW_WAITING:
            self.estimate = None
            return SearchEstimate()
        return self.estimate or SearchEstimate.unknown(landed.before, self._scheduler)

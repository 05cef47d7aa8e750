"""Scales raw scores to 0 … 100, as kube-scheduler's helper does (plugins/helper/normalize_score.go, v1.36)."""

from __future__ import annotations

import numpy as np

from scheduler_core.framework.extension_points import MAX_NODE_SCORE, Scores


def normalize_to_hundred(scores: Scores, *, reverse: bool = False) -> Scores:
    """Returns each score as a percentage of the highest score, rounded toward zero. If `reverse` is true, a score of p
    percent becomes 100 − p.

    If no score is above 0, the scores stay the same if `reverse` is false, and become 100 if `reverse` is true.
    """
    highest = int(np.maximum.reduce(scores, initial=0))
    if highest == 0:
        return np.full_like(scores, MAX_NODE_SCORE) if reverse else scores
    parts: Scores = truncated_division(scores * MAX_NODE_SCORE, highest)
    return MAX_NODE_SCORE - parts if reverse else parts


def truncated_division(dividend: Scores, divisor: int) -> Scores:
    """Divides integers and rounds toward zero, as Go does. The division of numpy would round down."""
    quotient: Scores = (
        np.sign(dividend) * (np.abs(dividend) // divisor)
        if np.minimum.reduce(dividend, initial=0) < 0
        else dividend // divisor
    )
    return quotient

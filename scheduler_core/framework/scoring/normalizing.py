"""Raw scores to 0 … 100, as in plugins/helper/normalize_score.go, v1.36."""

from __future__ import annotations

import numpy as np

from scheduler_core.framework.extension_points import MAX_NODE_SCORE, Scores


def normalize_to_hundred(scores: Scores, *, reverse: bool = False) -> Scores:
    """Percentages of the highest score, rounded toward zero; p becomes 100 − p if `reverse`.

    If no score is above 0, scores stay the same, or become 100 if `reverse`.
    """
    highest = int(np.maximum.reduce(scores, initial=0))
    if highest == 0:
        return np.full_like(scores, MAX_NODE_SCORE) if reverse else scores
    parts: Scores = truncated_division(scores * MAX_NODE_SCORE, highest)
    return MAX_NODE_SCORE - parts if reverse else parts


def truncated_division(dividend: Scores, divisor: int) -> Scores:
    """Rounds toward zero, as Go does; numpy would round down."""
    quotient: Scores = (
        np.sign(dividend) * (np.abs(dividend) // divisor)
        if np.minimum.reduce(dividend, initial=0) < 0
        else dividend // divisor
    )
    return quotient

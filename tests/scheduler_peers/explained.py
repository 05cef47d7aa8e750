"""Why a story did not pass, where that is shorter than what the test said."""

from __future__ import annotations

import re
from typing import Final

from tests.scheduler_peers.outcomes import Story

_REASONS: Final = (("^plugins in Go", "plugins in Go"),)
"""A pattern of what the test said, and the reason."""


def explained(story: Story) -> str:
    """The reason; else what the test said."""
    return next((reason for pattern, reason in _REASONS if re.search(pattern, story.why)), story.why)

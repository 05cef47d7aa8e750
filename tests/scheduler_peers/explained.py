"""Why a story failed, where the reason is known."""

from __future__ import annotations

import re
from typing import Final

from tests.scheduler_peers.outcomes import Story

_REASONS: Final[tuple[tuple[str, str], ...]] = ()
"""A pattern of `package name gates`, and the reason."""


def explained(story: Story) -> str:
    """The reason; else what the test said."""
    about = f"{story.package} {story.name} {story.gates}"
    return next((reason for pattern, reason in _REASONS if re.search(pattern, about)), story.why)

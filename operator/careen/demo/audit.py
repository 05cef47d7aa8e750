"""One line per request that reached the embedded API server: who asked what, when, and what came of it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord:
    """A request as the server saw it; `at` and `seconds` by the store's clock, `code` 0 when no answer was sent."""

    at: float
    user: str
    agent: str
    verb: str
    resource: str
    subresource: str
    namespace: str
    name: str
    code: int
    seconds: float
    dry_run: bool = False
    fault: str = ""

    def as_line(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

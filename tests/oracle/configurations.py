"""Reads many configurations with the real scheduler and with scheduler_core."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from tests.oracle.casegen.draw import Draw
from tests.oracle.casegen.strange import POINTS, strange_configuration


def configurations(seed: int, count: int) -> list[dict[str, Any]]:
    """Returns `count` configurations, which depend only on the seed."""
    return [strange_configuration(Draw(f"{seed}:configuration:{number}")) for number in range(count)]


def read_by(oracle: str, written: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the oracle's result for each configuration: {"profiles": {NAME: {"points": …, "weights": …}}} with the
    plugins of each extension point and their weights, or {"error": …} if the scheduler would not start."""
    lines = "".join(json.dumps(one) + "\n" for one in written)
    ran = subprocess.run([oracle, "configurations"], input=lines.encode(), capture_output=True, check=True)
    return [json.loads(line) for line in ran.stdout.splitlines()]


def read_by_us(written: dict[str, Any]) -> dict[str, Any]:
    """Returns the result of scheduler_core for one configuration. The result has the form that `read_by` returns for
    each configuration."""
    from scheduler_core.config.configuration import Configuration
    from scheduler_core.config.fields import ConfigurationError
    from scheduler_core.cycle import Scheduler

    try:
        scheduler = Scheduler(Configuration.from_mapping(written))
    except ConfigurationError as trouble:
        return {"error": str(trouble)}
    found = {}
    for name, runner in scheduler.runners.items():
        points = {point: list(runner.plugins.by_point.get(point, ())) for point in POINTS if point != "multiPoint"}
        found[name] = {"points": points, "weights": dict(runner.plugins.weights)}
    return {"profiles": found}


def settled(answer: dict[str, Any]) -> dict[str, Any]:
    """Returns the result without the text of an error, because error texts differ."""
    if "error" in answer:
        return {"error": True}
    return answer

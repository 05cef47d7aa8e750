"""Measures by how much forecasts increase the memory of the agent: `python -m bench.forecast.resident NODE --dump FILE
| --kubeconfig FILE`.

The bench imports the modules that a resident agent imports for forecasts, and computes two forecasts, each in a child
process limited to 1 GiB. It prints as JSON its own resident memory before and after each forecast, and the largest
memory of a child.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import resource
import sys
from pathlib import Path

from careen.agent.forecast.forecaster import Limits, forecast_together

LIMITS = Limits(seconds=600, memory_bytes=2**30, scheduler_config="")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("node")
    parser.add_argument("--dump", default="")
    parser.add_argument("--kubeconfig", default="")
    given = parser.parse_args()
    resident = [_resident_mib()]
    for _ in range(2):
        answer = asyncio.run(forecast_together([given.node], LIMITS, kubeconfig=given.kubeconfig, dump=given.dump))
        if not isinstance(answer, tuple):
            sys.exit(f"no forecast was made: {answer.why}")
        resident.append(_resident_mib())
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(
        json.dumps(
            {
                "resident_mib": resident,
                "peak_of_children_mib": round(peak),
                "pods": len(answer[0].pods),
                "has_numpy": "numpy" in sys.modules,
            }
        )
    )


def _resident_mib() -> float:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return round(int(found[1]) / 1024, 1)


if __name__ == "__main__":
    main()

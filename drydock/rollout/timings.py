"""How long events take in the embedded cluster."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """In seconds: a tenth of a real cluster's, so that a person can watch a roll-out in a minute."""

    pod_start: float = 0.8
    # The factor on the delays of readiness probes.
    pace: float = 0.1
    pod_stop: float = 0.4
    # From the reboot command until the host is down. This time and the next one are a tenth of a fast machine's, so
    # that twelve nodes take less than a minute.
    shutdown: float = 0.2
    # From then until the host has a new boot id.
    boot: float = 1.2
    # From the new boot to a kubelet that reports it.
    kubelet_start: float = 0.2
    # How long a person holds a node, and cordons another one: long enough that an agent tries to start, short enough
    # not to delay the demo.
    hold: float = 8.0
    persons_cordon: float = 3.0
    # Each of the first five varies by this share, drawn from the seed.
    spread: float = 0.25

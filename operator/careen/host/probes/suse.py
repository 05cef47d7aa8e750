"""The flag of SUSE's package manager: a file that libzypp's boot plugin leaves until the boot."""

from __future__ import annotations

from careen.core.facts.observation import Need
from careen.host import sentinel
from careen.host.probes import HostFacts

FLAG = "/run/reboot-needed"


def look(host: HostFacts) -> Need:
    """Reads it like any other sentinel."""
    return sentinel.read_file(host.root, FLAG)

"""The probe `suse`: yes if the flag of libzypp's boot plugin exists. The plugin writes it, and the next boot removes
it."""

from __future__ import annotations

from careen.core.facts.observation import Need
from careen.host import sentinel
from careen.host.probes import HostFacts

FLAG = "/run/reboot-needed"
FILES = (FLAG,)


def look(host: HostFacts) -> Need:
    """The flag is like a sentinel file."""
    return sentinel.read_file(host.root, FLAG)

"""The probe `uptime`: yes if the host has run for longer than --reboot-max-uptime."""

from __future__ import annotations

from careen.core.facts.observation import Need
from careen.host.probes import HostFacts
from careen.host.probes.said import no, yes

_DAY_SECONDS = 86400.0


def look(host: HostFacts) -> Need:
    """The uptime includes the time in sleep."""
    days, most = host.uptime_seconds / _DAY_SECONDS, host.longest_uptime_seconds / _DAY_SECONDS
    if host.uptime_seconds < host.longest_uptime_seconds:
        return no(f"the host has run for less than {most:.1f} days (--reboot-max-uptime)")
    return yes(f"the host has run for {days:.1f} days, and --reboot-max-uptime is {most:.1f} days")

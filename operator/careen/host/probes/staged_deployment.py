"""The probe `staged-deployment`: yes if bootc or rpm-ostree has staged a deployment for the next boot. It looks at the
path of ostree's `ostree-finalize-staged.path` and at that of bootc's composefs backend."""

from __future__ import annotations

from careen.core.facts.observation import Need
from careen.host.paths import under_root
from careen.host.probes import HostFacts
from careen.host.probes.said import no, unknown, yes

BOOTED = "/run/ostree-booted"
STAGED = "/run/ostree/staged-deployment"
LOCKED = "/run/ostree/staged-deployment-locked"
COMPOSEFS = "/run/composefs"
COMPOSEFS_STAGED = "/run/composefs/staged-deployment"
FILES = (BOOTED, STAGED, LOCKED, COMPOSEFS, COMPOSEFS_STAGED)


def look(host: HostFacts) -> Need:
    """Unknown on a host that did not boot a deployment, because it never has these files."""
    try:
        if _is_there(host, STAGED) and _is_there(host, LOCKED):
            return no(f"an OS deployment is staged ({STAGED}) but locked, so a reboot would not start this deployment")
        staged = next((path for path in (STAGED, COMPOSEFS_STAGED) if _is_there(host, path)), "")
        if staged:
            return yes(f"an OS deployment is staged for the next boot ({staged})")
        if _is_there(host, BOOTED) or _is_there(host, COMPOSEFS):
            return no("no OS deployment is staged")
    except OSError as error:
        return unknown(f"the agent cannot look for a staged OS deployment: {error}")
    return unknown(
        f"it is unknown whether an OS deployment is staged: the host has no {BOOTED}, so ostree did not boot the host"
    )


def _is_there(host: HostFacts, path: str) -> bool:
    try:
        under_root(host.root, path).lstat()
    except FileNotFoundError:
        return False
    return True

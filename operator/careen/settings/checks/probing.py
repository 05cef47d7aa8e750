"""Probes that cannot work with the agent's access to its host. The agent refuses to start, because the node would never
reboot."""

from __future__ import annotations

from careen.host.probes import PROBES, SENTINEL, HostAccess
from careen.settings.tree import Settings


def contradictions(settings: Settings) -> list[str]:
    """One sentence for each problem."""
    return [*_without_a_source(settings), *_beside_the_probes(settings), *_out_of_reach(settings), *_proof(settings)]


def _proof(settings: Settings) -> list[str]:
    if settings.reboot_proof != "soft-reboots" or settings.reboot_method == "command" or settings.host_exec == "direct":
        return []
    problem = (
        "--reboot-proof=soft-reboots runs `systemctl show` on the host, which --reboot-method=signal does not permit: "
        "use --reboot-method=command"
    )
    return [problem]


def _without_a_source(settings: Settings) -> list[str]:
    if not settings.reboot_probes:
        return [f"--reboot-probes is empty: name at least one of {', '.join(PROBES)}"]
    has_sentinel = settings.reboot_sentinel or settings.reboot_sentinel_command
    if SENTINEL in settings.reboot_probes and not has_sentinel:
        problem = (
            "neither --reboot-sentinel nor --reboot-sentinel-command is given, so the agent could not find out when a "
            "reboot is needed: give one of them"
        )
        return [problem]
    return []


def _beside_the_probes(settings: Settings) -> list[str]:
    """Settings without their probe, and probes without their setting."""
    found = []
    if ("uptime" in settings.reboot_probes) is not bool(settings.reboot_max_uptime):
        found.append("--reboot-max-uptime and the probe uptime of --reboot-probes belong together: give both")
    if settings.reboot_packages and not (SENTINEL in settings.reboot_probes and settings.reboot_sentinel):
        found.append(
            "--reboot-packages needs the files of --reboot-sentinel: a list of packages exists only beside such a file"
        )
    return found


def remarks(settings: Settings) -> list[str]:
    """On settings that are allowed but probably a mistake."""
    if not (settings.reboot_packages and settings.reboot_sentinel_command):
        return []
    return ["--reboot-packages has no effect with --reboot-sentinel-command, which replaces the sentinel files"]


def _out_of_reach(settings: Settings) -> list[str]:
    found = []
    for name in dict.fromkeys(settings.reboot_probes):
        reach = PROBES[name]
        if reach is HostAccess.NOTHING or settings.host_exec == "direct":
            continue
        use = "a command on the host" if reach is HostAccess.COMMAND else "files of the host"
        if settings.reboot_method == "signal":
            found.append(
                f"the probe {name} of --reboot-probes uses {use}, which --reboot-method=signal does not permit: use "
                "--reboot-method=command"
            )
        elif reach is HostAccess.FILES and not settings.host_root:
            found.append(
                f"the probe {name} of --reboot-probes reads files of the host, but --host-root does not say where the "
                "host's file system is mounted: give --host-root=/proc/1/root, as manifests/daemonset.yaml does"
            )
    return found

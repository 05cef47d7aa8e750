"""Commands that start an agent on a simulated host: careen from this repository, or any command with placeholders."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.cluster.harness.machines.control_plane import REPOSITORY, ControlPlane
from tests.cluster.harness.machines.hosts import AgentCommand, Host, Launch, in_own_namespaces
from tests.cluster.harness.machines.processes import free_port

CAREEN_PYTHONPATH = f"{REPOSITORY / 'operator'}{os.pathsep}{REPOSITORY}"


def clean_environment() -> dict[str, str]:
    """Return an environment without KUBECONFIG, CAREEN_… and KURED_…, so that no setting of the caller reaches an
    agent.
    """
    return {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LANG": "C.UTF-8"}


def careen(
    plane: ControlPlane,
    *,
    namespace: str,
    daemonset: str,
    flags: Callable[[Host], Sequence[str]],
    settings: Mapping[str, str] | None = None,
) -> AgentCommand:
    """Return a command that runs `careen agent` with a kubeconfig for each host. The function `flags` returns
    additional arguments for a host, and `settings` are environment variables.
    """

    def launch(host: Host, token: str) -> Launch:
        kubeconfig = plane.kubeconfig(
            f"agents/{host.name}{host.alias}", token, namespace=namespace, server=host.api_server or None
        )
        argv = (
            *(sys.executable, "-m", "careen", "agent", "--node-id", host.name, "--kubeconfig", str(kubeconfig)),
            *("--host-root", str(host.root), "--boot-id-file", str(host.boot_id_file), "--host-exec", "direct"),
            *("--reboot-command", str(host.reboot_command)),
            *("--ds-namespace", namespace, "--ds-name", daemonset, "--metrics-host", "127.0.0.1"),
            *("--metrics-port", str(host.metrics_port())),
            *flags(host),
        )
        env = {
            **clean_environment(),
            "PYTHONPATH": CAREEN_PYTHONPATH,
            "POD_NAME": host.agent_pod_name,
            **(settings or {}),
        }
        return Launch(argv=argv, env=env)

    return launch


def by_template(plane: ControlPlane, template: str, *, namespace: str, daemonset: str) -> AgentCommand:
    """Return a command for any agent that finds the API server in the same way as in a pod. `template` may contain
    these placeholders in braces:

    node, root (the host's `/`), sentinel, boot_id_file, reboot_command, kubeconfig, namespace, daemonset, port (a free
    port).
    """

    def launch(host: Host, token: str) -> Launch:
        secrets = host.folder / "serviceaccount"
        secrets.mkdir(exist_ok=True)
        (secrets / "token").write_text(token)
        (secrets / "ca.crt").write_bytes(plane.certificate_authority.read_bytes())
        (secrets / "namespace").write_text(namespace)
        words = {
            "node": host.name,
            "root": str(host.root),
            "sentinel": str(host.sentinel),
            "boot_id_file": str(host.boot_id_file),
            "reboot_command": str(host.reboot_command),
            "kubeconfig": str(plane.kubeconfig(f"agents/{host.name}", token, namespace=namespace)),
            "namespace": namespace,
            "daemonset": daemonset,
            "port": str(free_port()),
        }
        argv = tuple(word.format(**words) for word in shlex.split(template))
        env = {
            **clean_environment(),
            "PYTHONPATH": CAREEN_PYTHONPATH,
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(plane.port),
        }
        return Launch(argv=in_own_namespaces(argv, secrets), env=env)

    return launch


def careen_template(python: Path = Path(sys.executable)) -> str:
    """Return the template for `by_template` that starts the agent of this repository with default settings."""
    return (
        f"{shlex.quote(str(python))} -m careen agent --node-id {{node}} --kubeconfig {{kubeconfig}} "
        f"--host-root {{root}} "
        "--boot-id-file {boot_id_file} --host-exec direct --reboot-command {reboot_command} "
        "--ds-namespace {namespace} --ds-name {daemonset} --metrics-host 127.0.0.1 --metrics-port {port}"
    )

"""Fixtures for the tests of commands: an embedded API server in a thread, and a helper that runs commands in this
process.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kubernetes.client
import pytest
from click.testing import CliRunner, Result

from careen.cli import cli
from careen.core.facts import keys
from careen.core.lock.content import LockContent
from careen.core.lock.notation import parse, render
from drydock.server.testing import RunningServer, server_in_thread

# The full client, so that a command which runs in this process does not leave the lean client to other tests.
assert kubernetes.client.CoreV1Api


@dataclass
class Desk:
    """Runs commands against the embedded API server, as a person at a terminal does, and reads the objects of this
    server."""

    server: RunningServer
    kubeconfig: Path

    def run(self, *arguments: str, stdin: str = "") -> Result:
        """Run a command with the path of the kubeconfig in KUBECONFIG. Return the command's exit code and output."""
        return CliRunner().invoke(cli, list(arguments), env={"KUBECONFIG": str(self.kubeconfig)}, input=stdin)

    def ok(self, *arguments: str, stdin: str = "") -> str:
        """Run a command that must succeed, and return its output."""
        result = self.run(*arguments, stdin=stdin)
        assert result.exit_code == 0, result.output
        return result.output

    def json(self, *arguments: str) -> Any:
        """Run a command with the option `--output json`. The command must succeed. Return the parsed output."""
        return json.loads(self.ok(*arguments, "--output", "json"))

    def node(self, name: str, phase: str = "", **more: Any) -> None:
        """Create a Node whose annotations say that it is in this phase. `more` may set the reason of the phase, its
        start time (`since`), the reboot label, the refusals, the progress record, a hold, and other annotations."""
        annotations: dict[str, str] = dict(more.pop("annotations", {}))
        if phase:
            annotations |= {
                keys.PHASE: phase,
                keys.SINCE: more.pop("since", "2026-03-04T12:00:00Z"),
                keys.REASON: more.pop("reason", ""),
            }
        for name_of, key in (("refusals", keys.REFUSALS), ("progress", keys.PROGRESS)):
            if name_of in more:
                annotations[key] = json.dumps(more.pop(name_of))
        if "hold" in more:
            annotations[keys.HOLD] = more.pop("hold")
        labels = {keys.REBOOT_LABEL: more.pop("label")} if "label" in more else {}
        assert not more, more
        self.server.seed(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "annotations": annotations, "labels": labels},
                "status": {"conditions": [{"type": "Ready", "status": "True"}]},
            }
        )

    def lock(
        self,
        content: LockContent | str | None = None,
        *,
        namespace: str = "careen",
        name: str = "careen",
        flags: Sequence[str] = (),
        agents: int = 3,
    ) -> None:
        """Create careen's DaemonSet with this lock in an annotation, these flags of the agent, and this number of
        agents in the status."""
        text = render(content) if isinstance(content, LockContent) else content
        labels = {"name": "careen"}
        self.server.seed(
            {
                "apiVersion": "apps/v1",
                "kind": "DaemonSet",
                "metadata": {
                    "name": name,
                    "namespace": namespace,
                    "annotations": {} if text is None else {keys.LOCK_ANNOTATION: text},
                },
                "spec": {
                    "selector": {"matchLabels": labels},
                    "template": {
                        "metadata": {"labels": labels},
                        "spec": {"containers": [{"name": "agent", "image": "careen", "args": ["agent", *flags]}]},
                    },
                },
                "status": {"desiredNumberScheduled": agents},
            }
        )

    def agent_on(self, node: str, *, ready: bool = True) -> None:
        """Create the pod of careen's agent on this Node."""
        self.server.seed(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": f"careen-{node}",
                    "namespace": "careen",
                    "ownerReferences": [
                        {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "careen", "uid": "u", "controller": True}
                    ],
                },
                "spec": {"nodeName": node, "containers": [{"name": "agent", "image": "careen"}]},
                "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": str(ready)}]},
            }
        )

    def lock_text(self) -> str | None:
        """Return the text of the lock annotation, or None if the DaemonSet has no such annotation."""
        daemonset = self.server.get("daemonsets", "careen", "careen")
        assert daemonset is not None
        text: str | None = daemonset["metadata"].get("annotations", {}).get(keys.LOCK_ANNOTATION)
        return text

    def lock_content(self) -> LockContent:
        content = parse(self.lock_text())
        assert isinstance(content, LockContent)
        return content

    def annotations(self, node: str) -> dict[str, str]:
        found = self.server.get("nodes", node)
        assert found is not None
        return dict(found["metadata"].get("annotations", {}))

    def writes(self) -> int:
        """Return the number of write requests that the API server has received."""
        return sum(1 for request in self.server.api.requests if request.verb not in ("get", "list", "watch"))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with server_in_thread() as server:
        yield Desk(server, server.write_kubeconfig(tmp_path / "kubeconfig"))

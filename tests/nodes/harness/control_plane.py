"""The control plane for real kubelets: etcd, API server, scheduler and controller manager, on the machines' bridge."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import urllib3

from tests.cluster.harness.api import Api, ApiError
from tests.cluster.harness.audit_log import AUDIT_RULES
from tests.nodes.harness.paths import CONTROL_PLANE

ADDRESS = "10.77.0.1"
# The service `kubernetes`: the bridge has this address too, so that no kube-proxy is needed.
SERVICE_ADDRESS = "10.96.0.1"
_AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        *AUDIT_RULES,
        {"level": "None", "verbs": ["get", "list", "watch"], "userGroups": ["system:nodes"]},
        {"level": "Metadata"},
    ],
}


class ControlPlane:
    """A control plane that runs until `close`. Each kubelet in `nodes` may join with the token `NAME-token`."""

    def __init__(self, folder: Path, nodes: Sequence[str]) -> None:
        self.folder = folder
        self.server = f"https://{ADDRESS}:443"
        self.certificate_authority = folder / "ca.crt"
        self.audit_log = folder / "audit.log"
        self._programs: dict[str, subprocess.Popen[bytes]] = {}
        folder.mkdir(parents=True)
        self._certificates()
        self._users(nodes)
        (folder / "audit.json").write_text(json.dumps(_AUDIT))
        self._start("etcd", "--data-dir", folder / "etcd", "--unsafe-no-fsync", "--log-level", "error")
        self._start("apiserver", *self._api_server_flags())
        self.admin = self.client()
        self._wait_until_ready()
        self._start(
            "scheduler", "--kubeconfig", folder / "scheduler.kubeconfig", "--leader-elect=false", "--secure-port=0"
        )
        self._start(
            "kcm",
            *("--kubeconfig", folder / "controllers.kubeconfig", "--leader-elect=false", "--secure-port=0"),
            *("--service-account-private-key-file", folder / "accounts.key", "--root-ca-file", folder / "ca.crt"),
        )

    def client(self) -> Api:
        return Api(self.server, "admin-token", self.certificate_authority)

    def check(self) -> None:
        """Raise an error if a program of the control plane has ended."""
        for name, program in self._programs.items():
            if program.poll() is not None:
                tail = (self.folder / f"{name}.log").read_text(errors="replace")[-3000:]
                raise RuntimeError(f"{name} ended with {program.returncode}:\n{tail}")

    def close(self) -> None:
        for program in reversed(self._programs.values()):
            program.kill()
            program.wait()

    def kubeconfig(self, user: str, certificate_authority: str) -> str:
        """Return a kubeconfig of the user as JSON, which is also valid YAML."""
        return json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "lab",
                "clusters": [
                    {"name": "lab", "cluster": {"server": self.server, "certificate-authority": certificate_authority}}
                ],
                "users": [{"name": user, "user": {"token": f"{user}-token"}}],
                "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": user}}],
            }
        )

    # -- starting

    def _start(self, program: str, *flags: str | Path) -> None:
        with (self.folder / f"{program}.log").open("ab") as log:
            self._programs[program] = subprocess.Popen(
                [CONTROL_PLANE, program, *map(str, flags)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
            )

    def _api_server_flags(self) -> list[str]:
        folder = self.folder
        return [
            *("--etcd-servers=http://127.0.0.1:2379", "--secure-port=443", "--bind-address=0.0.0.0"),
            *(f"--advertise-address={ADDRESS}", f"--cert-dir={folder}", "--profiling=false"),
            *(f"--tls-cert-file={folder}/api.crt", f"--tls-private-key-file={folder}/api.key"),
            *(
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--service-account-key-file={folder}/accounts.key",
            ),
            *(f"--service-account-signing-key-file={folder}/accounts.key", f"--token-auth-file={folder}/tokens.csv"),
            *(
                "--authorization-mode=Node,RBAC",
                "--enable-admission-plugins=NodeRestriction",
                "--allow-privileged=true",
            ),
            *("--service-cluster-ip-range=10.96.0.0/16", "--kubelet-preferred-address-types=InternalIP"),
            *(f"--kubelet-client-certificate={folder}/kubelets.crt", f"--kubelet-client-key={folder}/kubelets.key"),
            *(f"--audit-policy-file={folder}/audit.json", f"--audit-log-path={self.audit_log}"),
            "--audit-log-maxsize=100000",  # megabytes; a rotated log would lack what the journal needs
        ]

    def _wait_until_ready(self) -> None:
        while True:
            self.check()
            try:
                self.admin.text("/readyz")
            except (ApiError, urllib3.exceptions.HTTPError):
                time.sleep(0.2)
            else:
                return

    # -- identities

    def _users(self, nodes: Sequence[str]) -> None:
        groups = {"admin": "system:masters", "controllers": "system:masters", "scheduler": ""}
        rows = [f"{user}-token,{user},{user},{group}" for user, group in groups.items()]
        rows[2] = "scheduler-token,system:kube-scheduler,scheduler"
        rows += [f"{name}-token,system:node:{name},{name},system:nodes" for name in nodes]
        (self.folder / "tokens.csv").write_text("\n".join(rows) + "\n")
        for user in groups:
            (self.folder / f"{user}.kubeconfig").write_text(self.kubeconfig(user, str(self.certificate_authority)))

    def _certificates(self) -> None:
        self._openssl("genrsa", "-out", "accounts.key", "2048")
        self._openssl(
            *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.crt"),
            *("-days", "30", "-subj", "/CN=lab"),
        )
        served = f"IP:{ADDRESS},IP:{SERVICE_ADDRESS},IP:127.0.0.1,DNS:kubernetes.default.svc"
        self._certificate("api", "/CN=kube-apiserver", served)
        self._certificate("kubelets", "/O=system:masters/CN=kube-apiserver", "DNS:none")

    def _certificate(self, name: str, subject: str, names: str) -> None:
        (self.folder / "extensions").write_text(f"subjectAltName={names}\n")
        self._openssl(
            *("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", subject)
        )
        self._openssl(
            *("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial"),
            *("-days", "30", "-extfile", "extensions", "-out", f"{name}.crt"),
        )

    def _openssl(self, *words: str) -> None:
        subprocess.run(["openssl", *words], cwd=self.folder, capture_output=True, check=True)

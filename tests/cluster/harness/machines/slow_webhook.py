"""A validating webhook for evictions: slow like a policy engine during a drain, or one that refuses like KubeVirt's."""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.cluster.harness.api import Api, Object
from tests.cluster.harness.workloads import SHOP

_PATH = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
_NAME = "slow-evictions"


class SlowWebhook:
    """A webhook that runs from its construction until `close`. It delays each eviction and each dry run of an eviction
    in the namespace shop by `seconds`. `refuses` gets the request of the review and returns why the webhook denies it
    (status 429); "" allows it.
    """

    def __init__(
        self, admin: Api, folder: Path, seconds: float, *, refuses: Callable[[Object], str] = lambda _request: ""
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.seconds = seconds
        self.refuses = refuses
        self.asked = 0
        self._admin = admin
        certificate, key = _certificate(folder)
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._http.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._http.socket = context.wrap_socket(self._http.socket, server_side=True)
        threading.Thread(target=self._http.serve_forever, name="webhook", daemon=True).start()
        admin.create(_PATH, self._configuration(certificate))

    def close(self) -> None:
        self._admin.delete(f"{_PATH}/{_NAME}")
        self._http.shutdown()
        self._http.server_close()

    def _configuration(self, certificate: Path) -> Object:
        url = f"https://127.0.0.1:{self._http.server_address[1]}/"
        rule = {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["pods/eviction"],
            "scope": "Namespaced",
        }
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": _NAME},
            "webhooks": [
                {
                    "name": "slow.tests.careen.dev",
                    "admissionReviewVersions": ["v1"],
                    "sideEffects": "None",
                    "timeoutSeconds": 30,
                    "failurePolicy": "Fail",
                    "rules": [rule],
                    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": SHOP}},
                    "clientConfig": {"url": url, "caBundle": base64.b64encode(certificate.read_bytes()).decode()},
                }
            ],
        }


def _certificate(folder: Path) -> tuple[Path, Path]:
    certificate, key = folder / "webhook.crt", folder / "webhook.key"
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=127.0.0.1",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-keyout",
            str(key),
            "-out",
            str(certificate),
        ],
        check=True,
        capture_output=True,
    )
    return certificate, key


def _handler_of(webhook: SlowWebhook) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            webhook.asked += 1
            time.sleep(webhook.seconds)
            why = webhook.refuses(review["request"])
            denied = {"status": {"code": 429, "reason": "TooManyRequests", "message": why}} if why else {}
            body = json.dumps(
                {
                    "apiVersion": "admission.k8s.io/v1",
                    "kind": "AdmissionReview",
                    "response": {"uid": review["request"]["uid"], "allowed": not why, **denied},
                }
            ).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

        def handle(self) -> None:
            try:
                super().handle()
            except OSError:  # the server gave up waiting
                return

    return Handler

"""Writes a kubeconfig for the embedded API server."""

from __future__ import annotations

from pathlib import Path

import yaml


def write_kubeconfig(path: Path, url: str, *, user: str = "admin", namespace: str = "default", token: str = "") -> Path:
    """Writes the file and returns its path. By default the token is the user's name."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "careen-demo",
        "preferences": {},
        "clusters": [{"name": "careen-demo", "cluster": {"server": url}}],
        "users": [{"name": user, "user": {"token": token or user}}],
        "contexts": [
            {"name": "careen-demo", "context": {"cluster": "careen-demo", "user": user, "namespace": namespace}}
        ],
    }
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    path.chmod(0o600)
    return path

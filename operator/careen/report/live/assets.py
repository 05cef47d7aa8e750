"""The files of the live page, which its server sends as they are: markup, style sheet and script."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).parent


def _read(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


ASSETS = {
    "/": ("text/html; charset=utf-8", _read("live.html")),
    "/live.css": ("text/css; charset=utf-8", _read("live.css")),
    "/icon.svg": ("image/svg+xml", _read("icon.svg")),
    "/live.js": ("text/javascript; charset=utf-8", _read("live.js")),
}
"""Each path's content type and text."""

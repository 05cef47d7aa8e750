"""What the page's server lets in, and the headers under which a browser shows its answers. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address

HEADERS = {
    # Files of this server only: no inline script, no inline style, no form, no frame, no image from elsewhere.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
        "trusted-types 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    # A shared computer keeps no copy. The page's script sends If-None-Match by itself.
    "Cache-Control": "no-store",
}

_CROSS_SITE = frozenset({"cross-site", "same-site"})


def is_loopback(host: str) -> bool:
    """Whether the name or address, perhaps in brackets, can only mean this computer."""
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if bare.lower().rstrip(".") == "localhost":
        return True
    try:
        return ip_address(bare).is_loopback
    except ValueError:
        return False


def refusal(headers: Mapping[str, str | None]) -> str:
    """Why a request with these headers gets no answer; "" if it gets one.

    A page of another site can make a browser ask this server: by a name that resolves to 127.0.0.1 (DNS rebinding),
    which Host then has, or by the address itself, which Sec-Fetch-Site and Origin tell.
    """
    host = _without_port(headers.get("Host") or "")
    if not is_loopback(host):
        return "careen serve answers only to localhost, 127.0.0.1 and [::1]: open the page by one of these names"
    origin = headers.get("Origin")
    if origin is not None and origin.partition("://")[2] != headers.get("Host"):
        return "careen serve does not answer pages of other sites"
    is_visit = (headers.get("Sec-Fetch-Mode") or "") == "navigate"  # a link in a chat may lead here
    if (headers.get("Sec-Fetch-Site") or "") in _CROSS_SITE and not is_visit:
        return "careen serve does not answer pages of other sites"
    return ""


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host.partition("]")[0] + "]" if "]" in host else host
    return host.partition(":")[0]

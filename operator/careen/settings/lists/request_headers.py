"""One value of `--prometheus-headers` or `--alertmanager-headers`: a header of each request to that server."""

from __future__ import annotations

import re

from careen.services.wire.asking import RequestHeader

TENANTS = ("x-scope-orgid", "thanos-tenant", "x-grafana-org-id", "accountid", "projectid")
"""Headers that name a tenant, which is no secret: of Mimir and Cortex, Thanos, Grafana, VictoriaMetrics."""

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_LONGEST = 1000
_OTHER_SETTINGS = ("authorization", "proxy-authorization")
# They say where a request goes, where it ends, and what careen understands.
_OF_THE_CLIENT = re.compile(
    "(host|connection|content-.*|transfer-encoding|te|trailer|upgrade|expect|accept.*|range|if-.*|cookie)"
)


def header(text: str) -> RequestHeader:
    """`NAME: VALUE`, or `NAME: @/FILE` with the value in a file. Raises ValueError."""
    name, colon, value = (part.strip() for part in text.partition(":"))
    if not colon or not _NAME.fullmatch(name) or not value:
        raise ValueError("expected a header such as `X-Scope-OrgID: team-a`, or `X-Api-Key: @/FILE` for a secret")
    if name.lower() in _OTHER_SETTINGS:
        raise ValueError(f"the header {name} has settings of its own, for a token and for a user name")
    if _OF_THE_CLIENT.fullmatch(name.lower()):
        raise ValueError(f"the agent itself sets the header {name}")
    if value.startswith("@"):
        if not value.startswith("@/"):
            raise ValueError("expected the absolute path of a file after @")
        return RequestHeader(name, file=value[1:])
    if not value.isascii() or not value.isprintable() or len(value) > _LONGEST:
        raise ValueError(f"expected at most {_LONGEST} printable ASCII characters as the value of the header {name}")
    return RequestHeader(name, value)


def written(each: RequestHeader) -> str:
    """As `header` reads it."""
    return f"{each.name}: {f'@{each.file}' if each.file else each.value}"


def may_be_secret(each: RequestHeader) -> bool:
    """Anything but a tenant as plain text."""
    return bool(each.file) or each.name.lower() not in TENANTS

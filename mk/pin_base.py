"""Asks the registry for the digest behind the base image's tag, and writes it into the Dockerfile: `make pin-base`.

Needs only the standard library. If it cannot find the digest, it exits with 1 and a message and leaves the Dockerfile
alone.
"""

from __future__ import annotations

import json
import re
import sys
import urllib.error
import urllib.parse
import urllib.request
from http.client import HTTPResponse
from pathlib import Path

_LINE = re.compile(r"^ARG BASE=([\w.-]+(?::\d+)?)/([\w./-]+):([\w.-]+)(?:@sha256:[0-9a-f]{64})?$", re.MULTILINE)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
# The index of all platforms first: the digest of one platform's image would be of no use on the others.
_ACCEPT = "application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.list.v2+json"
_SECONDS = 30


class CannotPin(Exception):
    """The digest cannot be found. The message says why, and what to do."""


def main(dockerfile: Path) -> int:
    """Writes `ARG BASE=registry/name:tag@digest` into the Dockerfile."""
    text = dockerfile.read_text()
    found = _LINE.search(text)
    if found is None:
        sys.stderr.write(f"pin-base: {dockerfile} has no line ARG BASE=REGISTRY/NAME:TAG\n")
        return 1
    registry, name, tag = found.groups()
    try:
        pinned = f"{registry}/{name}:{tag}@{digest(registry, name, tag)}"
    except CannotPin as error:
        sys.stderr.write(f"pin-base: {error}\n")
        return 1
    dockerfile.write_text(f"{text[: found.start()]}ARG BASE={pinned}{text[found.end() :]}")
    sys.stdout.write(f"{dockerfile}: {pinned}\n")
    return 0


def digest(registry: str, name: str, tag: str) -> str:
    """The tag's digest as the registry has it now. Raises `CannotPin`."""
    host = "registry-1.docker.io" if registry == "docker.io" else registry
    scheme = "http" if re.match(r"(localhost|127\.0\.0\.1)(:|$)", host) else "https"
    url = f"{scheme}://{host}/v2/{name}/manifests/{tag}"
    try:
        try:
            answer = _asked(url, {"Accept": _ACCEPT}, method="HEAD")
        except urllib.error.HTTPError as error:
            if error.code != 401:
                raise
            token = _token(error.headers.get("WWW-Authenticate", ""))
            answer = _asked(url, {"Accept": _ACCEPT, "Authorization": f"Bearer {token}"}, method="HEAD")
    except (OSError, ValueError, KeyError) as error:  # HTTPError and URLError are OSErrors
        raise CannotPin(
            f"the registry {host} gives no digest for {name}:{tag} ({error}); the Dockerfile stays as it is. Run this "
            "on a machine that can reach the registry, or write ARG BASE=…@sha256:… yourself"
        ) from error
    found = answer.headers.get("Docker-Content-Digest", "")
    if not _DIGEST.fullmatch(found):
        raise CannotPin(f"the registry {host} answers without a digest for {name}:{tag}; the Dockerfile stays as it is")
    return found


def _token(challenge: str) -> str:
    """A token for an anonymous client: the registry needs one even for public images."""
    asked = dict(re.findall(r'(\w+)="([^"]*)"', challenge))
    query = urllib.parse.urlencode({key: asked[key] for key in ("service", "scope") if key in asked})
    said = json.loads(_asked(f"{asked['realm']}?{query}", {}).read())
    return str(said.get("token") or said["access_token"])


def _asked(url: str, headers: dict[str, str], *, method: str = "GET") -> HTTPResponse:
    if not url.startswith(("https://", "http://")):
        raise ValueError("the registry sent an address that begins neither with https:// nor with http://")
    request = urllib.request.Request(url, headers=headers, method=method)  # noqa: S310 - looked at above
    answer: HTTPResponse = urllib.request.urlopen(request, timeout=_SECONDS)  # noqa: S310 - the same
    return answer


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

"""A small client of the Kubernetes API for tests. It sends and receives JSON. Each client sends its requests as one
user.

The client deliberately shares no code with careen, so that the tests cannot repeat a mistake of the agents.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3

Object = dict[str, Any]

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"


class ApiError(Exception):
    """Raised if the status of the server's response is not a success. `status` is the HTTP status, and `body` is the
    Status object.
    """

    def __init__(self, status: int, body: Object) -> None:
        super().__init__(f"{status} {body.get('reason', '')}: {body.get('message', body)}")
        self.status = status
        self.body = body


class Api:
    """A client of the API server at `server`. The client sends `token` and `headers` with every request."""

    def __init__(
        self, server: str, token: str, certificate_authority: Path, headers: Mapping[str, str] | None = None
    ) -> None:
        self._server = server
        self._pool = urllib3.PoolManager(
            ca_certs=str(certificate_authority),
            headers={"Authorization": f"Bearer {token}", "User-Agent": "careen-cluster-tests", **(headers or {})},
            retries=False,
            maxsize=8,
            timeout=urllib3.Timeout(connect=5, read=30),
        )

    def close(self) -> None:
        self._pool.clear()

    def get(self, path: str, **query: str) -> Object:
        return self._ask("GET", path, query)

    def find(self, path: str) -> Object | None:
        """Return the object, or None if it does not exist."""
        try:
            return self.get(path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def list(self, path: str, **query: str) -> list[Object]:
        items: list[Object] = self.get(path, **query)["items"]
        return items

    def create(self, path: str, body: Object) -> Object:
        return self._ask("POST", path, {}, body)

    def replace(self, path: str, body: Object) -> Object:
        return self._ask("PUT", path, {}, body)

    def patch(self, path: str, body: Any, content_type: str = MERGE) -> Object:
        return self._ask("PATCH", path, {}, body, content_type)

    def delete(self, path: str, body: Object | None = None, **query: str) -> Object | None:
        """Delete the object. Return the API server's response, or None if the object did not exist."""
        try:
            return self._ask("DELETE", path, query, body)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def watch(self, path: str, resource_version: str, seconds: int = 300) -> Iterator[Object]:
        """Yield watch events until the server ends the watch. A broken connection raises urllib3's HTTPError."""
        query = urlencode(
            {
                "watch": "1",
                "resourceVersion": resource_version,
                "allowWatchBookmarks": "true",
                "timeoutSeconds": seconds,
            }
        )
        response = self._pool.request(
            "GET",
            f"{self._server}{path}?{query}",
            preload_content=False,
            timeout=urllib3.Timeout(connect=5, read=seconds + 10),
        )
        try:
            if response.status != 200:
                raise ApiError(response.status, json.loads(response.read()))
            rest = b""
            for chunk in response.stream(1 << 16):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from (json.loads(line) for line in lines if line)
        finally:
            response.close()
            response.release_conn()

    def text(self, path: str) -> str:
        response = self._pool.request("GET", self._server + path, timeout=urllib3.Timeout(connect=2, read=5))
        if response.status != 200:
            raise ApiError(response.status, {"message": response.data.decode(errors="replace")})
        return response.data.decode()

    def _ask(
        self, method: str, path: str, query: Mapping[str, str], body: Any = None, content_type: str = "application/json"
    ) -> Object:
        response = self._pool.request(
            method,
            self._server + path + ("?" + urlencode(query) if query else ""),
            body=None if body is None else json.dumps(body),
            headers={**self._pool.headers, "Content-Type": content_type},
        )
        answer: Object = json.loads(response.data)
        if response.status >= 300:
            raise ApiError(response.status, answer)
        return answer

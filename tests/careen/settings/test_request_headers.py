"""Tests the headers of requests to Prometheus and Alertmanager in the settings, and what the ConfigMap may set."""

from __future__ import annotations

import pytest

from careen.services.wire.asking import RequestHeader
from careen.settings.lists.request_headers import header, written
from careen.settings.sources import BadSettings, resolve


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("X-Scope-OrgID: team-a", RequestHeader("X-Scope-OrgID", "team-a")),
        ("THANOS-TENANT:a: b,c", RequestHeader("THANOS-TENANT", "a: b,c")),
        ("X-Api-Key: @/etc/key", RequestHeader("X-Api-Key", file="/etc/key")),
    ],
)
def test_a_header_is_read_and_written(text: str, found: RequestHeader) -> None:
    assert header(text) == found
    assert header(written(found)) == found


@pytest.mark.parametrize(
    "text",
    [
        "X-Scope-OrgID",
        "X-Scope-OrgID:",
        ": a",
        "X Scope: a",
        "X-Key: @relative",
        "X-Key: ü",
        "X-Key: a\x00b",
        "Authorization: Bearer x",
        "Host: other",
        "content-length: 5",
        "Transfer-Encoding: chunked",
        "Cookie: a=b",
        f"X: {'a' * 1001}",
    ],
)
def test_a_text_that_is_no_header_or_belongs_to_the_client_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|the header"):
        header(text)


def settle(config_map: dict[str, object], **flags: list[str]) -> object:
    flags = {
        "node_id": ["n1"],
        **({} if "prometheus-url" in config_map else {"prometheus_url": ["https://p"]}),
        **flags,
    }
    return resolve(flags=flags, environment={}, config_map=config_map, config_map_name="x").settings


def test_the_config_map_may_set_a_tenant_and_no_other_header() -> None:
    settings = settle({"prometheus-headers": ["X-Scope-OrgID: a", "THANOS-TENANT: b"]})
    assert settings.prometheus_headers == (RequestHeader("X-Scope-OrgID", "a"), RequestHeader("THANOS-TENANT", "b"))  # type: ignore[attr-defined]
    with pytest.raises(BadSettings, match="only the tenant of a request may be set there"):
        settle({"prometheus-headers": ["X-Scope-OrgID: a", "Metadata-Flavor: Google"]})
    with pytest.raises(BadSettings, match="--config-map-may-name-files"):
        settle({"prometheus-headers": ["X-Scope-OrgID: @/etc/shadow"]})


def test_the_config_map_may_not_choose_the_server_that_gets_a_header_of_the_daemonset() -> None:
    with pytest.raises(BadSettings, match="would send the secret in --prometheus-headers to the server"):
        settle({"prometheus-url": "https://thief"}, prometheus_headers=["X-Key: a"])
    assert settle({"prometheus-url": "https://q"}, prometheus_headers=["X-Scope-OrgID: a"])


@pytest.mark.parametrize("server", ["prometheus", "alertmanager"])
def test_headers_without_their_server_are_refused(server: str) -> None:
    with pytest.raises(BadSettings, match=f"--{server}-headers needs --{server}-url"):
        resolve(
            flags={"node_id": ["n1"], f"{server}_headers": ["X-Scope-OrgID: a"]},
            environment={},
            config_map=None,
            config_map_name="x",
        )

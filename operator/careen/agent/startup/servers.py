"""Builds the clients of Prometheus and Alertmanager from the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from careen.settings.tree import Settings

if TYPE_CHECKING:
    from careen.services.prometheus import AlertSource, Prometheus
    from careen.services.silences import Silences
    from careen.services.wire.asking import Access

_SILENCES_TIMEOUT_SECONDS = 2.5
"""Of a request that creates a silence. The reboot waits at most twice as long."""


def alert_source(settings: Settings) -> AlertSource | None:
    """Alerts from Prometheus, Alertmanager or both; None if neither is configured."""
    prometheus = metric_source(settings)
    sources: list[AlertSource] = []
    if prometheus is not None:
        sources.append(prometheus)
    if settings.alertmanager_url:
        from careen.services.alertmanager import Alertmanager  # most agents have none

        access = _alertmanager_access(settings)
        sources.append(
            Alertmanager(settings.alertmanager_url, timeout_seconds=settings.prometheus_timeout, access=access)
        )
    if len(sources) < 2:
        return sources[0] if sources else None
    from careen.services.alertmanager import Several

    return Several(sources)


def silences(settings: Settings) -> Silences:
    """Creates and ends the silences of this node's alerts."""
    from careen.services.silences import Silences  # few agents have one

    return Silences(
        settings.alertmanager_url,
        node=settings.node_id,
        cluster=settings.cluster_name,
        matchers=[each.of_node(settings.node_id) for each in settings.alertmanager_silence_matchers],
        timeout_seconds=_SILENCES_TIMEOUT_SECONDS,
        access=_alertmanager_access(settings),
    )


def _alertmanager_access(settings: Settings) -> Access:
    from careen.services.wire.asking import Access

    return Access(
        token_file=settings.alertmanager_token_file,
        headers=settings.alertmanager_headers,
        ca_file=settings.alertmanager_ca_file,
    )


def metric_source(settings: Settings) -> Prometheus | None:
    """None if no Prometheus is configured."""
    if not settings.prometheus_url:
        return None
    from careen.services.prometheus import Prometheus
    from careen.services.wire.asking import Access

    access = Access(
        token_file=settings.prometheus_token_file,
        headers=settings.prometheus_headers,
        username=settings.prometheus_username,
        password_file=settings.prometheus_password_file,
        ca_file=settings.prometheus_ca_file,
        certificate_file=settings.prometheus_client_certificate_file,
        key_file=settings.prometheus_client_key_file,
    )
    return Prometheus(settings.prometheus_url, timeout_seconds=settings.prometheus_timeout, access=access)

"""`careen why-pending POD`: why a pod has no node, what would give it one, and when it is tried next."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from urllib.parse import quote, urlsplit

import click
import msgspec

from careen.cli.explain import find_pod, from_cluster, from_dump
from careen.cli.support.options import (
    Connection,
    connection_options,
    dump_option,
    output_option,
    scheduler_config_option,
    show,
)
from careen.cli.support.screen import BadInput
from careen.report.explain_report import why_pending_text
from careen.scheduler import OUR_NAME
from careen.scheduler.settings import BY_DEFAULT
from careen.scheduler.why_pending import WhyPending, why_pending
from scheduler_core.config.configuration import Configuration
from scheduler_core.cycle import NoProfileError, Scheduler
from scheduler_core.model.pod import Pod

_SECONDS = 30.0


@click.command("why-pending")
@click.argument("pod", metavar="NAMESPACE/POD")
@click.option(
    "--scheduler",
    metavar="URL",
    help="Ask a running `careen scheduler --why-port`, such as http://127.0.0.1:8041; it also knows the queue.",
)
@dump_option
@scheduler_config_option()
@output_option
@connection_options
def why_pending_command(
    connection: Connection,
    *,
    pod: str,
    scheduler: str | None,
    dump: Path | None,
    scheduler_config: Path | None,
    output: str,
) -> None:
    """Show why a pod has no node: the nodes by the reason of their refusals, the smallest changes that would help, what
    preemption would evict, and which events make the scheduler try the pod again. The command changes nothing."""
    if scheduler:
        why = _asked(scheduler, pod if "/" in pod else f"default/{pod}")
    else:
        from careen.cli.support.scheduler_configuration import given_configuration

        given = given_configuration(scheduler_config)
        snapshot, version, clock = from_dump(dump) if dump else connection.ask(from_cluster)
        found = find_pod(snapshot, pod)
        configuration = _default_configuration(found) if given is None else given
        try:
            why = why_pending(Scheduler(configuration, version, clock=clock), snapshot, found, next_try=None)
        except NoProfileError as error:
            raise click.ClickException(
                f"{error}; give the configuration of the pod's scheduler with --scheduler-config FILE"
            ) from error
    show(output, text=lambda width: why_pending_text(why, width), value=lambda: msgspec.to_builtins(why))


def _default_configuration(pod: Pod) -> Configuration | None:
    """That of `careen scheduler` for its pods."""
    return Configuration.from_mapping(BY_DEFAULT) if pod.spec.scheduler_name == OUR_NAME else None


def _asked(url: str, pod: str) -> WhyPending:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or 80
    except ValueError:
        host, port = None, 0
    if not host or parts.scheme != "http":
        raise BadInput(f"--scheduler {url}: write it as http://HOST:PORT")
    connection = http.client.HTTPConnection(host, port, timeout=_SECONDS)
    try:
        connection.request("GET", f"/why-pending?pod={quote(pod, safe='/')}")
        answer = connection.getresponse()
        status, body = answer.status, answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise click.ClickException(f"the scheduler at {url} did not answer: {error}") from error
    finally:
        connection.close()
    try:
        if status == 200:
            return msgspec.json.decode(body, type=WhyPending)
        why = str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError) as error:
        raise click.ClickException(f"{url} is not the --why-port of careen's scheduler ({status})") from error
    if status == 404:
        raise BadInput(why)
    raise click.ClickException(why)

"""`careen agent`: reads the settings and runs the agent until SIGTERM."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from typing import Any, NoReturn

import click

from careen.agent.asleep.threads import keep_signals_in_main_thread
from careen.cli.support.agent_options import agent_options, given_flags
from careen.cli.support.screen import say
from careen.cluster.wire.lean_imports import load_lean_client, without_collections
from careen.settings.live import Invocation
from careen.settings.sources import BadSettings


@click.command(context_settings={"max_content_width": 120})
@agent_options
def agent(**values: Any) -> None:
    """Run the agent of one node; the DaemonSet starts this command.

    Each setting is a flag, an environment variable (CAREEN_PERIOD, or KURED_PERIOD for kured's settings) or a key of
    config.yaml in the ConfigMap. A flag overrides a variable, and a variable overrides the ConfigMap. Durations are
    written as in Go: 90s, 5m, 1h30m."""
    keep_signals_in_main_thread()
    load_lean_client()
    with without_collections():
        from careen.agent.startup.wiring import Agent
        from careen.cluster.wire.client import CannotReachCluster

    given = Invocation(flags=given_flags(values), environment=dict(os.environ))
    loop = asyncio.new_event_loop()
    try:
        bed = loop.run_until_complete(Agent(given).run())
    except BadSettings as error:
        for problem in error.problems:
            say(f"careen agent: {problem}", err=True)
        _leave(2)
    except CannotReachCluster as error:
        say(f"careen agent: {error}", err=True)
        _leave(2)
    if bed is not None:
        logging.shutdown()
        try:
            bed.lie_down()
        except OSError as error:
            say(f"careen agent: the agent cannot fall asleep and ends, so that another starts: {error}", err=True)
            _leave(1)
    _leave(0)


def _leave(code: int) -> NoReturn:
    """Ends at once: a normal exit would wait for each thread that waits for a server."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)

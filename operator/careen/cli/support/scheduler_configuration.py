"""The scheduler's configuration, from --scheduler-config or the agents' settings."""

from __future__ import annotations

from pathlib import Path

from careen.cli.support.agents_settings import Agents
from careen.cli.support.files import text_of
from careen.cli.support.screen import BadInput
from careen.settings import yaml_text
from scheduler_core.config.configuration import Configuration
from scheduler_core.config.fields import ConfigurationError


def given_configuration(path: Path | None) -> Configuration | None:
    """None without a file. Raises `BadInput` if it cannot be read or used."""
    if path is None:
        return None
    where = "--scheduler-config"
    return _configuration(text_of(path, where), f"{where} {path}", may_name_files=True)


def agents_configuration(agents: Agents) -> Configuration | None:
    """None if it is not known. Raises `BadInput` if it cannot be used."""
    where = "the scheduler configuration of the agents (give another configuration with --scheduler-config)"
    # It comes from the ConfigMap, so it must not name files of this computer.
    return _configuration(agents.scheduler_config, where, may_name_files=False)


def _configuration(text: str, where: str, *, may_name_files: bool) -> Configuration | None:
    if not text:
        return None
    try:
        return Configuration.from_mapping(yaml_text.load(text), may_name_files=may_name_files)
    except (ConfigurationError, yaml_text.BadYaml) as error:
        raise BadInput(f"{where}: {error}") from error

"""Reads what `--scheduler-config` refers to, and checks that it is a KubeSchedulerConfiguration.

An invalid text is a bad setting like any other. One that is too long or too deep, or has YAML aliases, cannot be
checked within one turn: the forecast's child does it, with its deadline and memory limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from scheduler_core.config.fields import ConfigurationError

_KEY_PREFIX = "configmap:"
_MOST_BYTES = 2**20  # as much as a ConfigMap can hold
_MOST_JUDGED = 64 * 1024  # characters; a megabyte of YAML would stop the resident agent for ten seconds
_MOST_TOKENS = 10_000  # half a second
_MOST_LEVELS = 40  # PyYAML's work for each token grows with the depth; a configuration has a dozen levels
_LONGEST_SENTENCE = 300


class Unusable(Exception):
    """The text is missing, or is not a KubeSchedulerConfiguration."""


def is_key(where: str) -> bool:
    """A key of the ConfigMap, not a file."""
    return where.startswith(_KEY_PREFIX)


def read(where: str, data: Mapping[str, str], config_map: str) -> str:
    """The text at `where`: a file, or a key of the ConfigMap's `data`; "" if `where` is empty. Raises `Unusable`, with
    the name `config_map`, if it is missing or empty."""
    if not where:
        return ""
    text = _of_key(where.removeprefix(_KEY_PREFIX), data, config_map) if is_key(where) else _of_file(where)
    if not text.strip():
        raise Unusable(
            f"{_file_or_key(where)} is empty: write a KubeSchedulerConfiguration there, or leave the setting out"
        )
    return text


def read_checked(where: str, data: Mapping[str, str], config_map: str, *, may_name_files: bool) -> str:
    """`read`, and raises `Unusable` too if the text is not a KubeSchedulerConfiguration, or contains file names without
    `may_name_files`."""
    text = read(where, data, config_map)
    if text and (why := _why_not(text, may_name_files=may_name_files)):
        raise Unusable(f"{_file_or_key(where)} is not a KubeSchedulerConfiguration: {why}")
    return text


def one_line(error: ConfigurationError) -> str:
    """The error, cut after 300 characters; with the switch --config-map-may-name-files if it is about a file name that
    the ConfigMap must not contain."""
    from scheduler_core.config.configuration import NO_FILE

    words = str(error)
    short = words[:_LONGEST_SENTENCE]
    if NO_FILE not in words:
        return short
    return f"{short} (or add --config-map-may-name-files to the DaemonSet, so that the ConfigMap may name files)"


def may_name_files(where: str, *, is_config_map_trusted: bool) -> bool:
    """Whether the configuration may name files, in the tlsConfig of an extender, which the agent opens as root.

    A file may. A key of the ConfigMap may only with --config-map-may-name-files, even if a flag of the DaemonSet names
    the key: every editor of the ConfigMap can change the text under it.
    """
    return is_config_map_trusted or not is_key(where)


def _file_or_key(where: str) -> str:
    return f"the key `{where.removeprefix(_KEY_PREFIX)}` of the ConfigMap" if is_key(where) else f"the file {where}"


def _of_key(key: str, data: Mapping[str, str], config_map: str) -> str:
    if key not in data:
        raise Unusable(
            f"ConfigMap {config_map} has no key `{key}`: add the key, or remove the setting --scheduler-config"
        )
    return data[key]


def _of_file(path: str) -> str:
    try:
        if not Path(path).is_file():
            # A pipe or a device may have no end.
            raise Unusable(f"the file {path} does not exist: mount the file, or name another file")
        with Path(path).open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise Unusable(f"the file {path} is longer than {_MOST_BYTES // 2**20} MiB: name another file")
        return content.decode("utf-8")
    except (OSError, ValueError) as error:
        raise Unusable(f"the file {path} cannot be read: {error}") from None


def _why_not(text: str, *, may_name_files: bool) -> str:
    """Empty if the text is one, or if this process cannot check it."""
    from scheduler_core.config.configuration import Configuration  # few agents are given one
    from scheduler_core.config.fields import ConfigurationError

    try:
        if not _is_soon_read(text):
            return ""
        Configuration.from_mapping(yaml.safe_load(text), may_name_files=may_name_files)
    except yaml.YAMLError as error:
        # The error's own message quotes the text, which may contain an extender's key.
        mark = getattr(error, "problem_mark", None)
        return f"the text is not YAML{f': line {mark.line + 1}, column {mark.column + 1}' if mark else ''}"
    except ConfigurationError as error:
        return one_line(error)
    except (ValueError, TypeError, ArithmeticError, AttributeError, LookupError, RecursionError) as error:
        return f"the text cannot be read: {type(error).__name__}"
    return ""


_OPENING = (
    yaml.FlowSequenceStartToken,
    yaml.FlowMappingStartToken,
    yaml.BlockSequenceStartToken,
    yaml.BlockMappingStartToken,
)
_CLOSING = (yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken, yaml.BlockEndToken)


def _is_soon_read(text: str) -> bool:
    """Small and simple enough to be parsed within one turn. Raises `yaml.YAMLError`."""
    levels = 0
    if len(text) > _MOST_JUDGED:
        return False
    for count, token in enumerate(yaml.scan(text)):
        levels += isinstance(token, _OPENING) - isinstance(token, _CLOSING)
        if count > _MOST_TOKENS or levels > _MOST_LEVELS or isinstance(token, yaml.AliasToken):
            return False
    return True

"""`--with-nodes TEMPLATE=N`: a Node's name or a file with one, and how many."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from careen.agent.forecast.order import NodesToAdd
from careen.cli.support.files import text_of

MOST = 1000
_ENDINGS = (".yaml", ".yml", ".json")


class NodesWanted(click.ParamType[NodesToAdd]):
    """Refuses with exit code 2 what is no template, no number, or a number that nobody can mean."""

    name = "nodes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> NodesToAdd:
        if isinstance(value, NodesToAdd):
            return value
        template, sign, number = str(value).rpartition("=")
        if not sign or not template:
            self.fail(f"{value!r} is not of the form TEMPLATE=N, such as node-07=2", param, ctx)
        if not (number.isascii() and number.isdecimal()) or len(number) > 9 or not 1 <= int(number) <= MOST:
            self.fail(f"{number!r} is no number of nodes from 1 to {MOST}", param, ctx)
        if "/" not in template and not template.endswith(_ENDINGS):
            return NodesToAdd(int(number), name=template)
        return NodesToAdd(int(number), manifest=self._manifest(Path(template), param, ctx))

    def _manifest(self, path: Path, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, Any]:
        from careen.settings import yaml_text

        try:
            written = yaml_text.load(text_of(path, "--with-nodes"))
        except yaml_text.BadYaml as error:
            self.fail(f"{path}: {error}", param, ctx)
        if not isinstance(written, dict) or written.get("kind") != "Node" or written.get("apiVersion") != "v1":
            self.fail(f"{path} has no Node (apiVersion: v1, kind: Node)", param, ctx)
        manifest: dict[str, Any] = json.loads(json.dumps(written, default=str))  # YAML has dates, JSON writes them
        return manifest

"""What one refresh of `careen serve` and of `careen watch` costs here: processor seconds, without the start of the
process. `python -m bench.commands.refresh KUBECONFIG` prints both as JSON."""

from __future__ import annotations

import json
import sys
import time

from careen.cli.serving.looks import Looks
from careen.cli.serving.web_server import Document
from careen.cli.support.connection import Cluster, ask
from careen.core.facts import keys
from careen.report.live.planned import Planned
from careen.report.live.rollout_document import RolloutScene, rollout_document
from careen.report.live.screen import screen

TIMES = 5


def main() -> None:
    found = ask(
        _measured, kubeconfig=sys.argv[1], context=None, namespace=None, name=None, annotation=keys.LOCK_ANNOTATION
    )
    print(json.dumps(found))


async def _measured(cluster: Cluster) -> dict[str, float]:
    """The least of several refreshes; the first one, which also loads modules, is left out."""
    looks, pages, screens = Looks(cluster), list[float](), list[float]()
    await looks.look()
    for _ in range(TIMES):
        began = time.process_time()
        seen = await looks.look()
        looked = time.process_time()
        Document.json(rollout_document(seen, Planned()))
        drawn = time.process_time()
        screen(RolloutScene.of(seen), width=80, height=24)
        shown = time.process_time()
        pages.append(drawn - began)
        screens.append(looked - began + shown - drawn)
    return {"page": min(pages), "watch": min(screens)}


if __name__ == "__main__":
    main()

"""Draws the pictures of the README from a real demo and a real plan: `make pictures`.

`demo.svg` is the demo's table in the middle of its roll-out. `plan.svg` is the top of the page that `careen plan
--report` writes for the demo's cluster."""

from __future__ import annotations

import asyncio
import io
import re
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.console import Console

from drydock.rollout.kubeconfig import write_kubeconfig
from drydock.rollout.progress_report import RolloutProgress
from drydock.rollout.rollout import RolloutPlan, running_rollout
from drydock.rollout.view import table_of

FOLDER = Path(__file__).parent / "pictures"
NODES, SEED = 12, 1
PAGE_WIDTH, PAGE_HEIGHT = 1000, 735
# `careen plan` refuses an instant in the past.
BEGINS = f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%d}T21:58:00Z"


async def _watched(folder: Path) -> tuple[str, str]:
    """A picture of the demo's table, and the page with the plan for the demo's cluster, from one demo."""
    plan = RolloutPlan(nodes=NODES, seed=SEED, concurrency=2, patience_seconds=600)
    seen: list[RolloutProgress] = []
    async with running_rollout(plan, folder) as rollout:
        await rollout.set_up()
        config = write_kubeconfig(folder / "kubeconfig", rollout.cluster.api.url)
        page = await asyncio.to_thread(_page, folder, config)
        verdict = await rollout.run(seen.append)
    if verdict.broken:
        raise SystemExit("the demo broke a rule, so no picture was drawn")
    return _drawn(_middle(seen)), page


def _page(folder: Path, kubeconfig: Path) -> str:
    careen = Path(sys.executable).parent / "careen"
    dump = subprocess.run([careen, "snapshot", "--kubeconfig", kubeconfig], check=True, capture_output=True).stdout
    (folder / "dump.json.gz").write_bytes(dump)
    options = ["--set", "concurrency=2", "--set", "start-time=22:00", "--set", "end-time=06:00"]
    subprocess.run(
        [careen, "plan", "--from", "dump.json.gz", "--start", BEGINS, *options, "--report", "plan.html"],
        check=False,  # 3: the plan has risks, which is for the page to tell
        capture_output=True,
        cwd=folder,
    )
    return (folder / "plan.html").read_text()


def _middle(seen: list[RolloutProgress]) -> RolloutProgress:
    """The first state in which half of the nodes have rebooted and one is not ready; if there is none, the last
    state."""
    return next(
        (each for each in seen if each.rebooted >= NODES // 2 and any(not node.is_ready for node in each.nodes)),
        seen[-1],
    )


def _drawn(progress: RolloutProgress) -> str:
    console = Console(record=True, width=150, file=io.StringIO())
    console.print(table_of(progress))
    drawn = console.export_svg(title="make demo", unique_id="demo")
    return re.sub(r"\s*@font-face \{.*?\}", "", drawn, flags=re.DOTALL)  # a picture loads no fonts


def _as_picture(page: str) -> str:
    """An SVG that contains the page, because a README can show only images."""
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    body = re.search(r"<body>(.*)</body>", page, re.DOTALL)
    assert style is not None
    assert body is not None
    size = f'width="{PAGE_WIDTH}" height="{PAGE_HEIGHT}"'
    # The page is white by day and dark by night; a picture stands on whatever page shows it, so it stays white.
    by_day = re.sub(r"@media \(prefers-color-scheme:dark\)\{.*?\}\}\n", "", style[1], flags=re.DOTALL)
    sheet = by_day.replace("\nbody{", "\n.page{")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {PAGE_WIDTH} {PAGE_HEIGHT}">'
        f'<rect {size} fill="#fff"/><foreignObject {size}><div xmlns="http://www.w3.org/1999/xhtml" class="page">'
        f"<style>{sheet}</style>{body[1]}</div></foreignObject></svg>\n"
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="careen-pictures-", ignore_cleanup_errors=True) as temporary:
        demo, plan_page = asyncio.run(_watched(Path(temporary)))
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "demo.svg").write_text(demo)
    (FOLDER / "plan.svg").write_text(_as_picture(plan_page))
    print(f"the pictures are drawn: {FOLDER}/demo.svg and {FOLDER}/plan.svg")

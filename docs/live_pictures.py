"""Takes the pictures of the live page in a browser: part of `make pictures`, which brings Chromium and playwright.

The fleet is the tests' own: 60 nodes in three zones, two at work, ten that a pod holds back."""

from __future__ import annotations

import os
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from playwright.sync_api import sync_playwright

from drydock.server.testing import server_in_thread
from tests.careen.live_fleet import roll_out
from tests.careen.serving import served

FOLDER = Path(__file__).parent / "pictures"
VIEWS = {
    "live-desk-light": (1280, 900, "light", ""),
    "live-desk-dark": (1280, 900, "dark", ""),
    "live-phone-light": (390, 844, "light", ""),
    "live-phone-dark": (390, 844, "dark", ""),
    "live-report": (1280, 500, "light", "report"),
}


def main() -> None:
    with server_in_thread() as server, tempfile.TemporaryDirectory(prefix="careen-pictures-") as folder:
        server.seed(*roll_out(60, datetime.now(UTC), blocked=10))
        with served(server, Path(folder)) as url, sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), args=["--no-sandbox"]
            )
            for name, (width, height, scheme, path) in VIEWS.items():
                page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
                page.goto(url)
                page.wait_for_selector("polygon.planned")
                page.goto(url + path)
                page.wait_for_selector(".real" if not path else "table")
                page.screenshot(path=FOLDER / f"{name}.png")
            browser.close()
    sys.stdout.write(f"the pictures of the live page are in {FOLDER}\n")


if __name__ == "__main__":
    main()

"""Photograph the live page for the docs: ``python docs/make_watch.py`` (needs Chromium and ``ccmem[browser]``)."""

from __future__ import annotations

import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

import ccmem
from ccmem.app.watching.demo import Demo

STATIC = Path(__file__).parent / "_static"
FLAGS = "--no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update"


def main() -> None:
    """Photograph a finished demo of each kind, at the width of a desktop and of a phone."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS.split())
        for kind, rows in (("digits", 4300), ("sensors", 7000)):
            demo = Demo(kind, rows)
            with ccmem.watch(demo.model, browser=False, title=f"demo: {kind}", changes=demo.changes) as page:
                demo.run(speed=3000)  # while it is watched, so that samples around events are kept
                page.done()
                if kind == "sensors":
                    for block, name in enumerate(("standing still", "warming up")):
                        demo.model.memory_.name_block(block, name)
                tab = browser.new_page(viewport={"width": 1280, "height": 940})
                tab.goto(page.url)
                tab.wait_for_timeout(3000)
                tab.screenshot(path=STATIC / f"watch_{kind}.png")
                if kind == "sensors":
                    tab.click("#events button")
                    tab.wait_for_timeout(1500)
                    tab.screenshot(path=STATIC / "watch_why.png")
                    phone = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme="dark")
                    phone.goto(page.url)
                    phone.wait_for_timeout(2500)
                    phone.screenshot(path=STATIC / "watch_phone.png")
        browser.close()


if __name__ == "__main__":
    main()

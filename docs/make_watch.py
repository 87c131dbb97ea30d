"""Photograph the live page for the docs: ``python docs/make_watch.py`` (needs Chromium and ``ccmem[browser]``)."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
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
        photograph_shapes(browser)
        browser.close()


def photograph_shapes(browser) -> None:
    """Photograph the page of ``ccmem learn --window auto --shapes``: a signal whose waveform changes and returns."""
    row, rng = np.arange(16_000), np.random.default_rng(0)
    tone = np.sin(2 * np.pi * row / 50) + 0.4 * np.sin(4 * np.pi * row / 50 + 1)
    click = 2.0 * np.exp(-(row % 50) / 4) * np.cos(row % 50)  # of a worn bearing, as in examples/plot_shapes.py
    signal = np.where(row // 4000 % 2, 0.9 * tone + click, tone) + 0.1 * rng.normal(size=16_000)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "vibration.csv"
        np.savetxt(file, signal, header="vibration", comments="", fmt="%.4f")
        words = ["learn", str(file), "--window", "auto", "--shapes", "--watch", "--no-browser"]
        run = subprocess.Popen([sys.executable, "-m", "ccmem.cli", *words], stderr=subprocess.PIPE, text=True)
        lines = iter(run.stderr.readline, "")
        url = next(found[0] for line in lines if (found := re.search(r"http\S+", line)))
        next(line for line in lines if "stays" in line)
        tab = browser.new_page(viewport={"width": 1280, "height": 760})
        tab.goto(url)
        tab.wait_for_timeout(2500)
        tab.screenshot(path=STATIC / "watch_shapes.png")
        run.terminate()


if __name__ == "__main__":
    main()

"""The live page in a real browser: Debian's Chromium, driven by Playwright. ``make test BROWSER=1`` runs it."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ccmem
from ccmem import CCM, AdaptiveCCM, ModalClassifier
from ccmem.app.watching import observer as observing
from ccmem.app.watching.live import Watch
from ccmem.app.watching.observer import Observer
from ccmem.core.events import Event
from ccmem.core.state import SEEN

if not os.environ.get("CCMEM_BROWSER"):
    pytest.skip("BROWSER=1 runs what needs a browser", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
PATIENCE = 24 * 3600 * 1000.0
"""Milliseconds. Playwright's limits of 5 and 30 seconds would make the test depend on the speed of the machine."""
HOSTILE = '<img src=x onerror="window.bad=1">'
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    with playwright.sync_playwright() as driver:
        playwright.expect.set_options(timeout=PATIENCE)
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split(), timeout=PATIENCE)
        yield browser
        browser.close()


class Page:
    """A page that records every request and every error."""

    def __init__(self, browser: Any, width: int) -> None:
        self.tab = browser.new_page(viewport={"width": width, "height": 900}, accept_downloads=True)
        self.tab.set_default_timeout(PATIENCE)
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.tab.on("request", lambda request: self.requests.append(request.url))
        self.tab.on("pageerror", lambda problem: self.errors.append(str(problem)))
        self.tab.on("console", lambda line: self.errors.append(line.text) if line.type == "error" else None)

    def open(self, url: str) -> Any:
        self.tab.goto(url)
        return self.tab


def task(*columns: int) -> Any:
    rows = np.repeat(np.eye(64)[list(columns)], 250, axis=0)
    return rows + np.random.default_rng(0).normal(0, 0.05, rows.shape)


@pytest.fixture
def watched() -> Iterator[tuple[Any, Any]]:
    labels = np.array([HOSTILE, "plain"], object).repeat(250)
    model = ModalClassifier(AdaptiveCCM(n_slots=4)).partial_fit(task(0, 9), labels)
    assert model.memory_.n_blocks_ == 2
    with ccmem.watch(model, browser=False, title=HOSTILE, changes=[250]) as page:
        yield model, page


@pytest.mark.parametrize("width", [1300, 390])
def test_the_page_fills_an_event_appears_a_name_stays(chromium: Any, watched: Any, width: int) -> None:
    model, served = watched
    page = Page(chromium, width)
    tab = page.open(served.url)
    tab.wait_for_selector(".card")
    assert tab.inner_text("#title") == HOSTILE
    assert tab.inner_text("#rows") == "500"
    assert tab.locator(".card").count() == 2
    assert HOSTILE in tab.inner_text("#cards")

    model.partial_fit(task(20))
    playwright.expect(tab.locator("#rows")).to_have_text("750")
    playwright.expect(tab.locator(".card")).to_have_count(3)
    step = model.events_[-1].step
    tab.click(f"#events button[data-step='{step}']")
    tab.wait_for_selector("#why[open]")
    assert f"detected at row {step:,}" in tab.inner_text("#why")
    tab.keyboard.press("Escape")

    name = tab.locator(".card[data-block='0'] .name")
    name.fill(HOSTILE)
    name.press("Enter")
    playwright.expect(tab.locator("#said")).to_be_visible()
    assert model.memory_.block_names_ == {0: HOSTILE}
    model.memory_.name_block(1, "from Python")  # not the current block
    playwright.expect(tab.locator(".card[data-block='1'] .name")).to_have_value("from Python")
    model.memory_.name_block(1, "")
    tab.reload()
    tab.wait_for_selector(".card")
    assert tab.locator(".card[data-block='0'] .name").input_value() == HOSTILE

    assert tab.evaluate("window.bad") is None
    assert tab.locator("img").count() == 0
    assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert all(url == "data:," or url.startswith(served.url) for url in page.requests), page.requests
    assert page.errors == []
    tab.close()


def test_exports_hold_what_is_shown(chromium: Any, watched: Any) -> None:
    from PIL import Image

    _, served = watched
    page = Page(chromium, 1000)
    tab = page.open(served.url)
    tab.wait_for_selector(".card")
    kept = {}
    for kind in ("png", "gif", "json"):
        with tab.expect_download() as download:
            tab.click(f"#{kind}")
        kept[kind] = Path(download.value.path()).read_bytes()
        assert download.value.suggested_filename == f"img-src-x-onerror-window.bad-1.{kind}"
    assert Image.open(io.BytesIO(kept["png"])).width == 2200
    film = Image.open(io.BytesIO(kept["gif"]))
    assert (film.width, film.n_frames) == (820, 36)
    film.seek(35)
    last = np.asarray(film.convert("RGB")).reshape(-1, 3).astype(int)
    blue = np.abs(last - [0, 0x72, 0xB2]).max(axis=1) < 30
    assert blue.sum() > 500  # the lane of block 0
    exported = json.loads(kept["json"])
    assert (exported["rows"], [block["block"] for block in exported["blocks"]]) == (500, [0, 1])
    assert exported["events"][0]["kind"] == "new_block"
    tab.click("#pause")
    tab.click("#replay")
    playwright.expect(tab.locator("#state")).to_contain_text("Replay")
    assert page.errors == []
    tab.close()


def test_columns_are_shown_in_units_of_their_own(chromium: Any) -> None:
    rng = np.random.default_rng(0)
    levels = np.repeat([[1000.0, 0.002], [1000.0, 0.004]], 300, axis=0)
    memory = AdaptiveCCM(n_slots=4).fit(levels * rng.normal(1, 0.01, levels.shape))
    assert memory.n_blocks_ == 2
    with ccmem.watch(memory, browser=False) as served:
        page = Page(chromium, 1000)
        tab = page.open(served.url)
        playwright.expect(tab.locator(".card")).to_have_count(2)
        small = [tab.locator(f".card[data-block='{block}'] .bar i").nth(1) for block in (0, 1)]
        widths = [bar.evaluate("bar => bar.getBoundingClientRect().width") for bar in small]
        assert widths[0] < 0.2 * widths[1]  # beside a column a million times as large
        tab.click("#events button")
        tab.wait_for_selector("#why[open] table")
        assert "column 1" in tab.inner_text("#why table tr:nth-child(2)")
        tab.set_viewport_size({"width": 390, "height": 844})
        heights = tab.locator("#why .moved td:nth-child(3)").evaluate_all("all => all.map(cell => cell.offsetHeight)")
        assert max(heights) < 32  # a number is not broken into two lines
        assert tab.evaluate("document.getElementById('why').scrollWidth <= document.getElementById('why').clientWidth")
        assert page.errors == []
        tab.close()


def test_a_lost_column_is_told_as_such(chromium: Any) -> None:
    rows = np.random.default_rng(0).normal([1.0, 50.0, 0.3], [0.1, 2.0, 0.05], (900, 3))
    rows[300:, 1] = np.nan
    memory = AdaptiveCCM(n_slots=4)
    with ccmem.watch(memory, browser=False) as served:
        page = Page(chromium, 390)
        tab = page.open(served.url)
        for start in range(0, 900, 100):
            memory.partial_fit(rows[start : start + 100])
            tab.wait_for_timeout(250)
        button = tab.locator("#events button")
        playwright.expect(button).to_contain_text("column lost")
        assert "▼" in button.inner_text()
        assert "▼ column lost" in tab.inner_text("#legend")
        button.click()
        tab.wait_for_selector("#why[open] table")
        assert "Column lost: column 1" in tab.inner_text("#why")
        assert tab.inner_text("#why table tr:last-child td:last-child") == "missing"
        assert tab.is_hidden("#blind")
        assert page.errors == []
        tab.close()


def test_thousands_of_blocks_and_events_are_shown_in_part(chromium: Any) -> None:
    tasks = np.random.default_rng(0).normal(size=(2000, 64))
    memory = CCM(n_slots=1, alarm_limit=1, recall_limit=1, commit_limit=0, random_state=0)
    memory.partial_fit(np.repeat(tasks, 4, axis=0))
    assert memory.n_blocks_ > 1000
    more = [Event("recall", 10**6 + step, step % 1000, (step + 1) % 1000, 1) for step in range(9000)]
    memory._history.extend(more)
    memory._state.counters[SEEN] = 10_000_000
    with ccmem.watch(memory, browser=False) as served:
        page = Page(chromium, 1200)
        tab = page.open(served.url)
        tab.wait_for_selector(".card")
        playwright.expect(tab.locator("#rows")).to_have_text("10,000,000")
        assert tab.locator(".card").count() <= 41
        assert tab.locator("#events li").count() <= 300
        assert tab.locator("#events li:visible").count() == 8
        assert "the latest 300 listed" in tab.inner_text("#n-events")
        assert tab.evaluate("fetch('state').then(a => a.text()).then(text => text.length)") < 600_000
        tab.select_option("#span", "10000")
        tab.click("#replay")
        playwright.expect(tab.locator("#state")).to_contain_text("Replay")
        assert page.errors == []
        tab.close()


def test_another_site_sees_nothing(chromium: Any, watched: Any) -> None:
    model, served = watched
    tab = Page(chromium, 800).open("about:blank")
    read = f"fetch('{served.url}state').then(a => a.text()).catch(() => 'refused')"
    assert tab.evaluate(read) == "refused"
    wish = '{"block": 0, "name": "x"}'
    tab.evaluate(f"fetch('{served.url}name', {{method: 'POST', mode: 'no-cors', body: '{wish}'}}).catch(() => 1)")
    assert model.memory_.block_names_ == {}
    tab.close()


def test_signals_zoom_pan_and_the_finished_state(chromium: Any) -> None:
    rng = np.random.default_rng(0)
    levels = np.repeat([[20.0, 0.0, 0.0], [20.0, 400.0, 0.0], [20.0, 0.0, 0.0]], 400, axis=0)
    rows = levels + rng.normal(0, [0.1, 5.0, 0.0], levels.shape)
    rows[:, 2] = -9.5e-19
    memory, labels = ModalClassifier(AdaptiveCCM(n_slots=4)), np.repeat(["0", "1", "0"], 400).astype(object)
    about = {"label": "Occupancy"}
    shown = Watch(Observer(lambda: memory, title="room.csv", describe=lambda: dict(about)), 0, browser=False)
    with shown:
        page = Page(chromium, 1200)
        tab = page.open(shown.url)
        memory.partial_fit(rows[:50], labels[:50])
        playwright.expect(tab.locator("#rows")).to_have_text("50")
        memory.partial_fit(rows[50:], labels[50:])
        playwright.expect(tab.locator("#rows")).to_have_text("1,200")
        assert [event.kind for event in memory.events_] == ["new_block", "recall"]
        playwright.expect(tab.locator("#signal option")).to_have_count(5)
        shown.done()
        playwright.expect(tab.locator("#state")).to_have_text("Finished: 1,200 rows learned")
        assert tab.is_hidden("#rate")
        assert re.search("Occupancy = 0: (9[89]|>99|100) %", tab.inner_text(".card[data-block='0']"))
        assert "e-19" not in tab.inner_text("body")
        events = tab.inner_text("#events")
        assert re.search(r"column 1 [+\u2212](39\d|40\d)", events), events
        assert "used once before" in events
        box = tab.locator("#timeline").bounding_box()
        tab.mouse.move(box["x"] + 600, box["y"] + 60)
        with tab.expect_response("**/signals/**"):
            tab.mouse.wheel(0, -300)
        assert tab.input_value("#span") == "-1"
        playwright.expect(tab.locator("#tip")).to_be_visible()
        tab.mouse.move(box["x"] + 610, box["y"] + 60)
        playwright.expect(tab.locator("#tip")).to_contain_text("column 1:")
        with tab.expect_response("**/signals/**") as panned:
            tab.mouse.down()
            tab.mouse.move(box["x"] + 700, box["y"] + 60, steps=4)
            tab.mouse.up()
        first = int(panned.value.url.split("/")[-3])
        tab.focus("#timeline")
        with tab.expect_response("**/signals/**") as moved:
            tab.keyboard.press("ArrowRight")
        assert int(moved.value.url.split("/")[-3]) > first
        tab.keyboard.press("0")
        assert tab.input_value("#span") == "0"
        tab.click("#events button")
        tab.wait_for_selector("#why[open]")
        answers = tab.inner_text("#why-answers")
        for question in ("When", "What", "Before", "How long", "until the end of the stream", "Used once before"):
            assert question in answers, answers
        tab.click("#why-show")
        assert tab.input_value("#span") == "-1"
        tab.click("#help")
        assert "Standard deviation of a column" in tab.inner_text("#terms")
        assert page.errors == []
        tab.close()


def test_dates_and_durations_are_shown_where_the_stream_has_times(chromium: Any, monkeypatch: Any) -> None:
    began, line = 1423072260.0, observing._line
    monkeypatch.setattr(
        observing, "_line", lambda event: [*line(event), *(began + 60 * s for s in (event.step, event.onset))]
    )
    memory = AdaptiveCCM(n_slots=4).fit(task(0, 9, 0)[:, :10])
    step = memory.events_[0].onset
    memory._clock = SimpleNamespace(steps=750, at=lambda step: began + 60 * step)
    with ccmem.watch(memory, browser=False) as shown:
        page = Page(chromium, 1200)
        tab = page.open(shown.url)
        tab.wait_for_selector("#events button")
        day, month = time.gmtime(began + 60 * step), "Feb 2015"
        expected = f"{day.tm_mday} {month} {day.tm_hour:02}:{day.tm_min:02}"
        assert expected in tab.inner_text("#events li:last-child")
        assert " h " in tab.inner_text("#events li:last-child .details")
        assert "4 Feb 2015" in tab.inner_text("#since") or "5 Feb 2015" in tab.inner_text("#since")
        assert page.errors == []
        tab.close()

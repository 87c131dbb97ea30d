"""Checks of the documentation: code blocks run and print the output shown, and links are valid.

The ``python`` blocks of a page run in order in one namespace, in an empty folder. A ``text`` block right after one is
its expected output (``...`` matches anything). ``console`` blocks hold commands after ``$``; those that begin with
``ccmem`` are run. ``sh`` blocks are not run. ``<!-- needs: torch -->`` skips a page if that package is missing.
``<!-- not run here: SCRIPT does it -->`` marks a page with a separate script; its code is only parsed.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib.util
import io
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

import ccmem
from ccmem import cli

ROOT = Path(__file__).parent.parent
PAGES = sorted(path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts)
LINKED = [*PAGES, *ROOT.glob("*.md")]
FENCE = re.compile(r"^```(?P<kind>[\w{}-]*)[^\n]*\n(?P<body>.*?)^```$", re.M | re.S)
CHECK = doctest.OutputChecker()
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[tuple[str, str, int]]:
    """Return kind, body and line of every fenced block."""
    text = page.read_text()
    return [(found["kind"], found["body"], text[: found.start()].count("\n") + 2) for found in FENCE.finditer(text)]


def run_python(code: str, names: dict[str, Any], page: Path, line: int) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * (line - 1) + code, str(page), "exec"), names)
    return printed.getvalue()


def run_commands(body: str) -> str:
    """Return the output of the ``ccmem`` commands of a console block."""
    printed = io.StringIO()
    for line in re.sub(r"\\\n\s*", "", body).splitlines():
        if line.startswith("$ ccmem "):
            with contextlib.redirect_stdout(printed):
                assert cli.main(shlex.split(line.removeprefix("$ ccmem "), comments=True)) == 0, line
    return printed.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_code_blocks(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for need in re.findall(r"<!-- needs: (\w+) -->", page.read_text()):
        if importlib.util.find_spec(need) is None:
            pytest.skip(f"{need} is not installed")
    if "<!-- not run here:" in page.read_text():
        for kind, body, _ in blocks(page):
            assert kind != "python" or compile(body, str(page), "exec")
        return
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = None
    for kind, body, line in blocks(page):
        if kind == "python":
            printed = run_python(body, names, page, line)
        elif kind == "console":
            printed = run_commands(body)
        elif kind == "text" and printed is not None:
            assert CHECK.check_output(body, printed, FLAGS), (
                f"{name_of(page)}:{line} says\n{body}\nbut it is\n{printed}"
            )
            printed = None


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", LINKED, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"`[^`\n]+`", "", FENCE.sub("", page.read_text()))
    lost = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"(https?|mailto):", target):
            continue
        file, _, anchor = target.partition("#")
        place = page.parent / file if file else page
        if "auto_examples" in place.parts:  # made by sphinx-gallery from examples/
            script = "README.rst" if place.stem == "index" else f"{place.stem}.py"
            place = ROOT / "examples" / script
        if place.name == "api.rst":  # made by make_api.py
            place = ROOT / "docs" / "_templates" / "api.rst"
        if not place.exists() or (anchor and anchor not in anchors(place)):
            lost.append(target)
    assert not lost, f"{name_of(page)} links to nothing: {lost}"


def test_every_page_is_in_the_table_of_contents() -> None:
    listed = {ROOT / "docs" / "index.md"}
    for page in PAGES:
        for kind, body, _ in blocks(page):
            if kind == "{toctree}":
                entries = [line for line in body.splitlines() if line and not line.startswith(":")]
                for entry in (re.sub(r".*<(.*)>", r"\1", entry) for entry in entries):
                    found = [place for end in (".md", ".rst") if (place := page.parent / (entry + end)).exists()]
                    made = entry == "api" or entry.startswith("auto_examples/")
                    assert found or made, f"{name_of(page)} lists {entry}"
                    listed.update(found)
    assert set(PAGES) <= listed


def test_every_picture_is_shown_and_made_by_make_pictures() -> None:
    shown = "\n".join(page.read_text() for page in PAGES)
    makers = re.search(r"^PICTURES := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert makers is not None
    assert all((ROOT / script).is_file() for script in makers[1].split())
    unseen = [path.name for path in (ROOT / "docs" / "_static").iterdir() if f"_static/{path.name}" not in shown]
    assert unseen == []


def lookup(name: str) -> Any:
    """Return the object with a dotted name."""
    module, *rest = name.split(".")
    thing: Any = importlib.import_module(module)
    for part in rest:
        with contextlib.suppress(ImportError):
            module = f"{module}.{part}"
            importlib.import_module(module)
        thing = getattr(thing, part)
    return thing


def test_names_in_the_text_exist() -> None:
    """Check that names in roles such as ``{class}`~ccmem.CCM``` exist."""
    for page in PAGES:
        for name in re.findall(r"\{(?:class|meth|func|mod)\}`~?([\w.]+)`", page.read_text()):
            if name.startswith("ccmem.torch.") and importlib.util.find_spec("torch") is None:
                continue
            assert lookup(name) is not None, f"{name_of(page)}: {name}"


def test_paper_to_code_names_what_is_there() -> None:
    names = set(re.findall(r"`(ccmem(?:\.\w+)+)`", (ROOT / "docs" / "paper_to_code.md").read_text()))
    assert len(names) > 30
    for name in names:
        assert lookup(name) is not None, name


def test_every_public_name_has_its_place_in_the_reference() -> None:
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        import make_api
    finally:
        sys.path.pop(0)
    listed = set(re.findall(r"^   (\w+)$", make_api.page(), re.M))
    assert set(ccmem.__all__) - {"__version__"} <= listed


def test_every_name_of_the_reference_exists() -> None:
    """Check all names of the reference; Sphinx takes minutes and stops at the first missing one."""
    for module, listed in re.findall(
        r"\.\. (?:current|auto)module:: (\S+)\n(.*?)(?=\n\.\. (?:current|auto)module|\Z)",
        (ROOT / "docs" / "_templates" / "api.rst").read_text(),
        re.S,
    ):
        if module != "ccmem.torch" or importlib.util.find_spec("torch") is not None:
            for name in re.findall(r"^   ([A-Za-z][\w.]*)$", listed, re.M):
                assert lookup(f"{module}.{name}") is not None

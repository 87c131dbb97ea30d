"""``ccmem datasets``: list, fetch and verify the image data sets."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from typing import Any

from ccmem.paper.datasets import DataSetNotFound, catalogue, entry_of, fetch, locate


def run(options: argparse.Namespace) -> int:
    entries = [entry_of(name) for name in options.names or catalogue()]
    found = [_look(entry, options) for entry in entries]
    if options.json:
        json.dump(found, sys.stdout, indent=1)
        print()
    else:
        for facts in found:
            said = f"{facts['name']}: {facts['provenance']}", f"  licence: {facts['licence']}", f"  {facts['state']}"
            print("\n".join(textwrap.fill(line, 100, subsequent_indent="  ") for line in said))
            for note in facts["notes"]:
                print(textwrap.fill(f"  note: {note}", 100, subsequent_indent="  "))
    return 1 if any(facts["failed"] for facts in found) else 0


def _look(entry: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Return the facts about a data set, including the outcome of the request or the reason of its failure."""
    facts: dict[str, Any] = {key: getattr(entry, key) for key in ("name", "title", "provenance", "licence", "sha256")}
    facts |= {"notes": [], "failed": False}
    try:
        if options.action == "fetch":
            raw, source = fetch(entry.name, folder=options.data)
        else:
            raw, source = locate(entry.name, folder=options.data, download=False)
    except DataSetNotFound as problem:
        if options.action == "list" or (options.action == "verify" and not options.names):
            facts["state"] = "not on this machine"
        else:
            facts |= {"state": str(problem), "failed": True}
        return facts
    except (OSError, ValueError, ImportError) as problem:
        return facts | {"state": f"unusable: {problem}", "failed": True}
    matches = dict(raw.sha256) == dict(entry.sha256)
    facts["found_sha256"] = dict(raw.sha256)
    facts["notes"] = list(raw.notes)
    facts["failed"] = options.action == "verify" and not matches
    facts["state"] = (
        f"here: {len(raw.train_labels):,} training and {len(raw.test_labels):,} test images, source: {source}; "
        f"checksums {'match' if matches else 'differ from the catalogue'}"
    )
    return facts

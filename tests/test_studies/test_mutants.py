"""Named mutants: each can be planted in the present source."""

from __future__ import annotations

from pathlib import Path

from studies.mutants_groups import GROUPS
from studies.mutants_named import NAMED

import ccmem

PACKAGE = Path(ccmem.__file__).parent


def test_named_mutants_can_be_planted() -> None:
    mutated = {module for modules, _ in GROUPS.values() for module in modules}
    for module, before, after in NAMED:
        assert module in mutated
        assert before in PACKAGE.joinpath(*module.split(".")).with_suffix(".py").read_text(), (module, before)
        assert before != after

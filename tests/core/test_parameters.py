"""Rules for values of parameters: what each accepts and refuses, at its bounds."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from ccmem.core.parameters import Rule, boolean, check_parameters, choice, either, exactly, integer, number, optional

NEVER_A_NUMBER = (True, "1", None, 1j, math.nan, 10**400, -(10**400))


@pytest.mark.parametrize(
    ("rule", "accepted", "refused"),
    [
        (number(0.0), (0, 0.0, 1e308, math.inf, np.float32(1.0)), (-1e-300, *NEVER_A_NUMBER)),
        (number(0.0, 1.0), (0, 1, 0.0, 1.0, Fraction(1, 2)), (-1e-300, np.nextafter(1.0, 2.0), *NEVER_A_NUMBER)),
        (number(0.0, 1.0, open_below=True), (1e-300, 1.0), (0.0, 0, -1.0, np.nextafter(1.0, 2.0))),
        (number(0.0, 1.0, open_above=True), (0.0, np.nextafter(1.0, 0.0)), (1.0, 1, 2.0, -1e-300)),
        (number(0.0, open_above=True), (0.0, 1e308), (math.inf,)),
        (integer(1), (1, np.int64(3), 2**62), (0, -1, 1.0, 2**62 + 1, *NEVER_A_NUMBER)),
        (exactly(math.inf), (math.inf,), (-math.inf, 1e308, *NEVER_A_NUMBER)),
        (choice("a", "b"), ("a", "b"), ("c", "", None, 0)),
        (boolean(), (True, False, np.True_), (0, 1, None, "True")),
        (optional(integer(1)), (None, 1), (0, 1.0)),
        (either(number(1.0, 16.0), exactly(math.inf)), (1.0, 16.0, math.inf), (0.5, 17.0, None)),
    ],
)
def test_what_a_rule_accepts(rule: Rule, accepted: tuple[Any, ...], refused: tuple[Any, ...]) -> None:
    fits, _ = rule
    assert [value for value in accepted if not fits(value)] == []
    assert [value for value in refused if fits(value)] == []


def test_the_message_names_owner_value_and_rule() -> None:
    check_parameters("Own", {"n": integer(1)}, {"n": 1})
    with pytest.raises(ValueError, match=r"^Own: n=0 is not possible; it must be a whole number >= 1$"):
        check_parameters("Own", {"n": integer(1)}, {"n": 0})
    for value, shown in ((10**400, "10**400 or so"), (-(10**5000), "-10**5000 or so"), (10**30, str(10**30))):
        with pytest.raises(ValueError, match=re.escape(f"Own: n={shown} is not possible")):
            check_parameters("Own", {"n": number(0.0, 1.0)}, {"n": value})

"""Writing rows to standard output."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

from ccmem.io.streams.write import open_writer


def test_rows_for_a_pipe_leave_with_their_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    arrived = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(arrived, encoding="utf-8"))
    with open_writer("-", {"unit": int, "label": str}) as write:
        write({"unit": np.array([3, 4]), "label": ["a", "b,c"]})
        assert arrived.getvalue() == b'unit,label\n3,a\n4,"b,c"\n'
        write({"unit": np.array([5]), "label": [None]})
        assert arrived.getvalue().endswith(b"\n5,\n")

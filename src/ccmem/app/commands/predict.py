"""``ccmem predict``: predict labels (or units and blocks) of new rows from a checkpoint."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import numpy as np

from ccmem.app.commands._models import outside_classes, refuse_overlap
from ccmem.app.learner import Learner
from ccmem.app.options import reading
from ccmem.app.stopping import Ended, ended_by_signals
from ccmem.io.streams.files import FileStream
from ccmem.io.streams.write import open_writer

_IDLE_SECONDS = 0.2


def run(args: argparse.Namespace) -> int:
    """Predict every row of the source and write the answers."""
    learner = Learner.load(args.checkpoint, outside_classes(args.model))
    if not learner.model.__sklearn_is_fitted__():
        raise ValueError(f"{args.checkpoint} has learned nothing yet; run ccmem learn first")
    if learner.columns is not None and args.features and tuple(args.features) != learner.columns.features:
        raise ValueError(f"--features: {args.checkpoint} learned from the columns {','.join(learner.columns.features)}")
    stream = FileStream(
        args.sources, **reading(args), columns=learner.columns, accept_last_line=True, missing=learner.takes_missing
    )
    refuse_overlap({"--out": args.out}, [*stream.files, args.checkpoint])
    rows = right = labelled = 0
    kinds = learner.answer_kinds(args.units)
    with ended_by_signals() as request, open_writer(args.out, kinds) as write:
        for chunk in stream.chunks_read_ahead(None, _IDLE_SECONDS):
            if request.number is not None:
                raise Ended(request.number)
            if chunk is None:
                continue
            answers = learner.predict(chunk.X, args.units) if len(chunk.X) else {name: np.empty(0) for name in kinds}
            if chunk.labels is not None and "label" in answers:
                known = chunk.labels.codes >= 0
                labelled += int(known.sum())
                truth = chunk.labels.array()
                right += int((answers["label"][known] == truth[known]).sum())
            places = chunk.rows - chunk.first - 1
            write({name: _spread(answers[name], places, chunk.n_rows) for name in kinds})
            rows += chunk.n_rows
    facts: dict[str, Any] = {"rows": rows, "bad_rows": stream.bad_rows, "labelled": labelled}
    if labelled:
        facts["accuracy"] = round(right / labelled, 6)
    facts["out"] = args.out
    where = sys.stderr if args.out == "-" else sys.stdout
    if args.json:
        print(json.dumps(facts), file=where)
    elif args.out != "-" or sys.stderr.isatty():
        accuracy = f"; {facts['accuracy']:.2%} of {labelled:,} labelled rows right" if labelled else ""
        bad = f"; {stream.bad_rows:,} bad rows left empty" if stream.bad_rows else ""
        print(f"predicted {rows:,} rows to {args.out}{bad}{accuracy}", file=where)
    return 0


def _spread(values: Any, places: Any, count: int) -> Any:
    """Return answers as plain values, with None for rows without an answer."""
    spread = np.full(count, None, object)
    spread[places] = values.tolist()
    return spread

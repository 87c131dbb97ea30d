"""Named mutants, which `python -m studies.mutants` tries before random ones.

``NOTICED_TOO_LATE`` lists errors that the tests once missed, ``UNDONE`` reverts fixes made after hostile use. Each must
make a test fail.
"""

from __future__ import annotations

Change = tuple[str, str, str]
"""Module, original text, and replacement."""

NOTICED_TOO_LATE: tuple[Change, ...] = (
    ("models.artc2a", "counters[JOURNALED] + 2 >", "counters[JOURNALED] + 1 >"),
    ("models.artc2a", "state.moved[b] = True", "pass"),
    ("models.ccm", "state.recalls[: counters[BLOCKS]] = 0", "pass"),
    ("models.adaptive.units", "4 * votes[unit, most] > 3 * total", "4 * votes[unit, most] >= 3 * total"),
    ("models.adaptive.units", "if cost < least:", "if cost <= least:"),
    ("kernels.votes", "max(score * score if by_distance", "max(score if by_distance"),
    ("readout", "codes[len(codes) - len(X) :]", "codes[: len(X)]"),
    ("metrics.events", "here[0].step - change <= max_delay", "here[0].step - change < max_delay"),
    ("experiments.protocol", "classes = np.full(benchmark.width, -1)", "classes = np.full(benchmark.width, 0)"),
    (
        "experiments.protocol",
        "predicted = np.full(len(benchmark.y_test), -1)",
        "predicted = np.full(len(benchmark.y_test), 0)",
    ),
    ("experiments.protocol", "np.random.default_rng(seed).permutation", "np.random.default_rng(0).permutation"),
    ("persistence.atomic", "os.ftruncate(handle, 0)", "pass"),
    ("persistence.atomic", "        _create(temporary, target)\n", "        pass\n"),
    ("streams.ndjson", "if len(found) < len(pairs):", "if False:"),
    ("persistence.tensorfile", "if first != end:", "if first < end:"),
    ("persistence.values", "or position > last or", "or"),
    ("persistence.checkpoint", "[array.dtype.str, array.shape]", "[array.shape]"),
    ("streams.csv", "self._body = start + dialect.skip", "self._body = start"),
    ("streams.files", "self._progress.pop(opened.key, None)", "pass"),
)

UNDONE: tuple[Change, ...] = (
    # threads
    ("guard", "        with guard.lock:\n            if", "        if True:\n            if"),
    ("guard", "        with guard.lock:\n            return", "        if True:\n            return"),
    ("guard", "            if guard.is_notifying:", "            if False:"),
    ("guard", "        if self.depth > 1:", "        if False:"),
    ("guard", "                if guard.to_notify is not None and guard.depth == 1:", "                if False:"),
    ("layers.stack", "        share_guard(self, fresh)", "        pass"),
    ("layers.window", ' if name != "_guard")', ")"),
    ("guard", "return copy.deepcopy(state)", "return state"),
    ("persistence.checkpoint", "model._while_reading(_write, path, content)", "_write(path, content)"),
    # files that grow
    ("streams.lines", "held = self._hold or not self._pending", "held = not self._pending"),
    ("commands.learn", "not chunk.ended and self.signal is not None", "False"),
    # files that change
    ("streams.progress", "size = length if pieces == 1 else _PIECE", "size = min(length, _PIECE)"),
    ("streams.progress", "if not _is_same(file, size, known):", "if False:"),
    # events
    ("living.events", "            lock(self._file.fileno())", "            pass"),
    ("living.events", "if any(_owner(line, self.owner) != self.owner for line in self._file):", "if False:"),
    ("living.events", "if size and owner is not None and owner != self.owner:", "if False:"),
    ("commands.learn", "                    self.whole = False", "                    pass"),
    # signals and full disks
    ("commands.learn", "not (nohup and number == hang_up)", "number != hang_up"),
    ("persistence.atomic", "        temporary.unlink(missing_ok=True)\n", "        pass\n"),
    # answers
    ("commands.predict", "_spread(answers[name], places, chunk.n_rows)", "list(answers[name])"),
    ("streams.files", "                    if chunk.n_rows:", "                    if len(chunk.X):"),
    # pipes
    ("streams.tables", "columns.knowing(labels.take(~bad))", "columns.knowing(labels)"),
    (
        "streams.csv",
        "(block := self._block()) is not None:\n            seen",
        "(block := None) is not None:\n            seen",
    ),
    ("streams.schema", "    if len(values) < 3 or not (steps > 0).all():", "    if True:"),
    ("streams.csv", "given_up = len(data) - line > records.LONGEST_QUOTED or", "given_up ="),
    ("streams.csv", "LONGEST_QUOTED or closed_wrongly(data, opened)", "LONGEST_QUOTED"),
    ("streams.csv", "look = _AFTER_A_FAULT if self._after_fault else", "look ="),
    ("streams.csv", "return (line, _OPEN_QUOTE) if given_up", "return (len(data), _OPEN_QUOTE) if given_up"),
    # labels and dates
    ("streams.csv", 'text.encode("latin-1").decode("utf-8")', 'text.encode("latin-1").decode("utf-8", "replace")'),
    ("streams.tables", "value.encode()", "pass"),
    ("kernels.rows", "    _refuse_times(X)\n", ""),
    # all or nothing
    ("readout", "self._votes = aligned(self._votes)", "pass"),
    ("estimator", "self._state._make(map(aligned, self._state))", "self._state"),
    ("deviations", "aligned(self.scatter), aligned(self.buffer)", "self.scatter, self.buffer"),
    (
        "predictors._estimator",
        "        self._notify()\n        return self\n\n    def _notify",
        "        return self\n\n    def _notify",
    ),
    # unclear messages
    (
        "streams.sources",
        'except (AttributeError, ValueError, OSError) as problem:\n        raise SourceError("standard',
        'except LookupError as problem:\n        raise SourceError("standard',
    ),
    ("persistence.atomic", "if target.exists() and not target.is_file():", "if False:"),
    ("memory", "if n_bytes > _MOST_BYTES:", "if False:"),
    ("datasets.cache", "LookupError, TypeError, RecursionError)", "LookupError)"),
    ("datasets.idx", "if len(content) > LARGEST:", "if False:"),
    ("streams.arrays", "if first_byte > _LONGEST_HEADER:", "if False:"),
    (
        "parameters",
        "        except OverflowError:\n            return False",
        "        except LookupError:\n            return False",
    ),
    ("parameters", "least <= int(v) <= _MOST", "least <= int(v)"),
    ("streams.files", "if n_rows is not None and n_rows != len(given.codes):", "if False:"),
    ("streams.files", "    if given is not None and first != len(given.codes):", "    if False:"),
    # files left behind, replaced, or confused with others
    ("persistence.atomic", "    _remove_abandoned(target)\n    temporary", "    temporary"),
    ("commands.predict", "if place in {os.path", "if False and place in {os.path"),
    ("commands._shared", "        if place in sources:", "        if False:"),
    ("persistence.atomic", "if not target.parent.is_dir():", "if False:"),
    ("commands.datasets", 'options.action == "verify" and not matches', "False"),
    ("commands._inspect_text", 'printable(text).replace("\\n", "\\\\n")', "text"),
    ("datasets.cache", "            if not folder.exists() and attempt == 19:", "            if True:"),
    ("streams.tables", 'remedy = "fix it" if in_place', 'remedy = "fix it" if True'),
)

NAMED: tuple[Change, ...] = NOTICED_TOO_LATE + UNDONE

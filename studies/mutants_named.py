"""Named mutants, which `python -m studies.mutants` tries before random ones.

``NOTICED_TOO_LATE`` lists errors that the tests once missed, ``UNDONE`` reverts fixes made after hostile use. Each must
make a test fail.
"""

from __future__ import annotations

Change = tuple[str, str, str]
"""Module, original text, and replacement."""

NOTICED_TOO_LATE: tuple[Change, ...] = (
    ("models.ccm", "state.recalls[: state.counters[BLOCKS]] = 0", "pass"),
    ("models.adaptive.slots", "4 * most > 3 * total", "4 * most >= 3 * total"),
    ("models.adaptive.bound", "if cost < least:", "if cost <= least:"),
    ("kernels.votes", "max(score * score if by_distance", "max(score if by_distance"),
    ("readout.modal", "codes[len(codes) - len(X) :]", "codes[: len(X)]"),
    ("metrics.events", "here[0].step - changes[i - 1] <= max_delay", "here[0].step - changes[i - 1] < max_delay"),
    ("paper.experiments.protocol", "classes = np.full(benchmark.width, -1)", "classes = np.full(benchmark.width, 0)"),
    ("paper.experiments.protocol", "np.full(len(benchmark.y_test), -1)", "np.full(len(benchmark.y_test), 0)"),
    ("paper.experiments.protocol", "np.random.default_rng(seed).permutation", "np.random.default_rng(0).permutation"),
    ("io.persistence.atomic", "os.ftruncate(handle, 0)", "pass"),
    ("io.persistence.atomic", "        _create(temporary, target)\n", "        pass\n"),
    ("io.streams.ndjson", "if len(found) < len(pairs):", "if False:"),
    ("io.persistence.tensorfile", "if first != end:", "if first < end:"),
    ("io.persistence.values", "if position > last or", "if"),
    ("io.streams.csv", "self._body = first.start + skip", "self._body = first.start"),
    ("io.streams.files", "        self._progress.pop(file.key, None)", "        pass"),
)

UNDONE: tuple[Change, ...] = (
    # threads
    ("core.locking", "        with guard.lock:\n            guard.depth", "        if True:\n            guard.depth"),
    ("core.locking", "        with guard.lock:\n            return", "        if True:\n            return"),
    ("core.locking", "        if guard.deliverer is not None and guard.deliverer ==", "        if 0 =="),
    ("core.locking", "guard.to_notify is not None and guard.depth == 0", "guard.to_notify is not None"),
    ("core.locking", "guard.to_notify = to_notify", "pass"),
    ("core.locking", "            if self.deliverer is not None:\n                return", "            pass"),
    ("layers.stack", "        share_guard(self, self.last_)", "        pass"),
    ("core.locking", "return copy.deepcopy(state)", "return state"),
    ("io.persistence.checkpoint", "guard_of(model).lock if isinstance(model, Guarded) else ", ""),
    # files that grow
    ("io.streams.lines", "held = self._hold or not self._pending", "held = not self._pending"),
    ("app.commands.learn", "not chunk.ended and self.stop.number is not None", "False"),
    # files that change
    ("io.streams.progress", "size = length if pieces == 1 else _PIECE", "size = min(length, _PIECE)"),
    ("io.streams.progress", "        if not _is_same(file, known):", "        if False:"),
    # events
    ("app.events", "            lock(self._file.fileno())", "            pass"),
    ("app.events", "            if owner is not None and owner != self.owner:", "            if False:"),
    ("app.events", "if size and owner is not None and owner != self.owner:", "if False:"),
    ("app.commands.learn", "                    self.whole = False", "                    pass"),
    # signals and full disks
    ("app.stopping", "not (nohup and number == hang_up)", "number != hang_up"),
    ("io.persistence.atomic", "        temporary.unlink(missing_ok=True)\n", "        pass\n"),
    # answers
    ("app.commands.predict", "_spread(answers[name], places, chunk.n_rows)", "list(answers[name])"),
    ("io.streams.files", "                if chunk.n_rows:", "                if len(chunk.X):"),
    # pipes
    ("io.streams.tables", "columns.knowing(labels.take(~bad))", "columns.knowing(labels)"),
    (
        "io.streams.csv",
        "(block := self._block()) is not None:\n            seen",
        "(block := None) is not None:\n            seen",
    ),
    ("io.streams.schema", "    if len(values) < 3 or not (steps > 0).all():", "    if True:"),
    ("io.streams.csv", "given_up = len(data) - line > records.LONGEST_QUOTED or", "given_up ="),
    ("io.streams.csv", "LONGEST_QUOTED or closed_wrongly(data, opened)", "LONGEST_QUOTED"),
    ("io.streams.csv", "look = _AFTER_A_FAULT if self._after_fault else", "look ="),
    ("io.streams.csv", "return (line, _OPEN_QUOTE) if given_up", "return (len(data), _OPEN_QUOTE) if given_up"),
    # labels and dates
    ("io.streams.csv", 'data.decode("utf-8", "surrogateescape")', 'data.decode("utf-8", "replace")'),
    ("io.streams.tables", "value.encode()", "pass"),
    ("base.validation", "    _refuse_times(X)\n", ""),
    # all or nothing
    ("readout.modal", "self._votes, self._made = aligned(self._votes), None", "self._made = None"),
    ("base.estimator", "self._state._make(map(aligned, self._state))", "self._state"),
    ("readout._evidence", "{name: aligned(array) for name, array in state.items()}", "state"),
    (
        "readout._estimator",
        "        self._notify()\n        return self\n\n    def _new_network",
        "        return self\n\n    def _new_network",
    ),
    # unclear messages
    (
        "io.streams.sources",
        'except (AttributeError, ValueError, OSError) as problem:\n        raise SourceError("standard',
        'except LookupError as problem:\n        raise SourceError("standard',
    ),
    ("io.persistence.atomic", "if target.exists() and not target.is_file():", "if False:"),
    ("core.allocation", "if n_bytes > _MOST_BYTES:", "if False:"),
    ("paper.datasets.sources", "    except Exception as problem:", "    except LookupError as problem:"),
    ("paper.datasets.raw", "if len(content) > LARGEST:", "if False:"),
    ("io.streams.arrays", "if first_byte > _LONGEST_HEADER:", "if False:"),
    (
        "core.parameters",
        "        except OverflowError:\n            return False",
        "        except LookupError:\n            return False",
    ),
    ("core.parameters", "least <= int(v) <= _MOST", "least <= int(v)"),
    ("io.streams.files", "if n_rows is not None and n_rows != len(given.codes):", "if False:"),
    ("io.streams.files", "    if given is not None and first != len(given.codes):", "    if False:"),
    # files left behind, replaced, or confused with others
    ("io.persistence.atomic", "    _remove_abandoned(target)\n    temporary", "    temporary"),
    ("app.commands._models", "os.path.realpath(file)) in taken:", "os.path.realpath(file)) in ():"),
    ("app.commands.predict", "    refuse_overlap({", "    len({"),
    ("io.persistence.atomic", "if not target.parent.is_dir():", "if False:"),
    ("app.commands.datasets", 'options.action == "verify" and not matches', "False"),
    ("app.commands.inspect", 'printable(text).replace("\\n", "\\\\n")', "text"),
    ("io.streams.errors", 'remedy = "fix it" if in_place', 'remedy = "fix it" if True'),
)

NAMED: tuple[Change, ...] = NOTICED_TOO_LATE + UNDONE

"""Fleets on one machine: the bytes of a plain loop, each event once, and no loss after kills or bad input."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ccmem import CheckpointError, load
from ccmem.cli import main
from ccmem.fleet.store import Store
from fleet_rows import N_KEYS, N_ROWS, content, files, plain_loop, rows

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

FIRST = ["--key", "machine", "--order", "time", "--scale", "standard", "--param", "n_slots=2", "--buckets", "4"]


def learn(*arguments: Any) -> int:
    return main(["fleet", "learn", *map(str, arguments), "--workers", "1"])


def test_the_bytes_are_those_of_a_plain_loop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = files(tmp_path)
    assert learn(first, "--store", tmp_path / "s", *FIRST) == 0
    assert learn(first, second, "--store", tmp_path / "s", "--json", "--round-rows", 1000) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (told["keys"], told["files"], told["rows"], told["late"]) == (N_KEYS, 1, N_KEYS * N_ROWS // 2, 0)
    assert told["rounds"] == 2
    states, events = plain_loop()
    assert content(tmp_path / "s") == (states, sorted(tuple(event) for event in events))
    assert len(events) >= N_KEYS // 2
    assert learn(first, second, "--store", tmp_path / "s") == 0
    assert "nothing new" in capsys.readouterr().out
    names = {file.name for file in (tmp_path / "s").rglob("*") if file.is_file() and file.parent.name != "events"}
    assert names == {"recipe.safetensors", "manifest.json", *(f"bucket-{bucket:03d}.arrow" for bucket in range(4))}


def test_inspect_predict_and_export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sources, store = files(tmp_path), str(tmp_path / "s")
    assert learn(*sources, "--store", store, *FIRST) == 0
    capsys.readouterr()
    assert main(["fleet", "inspect", "--store", store, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["keys"], facts["rows"], facts["features"]) == (N_KEYS, N_KEYS * N_ROWS, ["a", "b", "c"])
    assert main(["fleet", "inspect", "m3", "--store", store]) == 0
    assert "new_block 0 -> 1" in capsys.readouterr().out
    assert main(["fleet", "predict", *sources, "--store", store, "--out", str(tmp_path / "o.parquet")]) == 0
    answers = parquet.read_table(tmp_path / "o.parquet")
    assert answers.num_rows == N_KEYS * N_ROWS
    assert main(["fleet", "export", "m3", "--store", store, "--out", str(tmp_path / "m3")]) == 0
    memory, member = load(tmp_path / "m3"), Store(store).member("m3")
    np.testing.assert_array_equal(memory.prototypes_, member.memory.prototypes_)
    mine = answers.filter(pa.compute.equal(answers.column("machine"), "m3"))
    table = rows()
    given = table.filter(pa.compute.equal(table.column("machine"), "m3"))
    X = np.stack([given.column(name).to_numpy() for name in "abc"], axis=1)
    assert member.scale is not None
    wanted = dict(zip(given.column("time").to_pylist(), memory.predict(member.scale.apply(X)).tolist(), strict=True))
    assert {row["time"]: row["unit"] for row in mine.to_pylist()} == wanted
    assert main(["fleet", "export", "m9", "--store", store, "--out", str(tmp_path / "m9")]) == 1
    assert "no memory for 'm9'" in capsys.readouterr().err


def test_csv_that_grows_and_keys_that_are_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from pyarrow import csv

    table, log, store = rows(text=False), tmp_path / "log.csv", tmp_path / "s"
    csv.write_csv(table, tmp_path / "all.csv")
    lines = (tmp_path / "all.csv").read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:900]) + lines[900][:4])  # an incomplete last line
    assert learn(log, "--store", store, *FIRST) == 0
    assert learn(log, "--store", store) == 0
    assert "nothing new" in capsys.readouterr().out
    log.write_bytes(b"".join(lines))
    assert learn(log, "--store", store) == 0
    states, events = content(store)
    assert learn(tmp_path / "all.csv", "--store", tmp_path / "t", *FIRST) == 0
    assert content(tmp_path / "t") == (states, events)
    assert set(states) == set(range(N_KEYS))
    log.write_bytes(b"".join(lines[:1] + lines[2:]))
    assert learn(log, "--store", store) == 1
    assert "differs from the file that was learned" in capsys.readouterr().err


def test_a_german_csv_gives_the_memories_of_a_parquet_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = rows()
    parquet.write_table(table, tmp_path / "rows.parquet")
    assert learn(tmp_path / "rows.parquet", "--store", tmp_path / "p", *FIRST) == 0
    lines = ["Anlage 7;;;;;", "machine;time;a;b;c;Nr", ";;°C;mbar;l/s;"]
    for n, row in enumerate(table.to_pylist()):
        cells = [row["machine"], str(row["time"]), *(repr(row[name]).replace(".", ",") for name in "abc"), str(n)]
        lines.append(";".join(cells))
    for encoding in ("cp1252", "utf-16"):
        (tmp_path / "rows.txt").write_bytes("\r\n".join([*lines, ""]).encode(encoding))
        assert learn(tmp_path / "rows.txt", "--store", tmp_path / encoding, *FIRST) == 0
        assert Store(tmp_path / encoding).columns.features == ("a", "b", "c")
        assert content(tmp_path / encoding) == content(tmp_path / "p")


def test_a_key_that_is_not_text_makes_a_bad_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["key,time,x", *(f"k{t % 3},{t},{t % 7}" for t in range(4000)), "ké,4000,1", ""]
    (tmp_path / "a.csv").write_bytes("\n".join(lines).encode("latin-1"))
    named = ["--key", "key", "--order", "time", "--buckets", "2"]
    assert learn(tmp_path / "a.csv", "--store", tmp_path / "s", *named) == 1
    assert "row 4001, column 'key': 'k\ufffd' is not UTF-8 text" in capsys.readouterr().err
    assert learn(tmp_path / "a.csv", "--store", tmp_path / "t", *named, "--on-bad-row", "skip", "--json") == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (told["rows"], told["bad"], told["keys"]) == (4000, 1, 3)


def test_a_bad_value_costs_its_own_row_only(tmp_path: Path) -> None:
    lines = ["key,time,x", *(f"k{t % 3},{t},{t % 7}" for t in range(300)), "k1,300,oops", "k1,301,2", ""]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    named = ["--key", "key", "--order", "time", "--on-bad-row", "skip"]
    assert learn(tmp_path / "a.csv", "--store", tmp_path / "s", *named) == 0
    store = Store(tmp_path / "s")
    assert store.manifest["totals"]["bad"] == 1
    assert [store.member(key).rows for key in ("k0", "k1", "k2")] == [100, 101, 100]


def test_times_and_keys_of_a_csv(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    lines = ["key,when,x,y"]
    for minute in range(40):
        x, y = rng.normal(size=2)
        lines.append(
            f"007,{3 + minute // 60:02d}/02/2015 {minute // 60:02d}:{minute % 60:02d},{x},{y if minute else 'off'}"
        )
    (tmp_path / "t.csv").write_text("\n".join([*lines, ""]))
    named = ["--key", "key", "--order", "when", "--day-first"]
    assert learn(tmp_path / "t.csv", "--store", tmp_path / "s", *named) == 1
    assert "row 1, column 'y': 'off' is not a number" in capsys.readouterr().err
    assert learn(tmp_path / "t.csv", "--store", tmp_path / "t", *named, "--missing", "off") == 0
    store = Store(tmp_path / "t")
    assert (store.columns.key_type, store.columns.order_type) == ("string", "timestamp[ns]")
    last = np.datetime64("2015-02-03T00:39", "ns").astype(np.int64)
    assert store.member("007").last == last
    assert learn(tmp_path / "t.csv", "--store", tmp_path / "v", "--key", "x", "--order", "y", "--features", "when") == 1


def test_labels(tmp_path: Path) -> None:
    table = rows()
    labels = pa.array(["night" if t // 260 % 2 else "day" for t in table.column("time").to_pylist()])
    parquet.write_table(table.append_column("state", labels), tmp_path / "l.parquet")
    assert learn(tmp_path / "l.parquet", "--store", tmp_path / "s", *FIRST, "--label", "state") == 0
    out = str(tmp_path / "o.csv")
    assert main(["fleet", "predict", str(tmp_path / "l.parquet"), "--store", str(tmp_path / "s"), "--out", out]) == 0
    assert Store(tmp_path / "s").member("m1").model.classes_.tolist() == ["day", "night"]
    given = [line.split(",")[-1].strip('"') for line in Path(out).read_text().splitlines()[1:]]
    assert np.mean(np.array(given) == np.array(labels.to_pylist())) > 0.65  # chance level is one half


# Bad input ----------------------------------------------------------------------------------------------------------


def test_bad_input_is_named_and_nothing_is_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = files(tmp_path)
    store = tmp_path / "s"

    def refused(*arguments: Any) -> str:
        assert learn(*arguments) == 1
        return capsys.readouterr().err

    assert "needs --key and --order" in refused(first, "--store", store)
    assert "no column 'machine_id' for the key" in refused(
        first, "--store", store, "--key", "machine_id", "--order", "time"
    )
    assert "no column 'when' for the order" in refused(first, "--store", store, "--key", "machine", "--order", "when")
    assert "is of type string; it must be numbers" in refused(
        first, "--store", store, "--key", "time", "--order", "machine"
    )
    assert "keys are whole numbers or text" in refused(first, "--store", store, "--key", "a", "--order", "time")
    assert not store.exists()
    assert learn(first, "--store", store, *FIRST) == 0
    before = content(store)
    assert "--scale unit (it has standard)" in refused(second, "--store", store, "--scale", "unit")
    assert "--param n_slots=3 (it has 2)" in refused(second, "--store", store, "--param", "n_slots=3")
    table = rows()
    for name, value, word in (
        ("machine", None, "the key is missing"),
        ("machine", "", "the key is missing"),
        ("time", None, "the order is missing"),
        ("a", float("inf"), "inf is too large"),
        ("a", 1e30, "e+30 is too large"),
    ):
        values = table.column(name).to_pylist()
        values[1200] = value
        place = table.column_names.index(name)
        parquet.write_table(
            table.set_column(place, name, pa.array(values, table.column(name).type)), tmp_path / "bad.parquet"
        )
        told = refused(tmp_path / "bad.parquet", "--store", store)
        assert word in told
        assert f"row 1201, column {name!r}" in told
        assert content(store) == before
    parquet.write_table(table.drop_columns(["b"]), tmp_path / "bad.parquet")
    assert "no column 'b'" in refused(tmp_path / "bad.parquet", "--store", store)
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 is not enough")
    assert "bad.parquet" in refused(tmp_path / "bad.parquet", "--store", store)
    assert content(store) == before
    assert learn(second, "--store", store) == 0
    states, events = plain_loop()
    assert content(store) == (states, sorted(tuple(event) for event in events))


def test_late_rows_stop_or_are_dropped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = files(tmp_path)
    assert learn(second, "--store", tmp_path / "s", *FIRST) == 0
    before = content(tmp_path / "s")
    assert learn(first, "--store", tmp_path / "s") == 1
    assert "is not after the last one learned" in capsys.readouterr().err
    assert content(tmp_path / "s") == before
    assert learn(first, "--store", tmp_path / "s", "--late", "drop", "--json") == 0
    assert json.loads(capsys.readouterr().out)["late"] == N_KEYS * N_ROWS // 2
    assert content(tmp_path / "s") == before


def test_other_versions_and_damage_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = files(tmp_path)
    store = tmp_path / "s"
    assert learn(first, "--store", store, *FIRST) == 0
    good = (store / "manifest.json").read_text()
    (store / "manifest.json").write_text(good.replace('"version": 3', '"version": 7'))
    assert learn(second, "--store", store) == 1
    assert "store of version 7" in capsys.readouterr().err
    nonsense = [
        {},
        {"buckets": -3},
        {"buckets": 10**11},
        {"buckets": "4"},
        {"round": None},
        {"totals": 0},
        {"files": []},
    ]
    nonsense += [{"totals": {"rows": -1}}, {"files": {"a.csv": 3}}, {"current": 7}, {"current": {}}]
    under_way = {"round": 1, "pieces": [], "files": {}}
    nonsense += [{"current": {**under_way, name: "x"}} for name in under_way]
    for change in nonsense:
        damaged = {**json.loads(good), **change} if change else {"version": 3}
        (store / "manifest.json").write_text(json.dumps(damaged))
        with pytest.raises(CheckpointError, match="its fields are not those of a manifest"):
            Store(store)
    for was, becomes in [('"buckets": 4', '"buckets": 5'), ('"round": 1', '"round": 2'), ('"rows": ', '"rows": 1')]:
        assert was in good
        (store / "manifest.json").write_text(good.replace(was, becomes))
        with pytest.raises(CheckpointError, match="does not match its digest: it was altered"):
            Store(store)
    (store / "manifest.json").write_text("[" * 100_000)
    with pytest.raises(CheckpointError, match="is damaged"):
        Store(store)
    (store / "manifest.json").write_text(good)
    bucket = store / "memories" / "bucket-001.arrow"
    data = bucket.read_bytes()
    bucket.write_bytes(data[: len(data) // 2])
    assert learn(second, "--store", store) == 1
    assert "bucket-001.arrow is damaged" in capsys.readouterr().err
    messages = []
    for place in range(0, len(data), 53):
        bucket.write_bytes(data[:place] + bytes([data[place] ^ 255]) + data[place + 1 :])
        try:
            assert len(dict(Store(store).states(1))) > 0
        except CheckpointError as problem:
            messages.append(str(problem))
    assert len(messages) > 10
    assert all("bucket-001.arrow" in message for message in messages)
    bucket.write_bytes(data)
    assert learn(second, "--store", store) == 0
    states, _ = plain_loop()
    assert content(store)[0] == states


def test_a_part_of_a_store_that_was_restored_by_itself_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = files(tmp_path)
    store, old, other = tmp_path / "s", tmp_path / "old", tmp_path / "other"
    assert learn(first, "--store", store, *FIRST) == 0
    assert learn(second, "--store", other, *FIRST) == 0
    shutil.copytree(store, old)
    assert learn(second, "--store", store) == 0
    shutil.copytree(store, tmp_path / "good")
    capsys.readouterr()
    parts = {
        old / "manifest.json": "is newer than the one that manifest.json names",
        old / "memories" / "bucket-001.arrow": "is older than the one that manifest.json names",
        other / "memories" / "bucket-001.arrow": "is older than the one",
        tmp_path / "good" / "memories" / "bucket-002.arrow": "bucket-001.arrow is not the one",
    }
    for part, why in parts.items():
        name = "bucket-001.arrow" if part.suffix == ".arrow" else part.name
        target = store / part.relative_to(part.parents[1 if part.suffix == ".arrow" else 0]).with_name(name)
        target.write_bytes(part.read_bytes())
        assert learn(first, second, "--store", store) == 1
        told = capsys.readouterr().err
        assert why in told
        assert "restore the whole folder" in told
        shutil.rmtree(store)
        shutil.copytree(tmp_path / "good", store)
    (store / "recipe.safetensors").write_bytes(_other_recipe(tmp_path))
    assert learn(second, "--store", store) == 1
    assert "has a recipe that its manifest does not name" in capsys.readouterr().err


def _other_recipe(folder: Path) -> bytes:
    assert learn(*files(folder), "--store", folder / "another", *FIRST, "--param", "n_slots=3") == 0
    return (folder / "another" / "recipe.safetensors").read_bytes()


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = files(tmp_path)
    assert learn(first, "--store", tmp_path / "s", *FIRST) == 0
    states, events = plain_loop()
    for room in range(0, 30, 3):
        left = [room]

        def full(handle: int, left: list[int] = left, sync: Any = os.fsync) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise OSError(28, "No space left on device")
            sync(handle)

        monkeypatch.setattr(os, "fsync", full)
        code = learn(second, "--store", tmp_path / "s")
        monkeypatch.undo()
        if code == 0:
            break
        assert code == 1
        for key, state in content(tmp_path / "s")[0].items():
            assert len(state) <= len(states[key]) * 2
    assert learn(second, "--store", tmp_path / "s") == 0
    assert content(tmp_path / "s") == (states, sorted(tuple(event) for event in events))


@pytest.mark.skipif(os.name != "posix", reason="needs limits of file sizes")
def test_writes_that_fail_midway_are_told_and_nothing_is_lost(tmp_path: Path) -> None:
    """Simulate a disk that fills up during a write by a limit on the size of files."""
    first, second = files(tmp_path)
    assert learn(first, "--store", tmp_path / "s", *FIRST) == 0
    before = content(tmp_path / "s")
    program = """
import resource, signal, sys
from ccmem.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
for most in (2_000, 9_000, 12_000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
    assert main(sys.argv[1:]) == 1
"""
    command = ["fleet", "learn", second, "--store", str(tmp_path / "s"), "--workers", "1", "--quiet"]
    done = subprocess.run([sys.executable, "-c", program, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = r"File too large; make room and run the command again: nothing is lost: '.*/s/[^']+'"
    assert len(re.findall(told, done.stderr)) == 3, done.stderr
    assert "Traceback" not in done.stderr
    assert content(tmp_path / "s") == before
    assert learn(second, "--store", tmp_path / "s") == 0
    states, events = plain_loop()
    assert content(tmp_path / "s") == (states, sorted(tuple(event) for event in events))


# Kills --------------------------------------------------------------------------------------------------------------

# One process imports once, then forks a child for every attempt, which kills itself around its n-th rename.
KILLER = """
import os, signal, sys
from pathlib import Path
from ccmem.cli import main
import ccmem.fleet.local, pyarrow.parquet

before, command, rename = sys.argv[1] == "before", sys.argv[2:], Path.replace

def attempt(place):
    child = os.fork()
    if child == 0:
        code, count = 1, [0]
        def replace(self, target):
            count[0] += 1
            if count[0] == place and before:
                os.kill(os.getpid(), signal.SIGKILL)
            rename(self, target)
            if count[0] == place:
                os.kill(os.getpid(), signal.SIGKILL)
        Path.replace = replace
        try:
            code = main(command)
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1]

place, kills = 1, 0
while os.WIFSIGNALED(status := attempt(place)):
    kills, place = kills + 1, place % 5 + 1
assert os.WEXITSTATUS(status) == 0, status
print(kills)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs fork and signals")
@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_around_any_rename_a_run_ends_as_if_nothing_had_been(tmp_path: Path, when: str) -> None:
    sources = files(tmp_path)
    command = ["fleet", "learn", *sources, "--store", str(tmp_path / "s"), *FIRST, "--workers", "1", "--quiet"]
    command += ["--round-rows", "700"]
    done = subprocess.run([sys.executable, "-c", KILLER, when, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 5
    states, events = plain_loop()
    assert content(tmp_path / "s") == (states, sorted(tuple(event) for event in events))
    left = {file.name for file in (tmp_path / "s").rglob("*") if file.suffix in (".tmp", ".ccmem-lock")}
    assert left <= {".manifest.json.ccmem-lock"}
    assert list((tmp_path / "s" / "work").iterdir()) == []
    shutil.rmtree(tmp_path / "s")


def test_one_row_is_enough_to_begin_with(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("key,order,a,b\npump,1,0.5,1.5\n")
    assert learn(tmp_path / "one.csv", "--key", "key", "--order", "order", "--store", tmp_path / "store") == 0
    assert set(content(tmp_path / "store")[0]) == {"pump"}

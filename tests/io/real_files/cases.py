"""Files as programs write them: spreadsheets, loggers, R, pandas, controllers; each with what must be read from it.

    python tests/io/real_files/cases.py FOLDER      write all of them, to look at

All hold the same recording: 900 rows, a minute apart, of three sensors that change after 300 rows and return to the
first state after 600. Every file that is read must therefore give a new block and a recall.
"""

from __future__ import annotations

import gzip
import io
import json
import sys
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROWS = 900
START = datetime(2015, 2, 4, 17, 51, tzinfo=UTC)
SENSORS = ("temperature", "pressure", "flow")


class Case(NamedTuple):
    """A file, the options it is read with, and what must come out."""

    name: str
    content: bytes
    columns: tuple[str, ...] = SENSORS
    rows: int = ROWS
    time: str | None = None
    """The time column; None if there is none."""
    options: tuple[str, ...] = ()
    exit_code: int = 0
    says: str = ""
    """Part of the report, or of the error."""
    first_event: str | None = "4 Feb 2015"
    """Beginning of the time of the first event, where there is a time."""


def recording() -> list[tuple[datetime, float, float, float]]:
    """Return time and values of every row."""
    rng = np.random.default_rng(7)
    levels = np.repeat([[21.0, 1013.25, 5.0], [24.0, 1009.5, 6.5], [21.0, 1013.25, 5.0]], ROWS // 3, axis=0)
    values = rng.normal(levels, [0.2, 0.4, 0.1]).round(3)
    return [(START + timedelta(minutes=i), *row) for i, row in enumerate(values.tolist())]


DATA = recording()


def table(
    row: Callable[[int, datetime, list[float]], str], header: str | None = None, end: str = "\n", first: str = ""
) -> str:
    """Return a text of one line per row."""
    lines = [row(i, when, list(values)) for i, (when, *values) in enumerate(DATA)]
    return first + "".join(line + end for line in ([] if header is None else [header]) + lines)


def plain(values: list[float], delimiter: str = ",", decimal: str = ".") -> str:
    """Return values between delimiters."""
    return delimiter.join(f"{value:.3f}".replace(".", decimal) for value in values)


def grouped(value: float, point: str, group: str) -> str:
    """Return a value with grouped thousands."""
    return f"{value:,.2f}".replace(",", "\0").replace(".", point).replace("\0", group)


def cases() -> Iterator[Case]:
    """Yield all cases."""
    yield from pandas_files()
    yield from r_files()
    yield from german_files()
    yield from american_files()
    yield from logger_files()
    yield from controller_files()
    yield from typeset_files()
    yield from refused_files()


def pandas_files() -> Iterator[Case]:
    """Yield what pandas writes."""
    stamped = table(lambda i, t, v: f"{t:%Y-%m-%d %H:%M:%S},{plain(v)}", "timestamp,temperature,pressure,flow")
    yield Case("pandas.csv", stamped.encode(), time="timestamp")
    yield Case("pandas-packed.csv", gzip.compress(stamped.encode(), mtime=0), time="timestamp")
    index = table(lambda i, t, v: f"{i},{plain(v)}", ",temperature,pressure,flow")
    yield Case("pandas-index.csv", index.encode(), says="c1: a row counter (such as '0')")
    first_missing = stamped.replace(f",{plain(list(DATA[0][1:]))}\n", ",NA,1013.250,5.000\n", 1)
    yield Case("pandas-missing-first.csv", first_missing.encode(), time="timestamp")
    gaps = table(
        lambda i, t, v: f"{t:%Y-%m-%dT%H:%M:%S},{'' if i % 7 == 0 else v[0]},{v[1]},{'NaN' if i % 11 == 0 else v[2]}",
        "ds,temperature,pressure,flow",
    )
    yield Case("pandas-gaps.csv", gaps.encode(), time="ds")
    lines = "".join(
        json.dumps({"ts": f"{t:%Y-%m-%dT%H:%M:%SZ}", **dict(zip(SENSORS, v, strict=True))}) + "\n" for t, *v in DATA
    )
    yield Case("pandas-lines.log", lines.encode(), time="ts")
    sink = io.BytesIO()
    np.savez(sink, **{name: np.array([row[i + 1] for row in DATA]) for i, name in enumerate(SENSORS)})
    yield Case("numpy.dat", sink.getvalue())


def r_files() -> Iterator[Case]:
    """Yield what R writes."""
    quoted = ",".join(f'"{name}"' for name in SENSORS)
    rows = table(lambda i, t, v: f'"{i + 1}",{plain(v)}', f'"",{quoted}')
    yield Case("r-write-csv.csv", rows.encode(), says="c1: a row counter (such as '1')")
    names = " ".join(f'"{name}"' for name in ("date", *SENSORS))
    spaced = table(lambda i, t, v: f'"{i + 1}" "{t:%Y-%m-%d %H:%M:%S}" {plain(v, " ")}', names)
    yield Case("r-write-table.txt", spaced.encode(), time="date", says="row: a row counter")
    occupancy = table(
        lambda i, t, v: f'"{i + 1}","{t:%Y-%m-%d %H:%M:%S}",{plain(v)},{int(300 <= i < 600)}',
        '"date","Temperature","Humidity","Light","Occupancy"',
    )
    named = ("Temperature", "Humidity", "Light")
    yield Case("datatraining.txt", occupancy.encode(), (*named, "Occupancy"), time="date")
    yield Case("datatest.txt", occupancy.encode(), named, time="date", options=("--label", "Occupancy"))
    header = "\t".join(("when", "empty", *SENSORS))
    missing = table(lambda i, t, v: f"{t:%Y-%m-%d}T{t:%H:%M}\tNA\t{plain(v, chr(9))}", header)
    yield Case("r-na.tsv", missing.encode(), time="when", says="empty: empty in the first 300 rows")


def german_files() -> Iterator[Case]:
    """Yield what programs write on German computers."""
    named = ("Temperatur (°C)", "Druck (hPa)", "Durchfluss")
    header = "Zeit;" + ";".join(named)
    rows = table(lambda i, t, v: f"{t:%d.%m.%Y %H:%M};{plain(v, ';', ',')}", header, "\r\n")
    yield Case("excel-de.csv", rows.encode("cp1252"), named, time="Zeit")
    yield Case("excel-de-unicode.txt", rows.replace(";", "\t").encode("utf-16"), named, time="Zeit")
    yield Case("excel-de-sep.csv", ("sep=;\r\n" + rows).encode("utf-8-sig"), named, time="Zeit")
    thousands = table(
        lambda i, t, v: f"{t:%d.%m.%y %H:%M:%S};{';'.join(grouped(x, ',', '.') for x in (v[0], 100 * v[1], v[2]))}",
        "Zeit;temperature;pressure;flow",
    )
    yield Case("leitstand.csv", thousands.encode(), time="Zeit")
    split = table(
        lambda i, t, v: f"{t:%d.%m.%Y};{t:%H.%M.%S};{plain(v, ';', ',')};;", "Date;Time;temperature;pressure;flow;;"
    )
    yield Case("air-quality.csv", split.encode(), time="Date,Time")
    logger = table(
        lambda i, t, v: f"{i};{t:%d.%m.%Y %H:%M:%S};{plain(v, ';', ',')}",
        "Nr.;Zeitstempel;temperature;pressure;flow\n;;°C;hPa;l/min",
        first="Gerät: XR-20\nSeriennummer: 4711\n\n",
    )
    yield Case("almemo.csv", logger.encode(), time="Zeitstempel", says="Nr.: a row counter")
    three = table(lambda i, t, v: f"{t:%Y-%m-%d %H:%M:%S};{plain(v, ';', ',')}", "t;temperature;pressure;flow")
    yield Case("drei-stellen.csv", three.encode(), time="t")
    yield Case("vorgabe.csv", three.encode(), time="t", options=("--decimal", ","))


def american_files() -> Iterator[Case]:
    """Yield what spreadsheets write on American and British computers."""
    hour = "%I:%M:%S %p"
    us = table(
        lambda i, t, v: f"{t.month}/{t.day}/{t.year} {t:{hour}},{plain(v)}", "Time,temperature,pressure,flow", "\r\n"
    )
    yield Case("excel-us.csv", us.encode("utf-8-sig"), time="Time")
    yield Case("excel-mac.csv", us.replace("\r\n", "\r").encode(), time="Time")
    uk = table(lambda i, t, v: f"{t:%d/%m/%Y %H:%M},{plain(v)}", "Date,temperature,pressure,flow")
    yield Case("excel-uk.csv", uk.encode(), time="Date", options=("--day-first",))
    group = table(
        lambda i, t, v: f'{t:%Y-%m-%d %H:%M},{v[0]},"{grouped(100 * v[1], ".", ",")}",{v[2]}',
        "Date,temperature,pressure,flow",
    )
    yield Case("quickbooks.csv", group.encode(), time="Date")
    bars = table(lambda i, t, v: f"{t:%Y-%m-%d %H:%M}|{plain(v, '|')}", "Date|temperature|pressure|flow")
    yield Case("mainframe.txt", bars.encode(), time="Date")
    twice = table(lambda i, t, v: plain(v), "temperature,sensor,sensor")
    yield Case("two-names.csv", twice.encode(), ("temperature", "sensor", "sensor.2"))
    serial = table(lambda i, t, v: f"{42039 + 0.74375 + i / 1440:.6f},{plain(v)}", "Date,temperature,pressure,flow")
    yield Case("excel-serial.csv", serial.encode(), time="Date")


def logger_files() -> Iterator[Case]:
    """Yield what data loggers write."""
    bare = ("c2", "c3", "c4")
    no_names = table(lambda i, t, v: f"{t:%Y-%m-%d %H:%M:%S},{plain(v)}")
    yield Case("logger.dat", no_names.encode(), bare, time="c1")
    numbers = table(lambda i, t, v: "  " + "   ".join(f"{value:.7e}" for value in v))
    yield Case("te.dat", numbers.encode(), ("c1", "c2", "c3"))
    comments = table(
        lambda i, t, v: f"{t:%Y/%m/%d %H:%M:%S}\t{plain(v, chr(9))}",
        "time\ttemperature\tpressure\tflow",
        first="# logger 7\n# firmware 1.2\n",
    )
    yield Case("comments.txt", comments.encode(), time="time")
    for unit, size in (("s", 1), ("ms", 1000), ("us", 10**6), ("ns", 10**9)):
        epoch = table(
            lambda i, t, v, size=size: f"{int(t.timestamp()) * size},{plain(v)}", "ts,temperature,pressure,flow"
        )
        yield Case(f"epoch-{unit}.csv", epoch.encode(), time="ts")
    zone = table(
        lambda i, t, v: f"{t + timedelta(hours=1):%Y-%m-%dT%H:%M:%S}+01:00,{plain(v)}", "time,temperature,pressure,flow"
    )
    yield Case("zone.csv", zone.encode(), time="time")
    elapsed = table(lambda i, t, v: f"{0.02 * i:.2f},{plain(v)}", "t,temperature,pressure,flow")
    yield Case("elapsed.csv", elapsed.encode(), says="t: an elapsed time, in steps of 0.02")
    lines = no_names.splitlines(keepends=True)
    gap = "".join([*lines[:100], *lines[160:200], lines[198], *lines[200:]])
    yield Case(
        "gap.log", gap.encode(), bare, rows=841, time="c1", says="1 gap of more than 5 intervals, the longest 1 h 1 min"
    )
    counts = "".join(
        json.dumps({"t": int(t.timestamp() * 1000), "v": {"a": 1}, **dict(zip(SENSORS, v, strict=True))}) + "\n"
        for t, *v in DATA
    )
    yield Case("mqtt.jsonl", counts.encode(), time="t")


def controller_files() -> Iterator[Case]:
    """Yield dumps of programmable controllers."""
    dump = table(
        lambda i, t, v: (
            f"{100000 + 3 * i + i % 2};{t:%d-%b-%Y %H:%M:%S.%f};{plain(v, ';')};{'TRUE' if i % 50 else 'FALSE'};RUN"
        ),
        "RecordID;TimeStamp;temperature;pressure;flow;MotorOn;State",
    )
    yield Case("plc.csv", dump.encode(), time="TimeStamp", says="RecordID: a running identifier (such as '100000')")
    errors = table(
        lambda i, t, v: f"{t:%Y-%m-%d %H:%M:%S};{'ERR' if i % 90 == 40 else v[0]};{v[1]};{v[2]}",
        "t;temperature;pressure;flow",
    )
    yield Case("plc-errors.csv", errors.encode(), time="t", options=("--missing", "ERR"))
    yield Case("plc-skip.csv", errors.encode(), rows=890, time="t", options=("--on-bad-row", "skip"))
    marks = table(
        lambda i, t, v: f"{t:%Y-%m-%d %H:%M:%S}\t{'?' if i % 9 == 1 else v[0]}\t{'-' if i % 8 == 1 else v[1]}\t{v[2]}",
        "t\ttemperature\tpressure\tflow",
    )
    yield Case("plc-marks.txt", marks.encode(), time="t")
    named = table(
        lambda i, t, v: f"{t:%Y-%m-%d %H:%M:%S};{plain(v, ';')}",
        "t;temperature;pressure;flow",
        first="PLC;S7-1500\nExport;2015-02-04\n\n",
    )
    yield Case("plc-preamble.csv", named.encode(), time="t")
    types = table(lambda i, t, v: plain(v), ",".join(SENSORS) + "\n°C,hPa,l/s\nREAL,REAL,LREAL")
    yield Case("plc-types.csv", types.encode())
    groups = table(lambda i, t, v: plain(v), "Pump 1,Pump 1,Pump 2\ntemp,press,flow")
    yield Case("plc-groups.csv", groups.encode(), ("Pump 1 temp", "Pump 1 press", "Pump 2 flow"))
    footer = table(lambda i, t, v: plain(v), ",".join(SENSORS)) + "Total rows: 900\n"
    yield Case("plc-footer.csv", footer.encode(), options=("--on-bad-row", "skip"))
    code = table(lambda i, t, v: f"{v[0] if i % 30 else -9999:.2f},{v[1]},{v[2]}", ",".join(SENSORS))
    yield Case("plc-code.csv", code.encode(), options=("--missing=-9999.00",))
    packed = table(lambda i, t, v: f"{t:%Y%m%dT%H%M%S},{plain(v)}", "stamp,temperature,pressure,flow")
    yield Case("historian.csv", packed.encode(), time="stamp")


def typeset_files() -> Iterator[Case]:
    """Yield files with the digit groups and signs of typesetters, and names in a comment."""
    for name, space, encoding in (
        ("french.csv", "\u202f", "utf-8"),
        ("french-old.csv", "\xa0", "cp1252"),
        ("french-utf8.csv", "\xa0", "utf-8"),
        ("swiss.csv", "\u2019", "utf-8"),
    ):
        rows = table(
            lambda i, t, v: f"{v[0]};{1000 * v[1]:,.1f};{v[2]}".replace(",", " ").replace(".", ","), ";".join(SENSORS)
        )
        yield Case(name, rows.replace(" ", space).encode(encoding))
    minus = table(lambda i, t, v: f"\u2212{v[0]},{v[1]},{v[2]}", ",".join(SENSORS))
    yield Case("minus.csv", minus.encode())
    points = table(
        lambda i, t, v: f"{200 * (v[1] - 1007.5):,.0f};{1000 * v[2]:.0f};{1000 * v[0]:.0f}".replace(",", "."),
        "pressure;flow;temperature",
    )
    yield Case("points.csv", points.encode(), ("pressure", "flow", "temperature"))
    title = table(lambda i, t, v: plain(v), ",".join(SENSORS), first="Messprotokoll,,\n,,\n")
    yield Case("title.csv", title.encode())
    few = table(lambda i, t, v: plain(v) + ",,", ",".join(SENSORS))
    yield Case("few-names.csv", few.encode(), says="c5: empty in the first 300 rows")
    comment = table(lambda i, t, v: plain(v), "# " + ",".join(SENSORS))
    yield Case("savetxt.txt", comment.encode())


def refused_files() -> Iterator[Case]:
    """Yield files that must be refused with advice."""
    long = "time,sensor,value\n" + "".join(
        f"{t:%Y-%m-%d %H:%M},{name},{value}\n" for t, *v in DATA for name, value in zip(SENSORS, v, strict=True)
    )
    yield Case("long.csv", long.encode(), exit_code=2, says="one reading a row: the values of 'sensor' share")
    errors = table(lambda i, t, v: f"{'ERR' if i == 40 else v[0]},{v[1]},{v[2]}", ",".join(SENSORS))
    yield Case("error.csv", errors.encode(), exit_code=1, says="row 41, column 'temperature': 'ERR' is not a number")
    units = table(lambda i, t, v: f"{v[0]} C;{v[1]} hPa;{v[2]} l;{i % 5}", "temperature;pressure;flow;mode")
    yield Case("units.csv", units.encode(), exit_code=2, says="learned from one column, 'mode', out of 4")
    texts = table(lambda i, t, v: "on,warm", "pump,weather")
    yield Case("texts.csv", texts.encode(), exit_code=2, says="pump: text, only 'on' in the first rows")
    yield Case("names.csv", b"temperature,pressure\n", exit_code=2, says="no row has been learned from")
    yield Case("page.csv", b"<!DOCTYPE html><html><body>no data</body></html>", exit_code=1, says="a web page")
    yield Case("array.json", b'[{"a": 1}, {"a": 2}]', exit_code=1, says="write one object per line")
    book = io.BytesIO()
    with zipfile.ZipFile(book, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
    yield Case("book.xlsx", book.getvalue(), exit_code=1, says="an Excel workbook; save the sheet as CSV")
    yield Case("old.xls", b"\xd0\xcf\x11\xe0" + bytes(600), exit_code=1, says="an old Excel workbook")
    ragged = table(lambda i, t, v: plain(v) + (",7" if i == 500 else ""), ",".join(SENSORS))
    yield Case("ragged.csv", ragged.encode(), exit_code=1, says="row 501: has 4 values under 3 column names")


def main() -> None:
    """Write all files to a folder."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for case in cases():
        (folder / case.name).write_bytes(case.content)


if __name__ == "__main__":
    main()

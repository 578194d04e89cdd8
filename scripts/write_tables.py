#!/usr/bin/env python3
"""Writes one log as text tables in several dialects with NumPy and pandas, for the tests of the readers.

usage: scripts/write_tables.py FOLDER      (exit status 77 if a package is missing)
"""
import pathlib
import sys

try:
    import numpy
    import pandas
except ImportError as missing:
    print(missing, file=sys.stderr)
    sys.exit(77)

ROWS = 500


def main():
    folder = pathlib.Path(sys.argv[1])
    t = 0.004 * numpy.arange(ROWS)
    names = ["q1", "q2", "tau1", "tau2"]
    columns = {name: numpy.sin((k + 1.5) * t + k) for k, name in enumerate(names)}
    table = pandas.DataFrame({"t": t, **columns})
    table.to_csv(folder / "plain.csv", index=False)
    table.to_csv(folder / "german.csv", sep=";", decimal=",")
    table.to_csv(folder / "tabs.tsv", sep="\t", index=False)
    numpy.savetxt(folder / "savetxt.txt", table.to_numpy(), header=" ".join(table.columns), fmt="%.17g")
    zero_based = table.rename(columns={"t": "Time", **{f"{q}{k}": f"{q}{k - 1}" for q in ("q", "tau") for k in (1, 2)}})
    zero_based.to_csv(folder / "zero_based.csv", index=False)
    stamps = pandas.Timestamp("2024-05-01 12:00:00") + pandas.to_timedelta(t, unit="s")
    table.assign(t=stamps).rename(columns={"t": "timestamp"}).to_csv(folder / "dates.csv", index=False)


main()

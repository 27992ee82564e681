"""Measure what the performance pages show, and write them.

Run it from the root of a checkout with ``.[bench]`` installed::

    python -m bench.report                          # every section, to docs/performance
    python -m bench.report rounds peers             # only these
    python -m bench.report rounds --only orgfw --only "morgfw float64" --turns 50
    python -m bench.report --quick                  # each section with little work: a look

A section prints its lines as they are found. With all of its work done they become a page, stamped
with the day, the machine, its load and the versions, and pictures beside it.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from inspect import getdoc
from pathlib import Path
from typing import Any, NamedTuple

from threadpoolctl import threadpool_limits

from bench import later_methods, networks, scale
from bench.compare import (
    blas,
    classifiers,
    handicap,
    profile,
    round_times,
    shapes,
    touched,
)
from bench.compare.turns import Work, load
from bench.tables import Columns, marked
from fastfw._files import atomic_write
from fastfw._info import processor
from fastfw.experiments.figures import write_png

PAGES = Path(__file__).resolve().parents[1] / "docs" / "performance"
PACKAGES = (
    "fastfw", "numpy", "numba", "scipy", "scikit-learn",
    "torch", "jax", "copt", "chop-pytorch", "river", "vowpalwabbit",
)  # fmt: skip


def starting(work: Work) -> Iterator[Any]:
    """CPU time of new processes: the least of five times, of a first compare the only one.

    The first `fastfw compare` finds no compiled kernels; quick reports leave it out.
    """
    python = [sys.executable]
    with tempfile.TemporaryDirectory() as cache:
        commands = {
            "import numba": ([*python, "-c", "import numba"], None),
            "import numba, fastfw": ([*python, "-c", "import numba, fastfw"], None),
            "fastfw --help": ([*python, "-m", "fastfw", "--help"], 0.3),
            "first fastfw compare": (
                ["env", f"NUMBA_CACHE_DIR={cache}", *python, "-m", "fastfw", "compare",
                 "--out", f"{cache}/out"], 30.0,
            ),
        }  # fmt: skip
        columns = Columns({"seconds": "<24", "least": ">8.3f", "goal": ">8"})
        yield columns.head
        for name, (command, goal) in commands.items():
            if work.quick and "first" in name:
                continue
            least = min(_clock(command) for _ in range(1 if "first" in name else 5))
            yield columns.line(name, least, goal and marked(goal, least <= goal))


def _clock(command: Sequence[str]) -> float:
    """CPU time of a process, which does not count waiting for a core."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def tracked(work: Work) -> Iterator[Any]:
    """What is tracked from commit to commit, at this one: every benchmark, played once, by asv.

    A benchmark's name is followed by its parameters and what they gave: times, memory, or a figure
    of correctness. The record, with earlier commits and repeats, is kept by asv on the machine.
    Quick reports have the benchmarks of vertices alone.
    """
    commit = subprocess.check_output(["git", "rev-parse", "HEAD"], text=True).strip()
    words = ["--bench", "bench_kernels.Vertices"] if work.quick else []
    run = ["run", "--quick", "--set-commit-hash", commit, "-E", f"existing:{sys.executable}"]
    with tempfile.TemporaryDirectory() as home:  # where asv writes what it knows of the machine
        for command in (["machine", "--yes"], [*run, *words], ["show", commit]):
            found = subprocess.run(
                [sys.executable, "-m", "asv", *command],
                env={**os.environ, "HOME": home}, capture_output=True, text=True,
            )  # fmt: skip
            if found.returncode:
                raise ValueError(f"asv {command[0]}: {(found.stderr or found.stdout).strip()}")
    for line in found.stdout.splitlines():
        if name := re.match(r"(bench_[\w.]+)", line):
            yield name[1]
        elif re.search("[0-9]", line) and not re.search("=|started|Commit", line):
            yield f"  {line.strip()}"


class Section(NamedTuple):
    """A page: its heading, the work, whose docstring is its text, and what its picture shows."""

    title: str
    work: Callable[[Work], Iterator[Any]]
    picture: str = ""


SECTIONS = {
    "rounds": Section(
        "Rounds beside NumPy", round_times.beside_numpy,
        "A round by NumPy as the paper writes it and by fastfw, per method",
    ),
    "peers": Section("Rounds beside other libraries", round_times.beside_others),
    "shapes": Section(
        "From 2 to 1000 classes, from 2 to 100,000 features", shapes.shapes,
        "Useful operations per second of a round over operations per byte of the batch",
    ),
    "profile": Section("Where a round's time goes", profile.parts),
    "start": Section("Starting", starting),
    "classifiers": Section("Beside scikit-learn's linear classifiers", classifiers.classifiers),
    "touched": Section("Rounds that touch little", touched.touched),
    "text": Section("Text beside other linear classifiers", classifiers.text),
    "network-starts": Section("Where a network starts", networks.starts),
    "workers": Section(
        "Rounds on a cluster", scale.workers,
        "Milliseconds of a round against workers, and what they would be without communication",
    ),
    "memory": Section("Memory of a run over chunks", scale.memory),
    "network-gap": Section(
        "Proposition 1 measured", networks.gap,
        "Smallest Frank-Wolfe gap against rounds, on logarithmic axes",
    ),
    "tracked": Section("Tracked from commit to commit", tracked),
    "later": Section(
        "Later methods measured", later_methods.later,
        "Regret by round and time of a round, of methods for losses in any order",
    ),
}  # fmt: skip


def stamp(command: str) -> list[str]:
    """Say what was run, when, where and with what."""
    there = []
    for name in PACKAGES:
        try:
            there.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            there.append(f"no {name}")
    half = len(there) // 2
    return [
        f"$ {command}",
        f"{datetime.date.today()}, {processor()}, {os.cpu_count()} cores, load {load()}",
        f"Python {platform.python_version()}, {', '.join(there[:half])},",
        ", ".join(there[half:]),
        f"BLAS of NumPy: {blas()}",
        "",
    ]


def report(name: str, work: Work, folder: Path | None, options: str) -> None:
    """Print a section; with a folder write its page and its pictures."""
    section = SECTIONS[name]
    lines, figures = [], {}
    for line in stamp(f"python -m bench.report {name}{options}"):
        lines.append(line)
        print(line)
    for found in section.work(work):
        if isinstance(found, tuple):
            figures[found[0]] = found[1]
            continue
        lines.append(found)
        print(found, flush=True)
    lines.append(f"load at the end: {load()}")
    print(lines[-1], end="\n\n")
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n".join(lines).replace("\n\n\n", "\n\n")
    page = f"# {section.title}\n\n{getdoc(section.work)}\n\n```text\n{text}\n```\n"
    for file, figure in figures.items():
        write_png(figure, folder / file, palette=True)
        page += f"\n![{section.picture}]({file})\n"
    with atomic_write(folder / f"{name}.md") as handle:
        handle.write(page)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print sections; exit code 2 where the environment slows NumPy down, 1 where sides differ."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.report", description="Measure what the performance pages show.",
        epilog=f"Sections: {', '.join(SECTIONS)}.",
    )  # fmt: skip
    parser.add_argument("sections", nargs="*", metavar="SECTION", help="default: all")
    parser.add_argument(
        "--only", action="append", default=[], metavar="WORDS",
        help="entries with all these words in their names; may be given several times",
    )  # fmt: skip
    parser.add_argument("--turns", type=int, metavar="N", help="turns of each side, or trials")
    parser.add_argument("--quick", action="store_true", help="little work; no pages")
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER",
        help="write pages there; by default docs/performance, and none where work is left out",
    )  # fmt: skip
    options = parser.parse_args(arguments)
    unknown = set(options.sections) - set(SECTIONS)
    if unknown:
        parser.error(f"no section {unknown.pop()!r}; there are {', '.join(SECTIONS)}")
    if options.turns is not None and options.turns < 1:
        parser.error("--turns must be at least 1")
    if (problem := handicap()) is not None:
        parser.error(problem)
    turns = options.turns or (2 if options.quick else None)
    work = Work(options.only, turns, options.quick)
    given = [f' --only "{words}"' for words in options.only]
    given += [f" --turns {options.turns}"] if options.turns else []
    given += [" --quick"] if options.quick else []
    whole = not (options.quick or options.only or options.turns)
    folder = options.out or (PAGES if whole else None)
    with threadpool_limits(limits=1):  # of BLAS libraries that are loaded already
        for name in options.sections or SECTIONS:
            try:
                report(name, work, folder, "".join(given))
            except ValueError as error:
                parser.error(f"{name}: {error}")
            except AssertionError as error:
                print(f"error: {name}: two sides differ: {error}", file=sys.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Writes the README's figures from results of `make bench`: `tools/readme_figures.py bench/results/<file>.json`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench/lib"))

from report import compile_bounds, dig, model_rows, run_bounds, text  # noqa: E402

BEGIN, END = "<!-- figures -->\n", "<!-- /figures -->"


def model_table(results: dict) -> list[str]:
    lines = [
        "| model | operators | first call, s | torch.compile, s | eager, ms | cresset, ms | torch.compile, ms |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, row in model_rows(results).items():
        ms = dig(row, "steady", "ms") or {}
        cells = [
            name,
            text(dig(row, "first", "cresset", "operators_captured"), "{}"),
            text(dig(row, "first", "cresset", "seconds")),
            text(dig(row, "first", "inductor", "seconds"), "{:.1f}"),
            *(text(ms.get(side), "{:.1f}") for side in ("eager", "cresset", "inductor")),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def bounds_table(results: dict) -> list[str]:
    lines = ["| what | measured | aim |", "| --- | ---: | ---: |"]
    for bound in compile_bounds(results) + run_bounds(results):
        if bound.value is not None:
            what, measured, _, limit, _ = bound.row()
            lines.append(f"| {what} | {measured} | {limit} |")
    return lines


def section(results: dict, source: str) -> str:
    machine = results["machine"].replace("-", " ")
    head = (
        f"Measured by `make bench` on {machine}, {results['dtype']}, {results['date']} (`{source}`): first call with cold caches, "
        "steady state as medians of interleaved calls."
    )
    return "\n".join([head, "", *bounds_table(results), "", *model_table(results), ""])


def main() -> None:
    path = Path(sys.argv[1]).resolve()
    readme = ROOT / "README.md"
    before, rest = readme.read_text().split(BEGIN)
    after = rest.split(END)[1]
    body = section(json.loads(path.read_text()), str(path.relative_to(ROOT)))
    readme.write_text(before + BEGIN + body + END + after)


if __name__ == "__main__":
    main()

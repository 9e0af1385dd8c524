"""cresset.report(): one HTML file about a run, without references to other files."""

import collections
import html
import os
import platform
import time

import torch

from .. import _C

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; color: #1d2733; }
h1 { font-size: 1.5em; } h2 { font-size: 1.2em; margin-top: 2em; border-bottom: 1px solid #c8d0d8; }
table { border-collapse: collapse; margin: .6em 0; } td, th { padding: .2em .8em .2em 0; text-align: left; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
tr:nth-child(even) { background: #f3f6f8; }
pre { background: #f3f6f8; padding: .7em; overflow-x: auto; font-size: 13px; }
summary { cursor: pointer; margin: .3em 0; } .reason { color: #9c2b1b; } .quiet { color: #66727f; }
svg { background: #f3f6f8; width: 100%; height: 14em; }
@media (prefers-color-scheme: dark) {
  body { background: #14181d; color: #d5dce3; } pre, svg, tr:nth-child(even) { background: #1e242b; }
}
"""
_PREFIX = "cresset: "


def _escaped(value):
    return html.escape(str(value))


def _table(names, rows, numbers=()):
    head = "".join(f"<th{' class=n' if i in numbers else ''}>{_escaped(n)}</th>" for i, n in enumerate(names))
    lines = [
        "<tr>"
        + "".join(f"<td{' class=n' if i in numbers else ''}>{_escaped(c)}</td>" for i, c in enumerate(row))
        + "</tr>"
        for row in rows
    ]
    return f"<table><tr>{head}</tr>{''.join(lines)}</table>"


def _folded(title, text, opened=False):
    return (
        f"<details{' open' if opened else ''}><summary>{_escaped(title)}</summary><pre>{_escaped(text)}</pre></details>"
    )


class _Timings:
    """Calls and microseconds by the name of a program or kernel, and memory over time, as torch's profiler has them."""

    def __init__(self, results):
        self.calls, self.us = collections.Counter(), collections.Counter()
        self.memory = []  # (milliseconds, bytes in use, of what was allocated in the run)
        allocations = []
        for event in results.events():
            name = event.name()
            if name.startswith(_PREFIX):
                self.calls[name] += 1
                self.us[name] += event.duration_ns() / 1000
            elif name == "[memory]":
                allocations.append((event.start_ns(), event.nbytes()))
        allocations.sort(key=lambda pair: pair[0])
        in_use = 0
        for start, count in allocations:
            in_use += count
            self.memory.append(((start - allocations[0][0]) / 1e6, in_use))

    def rows(self, chosen):
        rows = [
            (n.removeprefix(_PREFIX), self.calls[n], f"{self.us[n] / 1000:.3f}", f"{self.us[n] / self.calls[n]:.1f}")
            for n in self.calls
            if chosen(n)
        ]
        return sorted(rows, key=lambda row: -float(row[2]))


def _bytes(count):
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


def _memory_chart(points):
    """A step line of the bytes in use."""
    if len(points) < 2:
        return "<p class=quiet>No allocations.</p>"
    width, height, margin = 1000, 220, 10
    last, most = points[-1][0] or 1, max(1, *(b for _, b in points))
    least = min(0, *(b for _, b in points))
    step = max(1, len(points) // 2000)

    def place(ms, count):
        x = margin + ms / last * (width - 2 * margin)
        return f"{x:.1f},{height - margin - (count - least) / (most - least) * (height - 2 * margin):.1f}"

    line = " ".join(place(*p) for p in points[::step])
    return (
        f'<svg viewBox="0 0 {width} {height}" preserveAspectRatio="none" role="img" aria-label="memory over time">'
        f'<polyline points="{line}" fill="none" stroke="#2b6cb0" vector-effect="non-scaling-stroke"/></svg>'
        f"<p>{last:.1f} ms; at most {_bytes(most)} allocated in the run are in use at once.</p>"
    )


class Report:
    """The result of :func:`report`: a context manager."""

    def __init__(self, path):
        self._path = os.fspath(path)

    def __enter__(self):
        from .compile import forget

        folder = os.path.dirname(os.path.abspath(self._path))
        if not os.path.isdir(folder):
            raise FileNotFoundError(f"cresset.report: there is no folder {folder}")
        if torch.autograd._profiler_enabled():
            raise RuntimeError("cresset.report: another profiler of torch is on, and there can be one at a time")
        self._profile = torch.autograd.profiler.profile(use_kineto=True, profile_memory=True)
        self._profile.__enter__()
        forget()  # what was compiled before has no texts
        self._kept = _C.keep_texts(True)
        self._variable = os.environ.get("CRESSET_PROFILE_KERNELS")
        os.environ["CRESSET_PROFILE_KERNELS"] = "1"
        self._before, self._start = _C.stats(), time.perf_counter()
        return self

    def __exit__(self, *raised):
        self._profile.__exit__(*raised)
        seconds = time.perf_counter() - self._start
        _C.keep_texts(self._kept)
        if self._variable is None:
            del os.environ["CRESSET_PROFILE_KERNELS"]
        else:
            os.environ["CRESSET_PROFILE_KERNELS"] = self._variable
        page = self._page(seconds, _Timings(self._profile.kineto_results))
        with open(self._path, "w", encoding="utf-8") as file:
            file.write(page)

    # ---- The page

    def _page(self, seconds, timings):
        functions = _functions()
        after = _C.stats()
        body = [
            "<h1>cresset report</h1>",
            f"<p class=quiet>{_escaped(time.strftime('%Y-%m-%d %H:%M:%S'))}, torch {_escaped(torch.__version__)}, "
            f"Python {platform.python_version()}, {_escaped(platform.machine())}; {seconds:.2f} s</p>",
            "<h2>Summary</h2>",
            _table(("counter", "value"), self._counters(after), numbers=(1,)),
            "<h2>Graph breaks</h2>",
            self._breaks(functions),
            "<h2>Recompiles</h2>",
            self._list(after["recompiles"][len(self._before["recompiles"]) :], "No recompiles."),
            "<h2>Programs</h2>",
            _table(("program", "calls", "ms", "µs a call"), timings.rows(lambda n: not self._is_kernel(n)), (1, 2, 3)),
            "<h2>Kernels</h2>",
            _table(("kernel", "launches", "ms", "µs a launch"), timings.rows(self._is_kernel), (1, 2, 3)),
            "<h2>Memory</h2>",
            _memory_chart(timings.memory),
            *(self._function(name, rows, timings) for name, rows in functions),
        ]
        return (
            '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>cresset report</title>'
            f"<style>{_STYLE}</style></head><body>{''.join(body)}</body></html>\n"
        )

    @staticmethod
    def _is_kernel(name):
        return " at " in name

    def _counters(self, after):
        names = ("calls", "graphs", "graph_breaks", "eager_calls", "kernels", "extern_calls")
        rows = [(n, after[n] - self._before[n]) for n in names if n in after]
        spent = ("ms_capture", "ms_lowering", "ms_codegen")
        return rows + [(n, f"{after[n] - self._before[n]:.1f}") for n in spent if n in after]

    @staticmethod
    def _list(texts, otherwise):
        items = "".join(f"<li>{_escaped(text)}</li>" for text in texts)
        return f"<ul>{items}</ul>" if items else f"<p class=quiet>{otherwise}</p>"

    @staticmethod
    def _breaks(functions):
        rows = [
            (name, why["location"] or "the whole call", why["detail"], why["remedy"])
            for name, segments in functions
            for why in (s["break_reason"] for s in segments)
            if why
        ]
        return _table(("function", "line", "reason", "remedy"), rows) if rows else "<p class=quiet>No graph breaks.</p>"

    def _function(self, name, segments, timings):
        parts = [f"<h2>{_escaped(name)}</h2>"]
        for i, row in enumerate(segments):
            begins = f", from {row['begins']} on" if row["begins"] else ""
            parts.append(f"<h3>Graph segment {i}{_escaped(begins)}</h3>")
            if row["eager_reason"]:
                parts.append(f"<p class=reason>Runs eagerly: {_escaped(row['eager_reason'])}</p>")
            if "graph" in row:
                parts += self._segment(row, timings)
            if row["ends"]:
                parts.append(f"<p class=reason>Graph break: {_escaped(row['ends'])}</p>")
        return "".join(parts)

    @staticmethod
    def _segment(row, timings):
        guards = [*row["guards"], *(f"state: {text}" for text in row["state_guards"])]
        parts = [
            f"<p>{row['operators']} operators, {row['kernel_count']} kernels, {row['extern_calls']} extern calls; passes "
            f"{row['ms_passes']:.1f} ms, lowering {row['ms_lower']:.1f} ms, code generation {row['ms_codegen']:.1f} ms; "
            f"{row['bytes_planned']} bytes planned</p>",
            _folded("Graph", row["graph"], opened=True),
            _folded(f"Guards ({len(guards)})", "\n".join(guards) or "none"),
            _folded("Program", row["program"]),
        ]
        for text in row["kernels"]:
            title = text.partition("\n")[0].removeprefix("# ")
            key = _PREFIX + title
            spent = f": {timings.calls[key]} launches, {timings.us[key] / 1000:.3f} ms" if timings.calls[key] else ""
            parts.append(_folded(f"Kernel {title}{spent}", text))
        return parts


def _functions():
    """(name, cache entries) of each compiled function with any."""
    from .compile import _compiled

    out = []
    for function in list(_compiled):
        rows = _C.cache_entries(function)
        if rows:
            out.append((getattr(function, "__qualname__", type(function).__name__), rows))
    return sorted(out, key=lambda pair: pair[0])


def report(path):
    """``with cresset.report("run.html"): ...`` writes one HTML file about the block: graphs, guards, graph breaks with
    lines, kernels with source and timing, memory over time.

    The cache entries are dropped first, so that all functions are captured in the block. The file needs no other file.
    Raises FileNotFoundError where the folder of ``path`` is missing, and RuntimeError under torch's profiler.
    """
    return Report(path)

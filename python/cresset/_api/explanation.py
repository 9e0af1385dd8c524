"""The report of ``cresset.explain``: a summary, and the details of each graph segment."""

import dataclasses

from . import deprecated


@dataclasses.dataclass(frozen=True)
class BreakReason:
    """The reason for a graph break or an eager call. ``kind`` is a row of docs/graph_breaks.md, which ``description``
    and ``remedy`` quote. ``location`` is "file.py:12 in function", or empty."""

    kind: str
    description: str
    text: str
    detail: str
    location: str
    remedy: str

    def __str__(self):
        return f"{self.text} [{self.kind}: {self.description}; remedy: {self.remedy}]"


class Explanation:
    """The result of compiling a function for one call. Printed, it begins with :meth:`summary`: graphs, graph breaks,
    recompiles, milliseconds, memory. :meth:`graphs`, :meth:`guards`, :meth:`kernels` and :meth:`programs` have the
    details, and :meth:`details` the first lines of each.

    ``segments``: a dict for each graph segment, in the order of the call. ``begins`` and ``ends`` are empty where the
    segment begins or ends with the call. ``break_reasons``: a :class:`BreakReason` for each graph break and eager call.
    ``recompiles``: a line for each recompile of the call. ``learned``: differences of later calls from this call, a line
    each. ``no_effect``: accepted arguments of :func:`compile` which change nothing.
    """

    GRAPH_LINES, STATE_GUARDS = 60, 8  # of each graph segment, when printed

    def __init__(self, name, segments, counters, learned=(), no_effect=(), recompiles=()):
        self.name = name
        self.segments = [deprecated.Renamed(s, deprecated.SEGMENT, "segments[...]") for s in segments]
        self.counters = deprecated.Renamed(counters, deprecated.STATS, "counters")
        self.learned = list(learned)
        self.no_effect = list(no_effect)
        self.recompiles = list(recompiles)

    variants = deprecated.attribute("Explanation", "variants", "segments")

    @property
    def break_reasons(self):
        return [BreakReason(**v["break_reason"]) for v in self.segments if v["break_reason"]]

    @property
    def graph_breaks(self):
        return [v["eager_reason"] or v["ends"] for v in self.segments if v["eager_reason"] or v["ends"]]

    def __str__(self):
        return self.summary() + "\n" + self.details()

    __repr__ = __str__

    # ---- The summary

    def summary(self):
        """Graphs, graph breaks with line, reason and remedy, recompiles, milliseconds and memory, in a few lines."""
        lines = [f"cresset.explain: {self.name}"]
        lines += [f"  without effect: {text}" for text in self.no_effect]
        lines += [f"  graphs: {self._graphs()}", f"  graph breaks: {len(self.break_reasons)}"]
        for reason in self.break_reasons:
            lines += [
                f"    {reason.location or 'the whole call'}: {reason.detail} ({reason.kind})",
                f"      to avoid it: {reason.remedy}",
            ]
        lines += [f"  recompiles: {len(self.recompiles)}", *(f"    {text}" for text in self.recompiles)]
        lines += [f"  milliseconds: {self._milliseconds()}", f"  memory: {self._memory()}"]
        return "\n".join([*lines, "  more: .graphs(), .guards(), .kernels(), .programs(), .details()"])

    def _compiled(self):
        return [v for v in self.segments if not v["eager_reason"]]

    def _sum(self, key):
        return sum(v[key] for v in self._compiled())

    def _graphs(self):
        eager = len(self.segments) - len(self._compiled())
        return (
            f"{len(self._compiled())}, of {self._sum('operators')} operators in {self._sum('kernel_count')} kernels and "
            f"{self._sum('extern_calls')} extern calls" + (f"; {eager} parts run eagerly" if eager else "")
        )

    def _milliseconds(self):
        parts = {"capture": self.counters.get("ms_capture", 0), "passes": self._sum("ms_passes")}
        parts |= {"lowering": self._sum("ms_lower"), "code generation": self._sum("ms_codegen")}
        return f"{sum(parts.values()):.1f}: " + ", ".join(f"{name} {ms:.1f}" for name, ms in parts.items())

    def _memory(self):
        most = max((v["peak_bytes"] for v in self._compiled()), default=0)
        return f"{self._sum('bytes_planned')} bytes planned for intermediates, at most {most} in use at once"

    # ---- Details

    def graphs(self):
        """The graphs, with the line of the program above its operators."""
        return self._of_each(lambda v: v["graph"].splitlines())

    def guards(self):
        """The conditions under which a call is served by the same code: of sizes, then of Python's state."""
        return self._of_each(lambda v: [*v["guards"], *(f"state: {text}" for text in v["state_guards"])])

    def kernels(self):
        """The generated loops; their text is kept with ``CRESSET_LOG=kernels`` alone."""

        def lines_of(v):
            texts = [line for kernel in v["kernels"] for line in kernel.splitlines()]
            return texts or [
                f"{v['kernel_count']} kernels" + (", text by CRESSET_LOG=kernels" if v["kernel_count"] else "")
            ]

        return self._of_each(lines_of)

    def programs(self):
        """The compiled programs: allocations, launches, calls."""
        return self._of_each(lambda v: v["program"].splitlines())

    def details(self):
        """The first lines of everything, graph segment by graph segment."""
        lines = []
        for i, v in enumerate(self.segments):
            lines += self._segment(i, v)
        return "\n".join([*lines, *(f"  learned: {text}" for text in self.learned)])

    def _of_each(self, lines_of):
        lines = []
        for i, v in enumerate(self.segments):
            lines += [self._name(i, v), *(f"    {line}" for line in ([] if v["eager_reason"] else lines_of(v)))]
        return "\n".join(lines)

    @staticmethod
    def _name(i, v):
        return f"  graph segment {i}" + (f", from {v['begins']} on" if v["begins"] else "")

    def _segment(self, i, v):
        name = self._name(i, v)
        if v["eager_reason"]:
            return [f"{name}: runs eagerly: {v['eager_reason']}", *self._advice(v)]
        lines = [
            f"{name}: {v['operators']} operators, {v['kernel_count']} kernels, {v['extern_calls']} extern calls; "
            f"passes {v['ms_passes']:.1f} ms, lowering {v['ms_lower']:.1f} ms, code generation {v['ms_codegen']:.1f} ms"
        ]
        lines += [f"    guard: {g}" for g in v["guards"]] or ["    no guards on sizes"]
        lines += self._first(v["state_guards"], self.STATE_GUARDS, "state guard: ", f".segments[{i}]['state_guards']")
        lines += [f"    CUDA graphs: {v['cuda_graphs']}"] if v["cuda_graphs"] else []
        lines += self._first(v["graph"].splitlines(), self.GRAPH_LINES, "", f".segments[{i}]['graph']")
        return lines + ([f"    graph break: {v['ends']}", *self._advice(v)] if v["ends"] else [])

    @staticmethod
    def _advice(v):
        why = v["break_reason"]
        return [f"    {why['kind']}: {why['description']}", f"    remedy: {why['remedy']}"]

    @staticmethod
    def _first(texts, count, before, where):
        lines = [f"    {before}{text}" for text in texts[:count]]
        return lines + ([f"    ... {len(texts) - count} more lines in {where}"] if len(texts) > count else [])

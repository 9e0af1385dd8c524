"""A measurement in a separate process. Reads a request (JSON, first argument), prints the answer as its last line."""

from __future__ import annotations

import copy
import json
import os
import resource
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / f) for f in ("tests/python/harness", "bench/lib", "bench/workloads")]
warnings.simplefilter("ignore")

import capture_models  # noqa: E402
import noise  # noqa: E402
import torch  # noqa: E402
from compare import error, tensors  # noqa: E402
from models import MODELS, seeded_call  # noqa: E402

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


# The part of the pipeline which runs: options of cresset.compile.
LEVELS = {"full": {}, "unfused": {"fuse": False}, "traced": {"frontend": "trace"}, "frozen": {"freezing": True}}


def compile_with(compiler: str, target, request: dict | None = None):
    """request: "static" specializes all sizes, for all compilers; "level" is a key of LEVELS, for cresset."""
    request = request or {}
    fixed = False if request.get("static") or compiler == "cresset-static" else None
    if compiler == "eager":
        return target
    if compiler.startswith("cresset"):
        import cresset

        return cresset.compile(target, dynamic=fixed, options=LEVELS[request.get("level", "full")])
    return torch.compile(target, dynamic=True if compiler == "inductor-dynamic" else fixed)


def peak_rss() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def build(request):
    model = MODELS[request["model"]]
    module = model.build(request["scale"], DTYPES[request["dtype"]])
    batch, length = request.get("shape") or model.bench[request["scale"]]
    return model, module, model.inputs(module, batch, length)


def timed(call) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def interleaved(calls: dict, seconds: float, least: int = 5, timer=timed) -> dict[str, list[float]]:
    """Returns the seconds of each side, measured in turns so that other load affects all sides equally."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(next(iter(times.values()))) < least:
        for name, call in calls.items():
            times[name].append(timer(call))
    return times


def cresset_stats() -> dict:
    import cresset

    stats = cresset.stats()
    numbers = {k: v for k, v in dict(stats).items() if isinstance(v, (int, float))}
    return {**numbers, "recompiles": len(stats["recompiles"])}


def first(request) -> dict:
    """Returns the seconds from the request for compiled code to the end of the first call, and the time of the same
    call in eager mode for comparison."""
    model, module, inputs = build(request)
    if request["compiler"].startswith("cresset"):
        import cresset  # noqa: F401  (a program imports it once, as it imports torch)
    seeded_call(model, module, inputs)
    eager = timed(lambda: seeded_call(model, module, inputs))
    before = peak_rss()
    begin = time.perf_counter()
    compiled = compile_with(request["compiler"], module, request)
    seeded_call(model, compiled, inputs)
    seconds = time.perf_counter() - begin
    rss = peak_rss() - before
    again = min(timed(lambda: seeded_call(model, compiled, inputs)) for _ in range(2))
    answer = {"seconds": seconds, "again_seconds": again, "eager_seconds": eager, "rss_above_eager": rss}
    return {**answer, **(cresset_stats() if request["compiler"].startswith("cresset") else {})}


def peak_allocated(call) -> int:
    """Returns the peak of bytes held by torch's CPU allocator during a call, above the state before it."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        call()
    events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    held = peak = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak


def side(request) -> dict:
    """A compiler's part of `steady`: prints its properties, then times a call for each line of input."""
    model, module, inputs = build(request)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output printed by a model or a compiler is not part of the answer
    expected = tensors(seeded_call(model, module, inputs))
    compiled = compile_with(request["compiler"], module, request)
    for _ in range(16 if request["compiler"].startswith("cresset") else 3):  # autotuning settles in the first calls
        got = seeded_call(model, compiled, inputs)
    difference = max(error(a, b) for (_, a), (_, b) in zip(tensors(got), expected))
    del got, expected
    peak = peak_allocated(lambda: seeded_call(model, compiled, inputs))
    print(json.dumps({"difference": difference, "peak_bytes": peak}), file=answers, flush=True)
    for _ in sys.stdin:
        print(timed(lambda: seeded_call(model, compiled, inputs)), file=answers, flush=True)
    return {}


def train_side(request) -> dict:
    """A compiler's part of `train`: a step is forward and backward, of the mean square of all results."""
    model, module, inputs = build(request)
    module.train()
    parameters = [p for p in module.parameters() if p.requires_grad]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    compiled = compile_with(request["compiler"], module, request)

    def step(target=compiled):
        wanted = [t for _, t in tensors(seeded_call(model, target, inputs)) if t.requires_grad]
        sum(t.float().square().mean() for t in wanted).backward()

    def clear():
        for p in parameters:
            p.grad = None

    with torch.enable_grad():
        step(module)
        clear()
        first = timed(step)
        for _ in range(8 if request["compiler"].startswith("cresset") else 2):
            clear()
            step()
        clear()
        peak = peak_allocated(step)
        print(json.dumps({"first_seconds": first, "peak_bytes": peak}), file=answers, flush=True)
        for _ in sys.stdin:
            clear()
            print(timed(step), file=answers, flush=True)
    return {}


class Side:
    """A process which runs a single compiler: torch.compile patches classes, which would slow down other compilers."""

    def __init__(self, request: dict, compiler: str, what: str = "side"):
        child = {**request, "what": what, "compiler": compiler}
        self.process = subprocess.Popen([sys.executable, __file__, json.dumps(child)], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
        self.start = json.loads(self.answer())

    def answer(self) -> str:
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"a measuring process ended with status {self.process.wait()}")
        return line

    def call(self) -> float:
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.answer())


def steady(request) -> dict:
    """Returns milliseconds per call of every compiler, measured in turns, differences from eager mode, and peak bytes
    of intermediates."""
    sides = {compiler: Side(request, compiler) for compiler in request["compilers"]}
    times = interleaved({name: s.call for name, s in sides.items()}, request["seconds"], timer=lambda call: call())
    for s in sides.values():
        s.process.kill()
    start = {key: {n: s.start[key] for n, s in sides.items()} for key in ("difference", "peak_bytes")}
    return {**noise.summary(times), **start}


def train(request) -> dict:
    """Returns milliseconds per training step of every compiler, measured in turns, seconds of the first step, and peak
    bytes of a step."""
    sides = {compiler: Side(request, compiler, "train_side") for compiler in request["compilers"]}
    times = interleaved({name: s.call for name, s in sides.items()}, request["seconds"], timer=lambda call: call())
    for s in sides.values():
        s.process.kill()
    start = {key: {n: s.start[key] for n, s in sides.items()} for key in ("first_seconds", "peak_bytes")}
    return {**noise.summary(times), **start}


def accuracy(request) -> dict:
    """Returns distances from the same model in fp64, relative to the size of each result, of eager mode and of compiled
    code. The distances cover results, and gradients of the mean square of all results (in eval mode, without random
    numbers)."""
    model, module, inputs = build(request)
    reference = copy.deepcopy(module).double()
    exact = {k: v.double() if isinstance(v, torch.Tensor) and v.is_floating_point() else v for k, v in inputs.items()}

    def run(target, of, given):
        with torch.enable_grad():
            results = [t for _, t in tensors(seeded_call(model, target, given))]
            wanted = [t for t in results if t.requires_grad]
            gradients = torch.autograd.grad(sum(t.double().square().mean() for t in wanted), list(of.parameters()), allow_unused=True) if wanted else []  # fmt: skip
        return results, [g for g in gradients if g is not None]

    def distance(found, expected):
        return max((error(a, b) for a, b in zip(found, expected) if b.is_floating_point()), default=0.0)

    expected = run(reference, reference, exact)
    answer = {}
    for compiler in ("eager", request["compiler"]):
        found = run(compile_with(compiler, module, request), module, inputs)
        answer[compiler] = {"results": distance(found[0], expected[0]), "gradients": distance(found[1], expected[1])}
    return answer


def capture(request) -> dict:
    """Returns counters of the first call of a model with an expensive capture: capture times, total and by operator."""
    import cresset

    module, inputs = capture_models.build(request["model"], request["training"])
    compiled = cresset.compile(module, dynamic=False if request["static"] else None)
    with torch.set_grad_enabled(request["training"]):
        seconds = timed(lambda: compiled(**inputs))
    stats = cresset.stats()
    costly = {name: row for name, row in list(stats["capture_operators"].items())[:8]}
    return {"seconds": seconds, "costly": costly, "shape_memo_misses": stats["shape_memo_misses"], **cresset_stats()}


def sweep(request) -> dict:
    """Compares a single dynamic compilation over a sweep of shapes with code compiled for each shape alone."""
    model = MODELS[request["model"]]
    module = model.build(request["scale"], DTYPES[request["dtype"]])
    dynamic = compile_with("cresset", module, {"level": request.get("level", "full")})
    shapes = model.sweep(request["scale"])
    inputs = [model.inputs(module, b, n) for b, n in shapes]
    for x in inputs:
        seeded_call(model, dynamic, x)
    answer = {"graphs": cresset_stats()["graphs"], "recompiles": cresset_stats()["recompiles"]}
    static = compile_with("cresset-static", module, request)
    rows = []
    for shape, x in zip(shapes, inputs):
        calls = {n: (lambda run=run, x=x: seeded_call(model, run, x)) for n, run in (("dynamic", dynamic), ("static", static), ("eager", module))}  # fmt: skip
        for _ in range(4):
            for call in calls.values():
                call()
        found = noise.summary(interleaved(calls, request["seconds"] / len(shapes)), of="static")
        rows.append({"shape": shape, **found["ms"], "over": found["over"]["dynamic"]})
    return {**answer, "shapes": rows}


def per_call_us(calls: dict, count: int, rounds: int = 15) -> dict:
    """Returns microseconds per call of each side (medians), cresset's time above eager mode's time in the same round,
    and eager mode's time over cresset's: [low, median, high]."""

    def many(call):
        for _ in range(count):
            call()

    for call in calls.values():
        many(call)
    times = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(1e6 * timed(lambda call=call: many(call)) / count)
    medians = {name: statistics.median(t) for name, t in times.items()}
    above = [a - b for a, b in zip(times["cresset"], times["eager"])]
    found = {"above_eager": [noise.band(above)[0], statistics.median(above), noise.band(above)[1]]}
    return {**medians, **found, "over": noise.summary(times)["over"]["eager"]}


def overhead(request) -> dict:
    """Returns microseconds per call of programs with almost no work."""
    x = torch.ones(1)
    chain = torch.nn.Sequential(*[torch.nn.Linear(16, 16) for _ in range(20)]).eval()
    row = torch.randn(1, 16)
    answer = {}
    for name, target, argument, count in (("add_one", lambda x: x + 1, x, 5000), ("linear_chain", chain, row, 300)):
        runs = {compiler: compile_with(compiler, target) for compiler in request["compilers"]}
        calls = {compiler: (lambda run=run, a=argument: run(a)) for compiler, run in runs.items()}
        answer[name] = per_call_us(calls, count)
    return {**answer, "import_ms": import_ms()}


def import_ms() -> float:
    """Returns the milliseconds of `import cresset` after `import torch`. The import registers everything a first call
    needs."""
    program = "import time, torch; begin = time.perf_counter(); import cresset; print(time.perf_counter() - begin)"
    runs = [subprocess.run([sys.executable, "-c", program], capture_output=True, text=True) for _ in range(5)]
    return 1e3 * statistics.median(float(run.stdout) for run in runs)


def operators(request) -> dict:
    import opdb

    counts, failures = opdb.count_all(DTYPES[request["dtype"]])
    return {"counts": dict(counts), "failures": failures}


def python(request) -> dict:
    import python_rows

    return python_rows.measure(request["compiler"])


def main() -> None:
    request = json.loads(sys.argv[1])
    torch.manual_seed(0)
    with torch.no_grad():
        answer = {
            "accuracy": accuracy,
            "capture": capture,
            "first": first,
            "steady": steady,
            "side": side,
            "train": train,
            "train_side": train_side,
            "sweep": sweep,
            "overhead": overhead,
            "operators": operators,
            "python": python,
        }[request["what"]](request)
    print(json.dumps(answer), flush=True)
    os._exit(0)  # torch.compile's worker pools take seconds to shut down


if __name__ == "__main__":
    main()

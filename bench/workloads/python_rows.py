"""Costs of the Python front end: capture, guards, graph breaks, evaluation. A process for each compiler, beside eager
mode."""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch

ROUNDS = 15


def timed(call) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def medians_ms(sides: dict, rounds: int) -> dict:
    """Returns median milliseconds of calls without arguments, with the sides called in turn."""
    times = {name: [] for name in sides}
    for _ in range(rounds):
        for name, run in sides.items():
            times[name].append(timed(run) * 1e3)
    return {name: statistics.median(t) for name, t in times.items()}


@contextlib.contextmanager
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def add_one(x):
    return x + 1


def loop_of_operators(x, y):
    for i in range(500):
        x = torch.relu(x) if i % 2 else x * y
        x = x + y
    return x


def twenty_breaks(x, y):
    for _ in range(20):
        x = torch.tanh(x @ y) + y
        if x.sum() > 1e9:
            x = x - 1
    return x


def bert():
    from models import MODELS

    model = MODELS["bert"].build("real", torch.float32)

    def run(input_ids):
        return model(input_ids=input_ids).last_hidden_state

    return run, {"input_ids": torch.randint(0, 1000, (1, 16)), "model": model}


def compile_with(compiler: str, function):
    if compiler == "cresset":
        import cresset

        return cresset.compile(function)
    return torch.compile(function, backend=compiler)


def forget(compiler: str) -> None:
    if compiler == "cresset":
        import cresset

        cresset.reset()
    else:
        torch._dynamo.reset()


def guard_us(compiler: str, function, values: dict) -> float:
    """Returns the microseconds of the guard check of a call served by compiled code."""
    arguments = {name: v for name, v in values.items() if isinstance(v, torch.Tensor)}
    forget(compiler)
    compiled = compile_with(compiler, function)
    for _ in range(3):
        compiled(**arguments)
    if compiler == "cresset":
        from cresset import _C

        return statistics.median(_C.check_ns(compiled, (), arguments, 2000) for _ in range(ROUNDS)) / 1e3
    from torch._C._dynamo.eval_frame import _debug_get_cache_entry_list

    (entry,) = _debug_get_cache_entry_list(function.__code__)
    check = entry.guard_manager.check
    assert check(values)

    def many():
        for _ in range(2000):
            check(values)

    return statistics.median(timed(many) for _ in range(ROUNDS)) / 2000 * 1e6


def capture_ms(compiler: str, function, arguments: dict, rounds: int) -> dict:
    """Returns the milliseconds of a capture alone. For torch.compile this is a whole first call with a backend which
    runs the graph eagerly."""
    times, operators = [], None
    for _ in range(rounds):
        forget(compiler)
        compiled = compile_with(compiler, function)
        seconds = timed(lambda run=compiled: run(**arguments))
        if compiler == "cresset":
            import cresset

            seconds, operators = cresset.stats()["ms_capture"] / 1e3, cresset.stats()["operators_captured"]
        times.append(1e3 * seconds)
    return {"ms": statistics.median(times), "best_ms": min(times), "operators": operators}


def breaks_us(compiler: str) -> dict:
    x, y = torch.randn(64, 64), torch.randn(64, 64) * 0.1
    forget(compiler)
    compiled = compile_with(compiler, twenty_breaks)
    for _ in range(10):
        compiled(x, y)
    ten_calls = {
        name: lambda run=run: [run(x, y) for _ in range(10)]
        for name, run in (("eager", twenty_breaks), ("compiled", compiled))
    }
    return {name: 100 * ms for name, ms in medians_ms(ten_calls, ROUNDS * 4).items()}


OPTIMIZERS = {"sgd": (torch.optim.SGD, 400), "adam": (torch.optim.Adam, 400), "adam_small": (torch.optim.Adam, 64)}


@one_thread()
def optimizer_ms(compiler: str, kind: type, width: int) -> dict:
    """Returns the milliseconds of an optimizer step with 40 square parameters, on one thread."""
    parameters = [torch.nn.Parameter(torch.randn(width, width)) for _ in range(40)]
    for p in parameters:
        p.grad = torch.randn_like(p)
    optimizer = kind(parameters, lr=1e-3, **({"momentum": 0.9} if kind is torch.optim.SGD else {}))

    def step():
        optimizer.step()

    forget(compiler)
    compiled = compile_with(compiler, step)
    for _ in range(4):
        compiled()
    return medians_ms({"eager": step, "compiled": compiled}, ROUNDS)


@one_thread()
@torch.enable_grad()
def training_step_ms(compiler: str) -> dict:
    """A whole training step as a single function: forward, backward, clipping, AdamW, a schedule. The model has three
    layers of GPT-2, and runs at three lengths.

    Each compiler trains its own model beside eager mode's model. `first`: milliseconds of the first three calls.
    """
    import transformers

    def made():
        torch.manual_seed(0)
        config = transformers.GPT2Config(n_embd=64, n_layer=3, n_head=4, vocab_size=200, n_positions=64)
        model = transformers.GPT2LMHeadModel(config).train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        return model, optimizer, torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=10_000)

    def step(model, optimizer, schedule, ids):
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        return loss.detach()

    forget(compiler)
    sides = {"eager": (step, made()), "compiled": (compile_with(compiler, step), made())}
    times = {"eager": [], "compiled": []}
    warm = 9
    for i in range(warm + ROUNDS):
        ids = torch.randint(0, 200, (4, 16 + 8 * (i % 3)))
        for name, (run, parts) in sides.items():
            times[name].append(timed(lambda run=run, given=(*parts, ids): run(*given)) * 1e3)
    middle = {name: statistics.median(t[warm:]) for name, t in times.items()}
    return {
        **middle,
        "over": middle["compiled"] / middle["eager"],
        "first": sum(times["compiled"][:3]),
        "first_eager": sum(times["eager"][:3]),
    }


def evaluator() -> dict:
    script = str(Path(__file__).resolve().parents[1] / "evaluator.py")
    done = subprocess.run([sys.executable, script, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def measure(compiler: str) -> dict:
    """Measures all rows. compiler: "cresset", or "inductor", whose capture and guards are measured with a backend that
    compiles nothing."""
    ours = compiler == "cresset"
    front = "cresset" if ours else "eager"
    run, values = bert()
    x, y = torch.randn(8), torch.randn(8)
    return {
        "guards_us": {
            "add_one": guard_us(front, add_one, {"x": x}),
            "bert": guard_us(front, run, values),
        },
        "capture": {
            "bert": capture_ms(front, run, {"input_ids": values["input_ids"]}, 10 if ours else 2),
            "loop": capture_ms(front, loop_of_operators, {"x": x, "y": y}, 10 if ours else 2),
        },
        "breaks_us": breaks_us(compiler),
        "optimizers_ms": {name: optimizer_ms(compiler, *what) for name, what in OPTIMIZERS.items()},
        "training_step_ms": training_step_ms(compiler),
        **({"evaluator": evaluator()} if ours else {}),
    }

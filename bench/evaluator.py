"""The cost of evaluating bytecode beside CPython's own loop, on pure Python code. Prints a table, and JSON with
--json."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time


def calls(n):
    def fib(k):
        return k if k < 2 else fib(k - 1) + fib(k - 2)

    return fib(n)


def integers(n):
    total = 0
    for i in range(n):
        total += i * 3 % 7
        if total > 1000000:
            total -= 1000000
    return total


def floats(n):
    x = y = 0.5
    for _ in range(n):
        x, y = x * y - 0.25, x + y * 0.5
        if x * x + y * y > 4.0:
            x = y = 0.5
    return x


class Body:
    def __init__(self, x, v):
        self.x = x
        self.v = v

    def move(self, dt):
        self.x += self.v * dt

    @property
    def energy(self):
        return self.v * self.v * 0.5


def objects(n):
    bodies = [Body(float(i), 1.5) for i in range(10)]
    for _ in range(n):
        for body in bodies:
            body.move(0.01)
    return sum(body.energy for body in bodies)


def instances(n):
    last = None
    for i in range(n):
        last = Body(i, i)
    return last.x


def sieve(n):
    flags = [True] * n
    for i in range(2, int(math.sqrt(n)) + 1):
        if flags[i]:
            for j in range(i * i, n, i):
                flags[j] = False
    return sum(flags)


def dicts(n):
    counts = {}
    for i in range(n):
        key = i % 97
        counts[key] = counts.get(key, 0) + 1
    return len(counts)


def strings(n):
    parts = []
    for i in range(n):
        parts.append(f"{i:04d}")
    return len("".join(parts))


def generators(n):
    def numbers(k):
        for i in range(k):  # noqa: UP028
            yield i

    return sum(x for x in numbers(n))


def comprehensions(n):
    return sum(len([j for j in range(10) if j % 2]) for _ in range(n))


def exceptions(n):
    caught = 0
    for i in range(n):
        try:
            if i % 2:
                raise ValueError(i)
        except ValueError:
            caught += 1
    return caught


def keywords(n):
    def f(a, b=2, *args, c=3, **kwargs):
        return a + b + c

    total = 0
    for i in range(n):
        total += f(i, c=4) + f(i, 1, z=5) + f(*(i,), **{"c": 1})
    return total


def unpacking(n):
    a, b, c = 1, 2, 3
    for _ in range(n):
        a, b, c = b, c, a
        (x, y), z = (a, b), c
        a = x if y else z
    return a


SIZES = {
    calls: 20,
    integers: 100_000,
    floats: 100_000,
    objects: 6_000,
    instances: 40_000,
    sieve: 200_000,
    dicts: 100_000,
    strings: 50_000,
    generators: 100_000,
    comprehensions: 10_000,
    exceptions: 50_000,
    keywords: 15_000,
    unpacking: 100_000,
}


def best_of(repeats, function, size):
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function(size)
        times.append(time.process_time() - start)
    return min(times)


def measure(repeats, begin, end):
    rows = {}
    for function, size in SIZES.items():
        plain = best_of(repeats, function, size)
        begin()
        try:
            evaluated = best_of(repeats, function, size)
        finally:
            end()
        rows[function.__name__] = {
            "plain_ms": plain * 1e3,
            "evaluated_ms": evaluated * 1e3,
            "ratio": evaluated / plain,
        }
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    from cresset import _C

    rows = measure(options.repeats, _C._eval_begin, _C._eval_end)
    mean = math.exp(sum(math.log(row["ratio"]) for row in rows.values()) / len(rows))
    if options.json:
        json.dump({"benchmarks": rows, "geometric_mean_ratio": mean}, sys.stdout)
        return
    for name, row in rows.items():
        print(f"{name:16s} {row['plain_ms']:8.2f} ms {row['evaluated_ms']:8.2f} ms  {row['ratio']:5.2f}x")
    print(f"geometric mean {mean:.2f}x")


if __name__ == "__main__":
    main()

"""Python loops over sizes, called with many sizes: equal to eager mode, and not a program for each size."""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

sys.path.extend(map(str, Path(__file__).resolve().parents[1].glob("*")))  # where this file is a script

import pytest
import torch
import torch.nn as nn
from compare import same_structure

import cresset


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def sizes(low, high, step=1):
    return range(low, high, step)


PROGRAMS = {}


def program(*calls):
    """A program from a function, with the arguments of its calls."""

    def add(f):
        PROGRAMS[f.__name__] = (f, list(calls[0]))
        return f

    return add


PAIRS = [(n, m) for n in range(3, 11) for m in range(3, 8)]


@program((draw(n, seed=n), draw(m, seed=m)) for n, m in PAIRS)
def time_warping(a, b):
    d = (a[:, None] - b[None]).abs()
    row = d[0].cumsum(0)
    for i in range(1, d.shape[0]):
        new = [row[0] + d[i, 0]]
        for j in range(1, d.shape[1]):
            new.append(d[i, j] + torch.minimum(torch.minimum(row[j], row[j - 1]), new[-1]))
        row = torch.stack(new)
    return row[-1]


@program((draw(n, seed=n) > 0, draw(m, seed=m) > 0) for n, m in PAIRS)
def edit_distance(a, b):
    d = torch.zeros(len(a) + 1, len(b) + 1, dtype=torch.int64)
    d[:, 0] = torch.arange(len(a) + 1)
    d[0] = torch.arange(len(b) + 1)
    for i in range(len(a)):
        for j in range(len(b)):
            change = d[i, j] + (a[i] != b[j])
            d[i + 1, j + 1] = torch.minimum(torch.minimum(d[i, j + 1], d[i + 1, j]) + 1, change)
    return d[-1, -1]


@program((draw(n, 4, seed=n), draw(4, 4)) for n in range(2, 42))
def viterbi(scores, moves):
    best, back = scores[0], []
    for t in range(1, scores.shape[0]):
        best, from_ = (best[:, None] + moves).max(0)
        best = best + scores[t]
        back.append(from_)
    path = [best.argmax()]
    for from_ in reversed(back):
        path.append(from_[path[-1]])
    return torch.stack(path[::-1]), best.max()


@program((draw(n, 2, seed=n), torch.eye(2)) for n in range(2, 42))
def kalman_filter(seen, covariance):
    mean, seen_mean = torch.zeros(2), []
    for z in seen:
        covariance = covariance + 0.1 * torch.eye(2)
        gain = covariance @ torch.linalg.inv(covariance + 0.5 * torch.eye(2))
        mean = mean + gain @ (z - mean)
        covariance = (torch.eye(2) - gain) @ covariance
        seen_mean.append(mean)
    return torch.stack(seen_mean), covariance


@program(((draw(n, m, seed=n) > 0),) for n, m in PAIRS)
def connected_components(image):
    labels = torch.arange(1, image.numel() + 1).reshape(image.shape) * image
    for _ in range(image.shape[0] + image.shape[1]):
        padded = torch.nn.functional.pad(labels, (1, 1, 1, 1))
        around = torch.stack([padded[:-2, 1:-1], padded[2:, 1:-1], padded[1:-1, :-2], padded[1:-1, 2:]])
        labels = torch.maximum(labels, around.max(0).values) * image
    return labels


@program((draw(n, n, seed=n),) for n in range(2, 42))
def shortest_paths(d):
    d = d.abs()
    for k in range(d.shape[0]):
        d = torch.minimum(d, d[:, k, None] + d[None, k])
    return d


@program((draw(n, seed=n),) for n in range(2, 42))
def recursive_filter(x):
    out, y = [], torch.zeros(())
    for t in range(x.shape[0]):
        y = 0.9 * y + x[t]
        out.append(y)
    return torch.stack(out)


@program((draw(n, n, seed=n) + n * torch.eye(n),) for n in range(2, 22))
def elimination(a):
    a = a.clone()
    for k in range(a.shape[0] - 1):
        for i in range(k + 1, a.shape[0]):
            a[i] = a[i] - a[k] * (a[i, k] / a[k, k])
    return a


@program((draw(n, seed=n),) for n in range(2, 18))
def bubble_sort(x):
    x = x.clone()
    for i in range(len(x)):
        for j in range(len(x) - 1 - i):
            low, high = torch.minimum(x[j], x[j + 1]), torch.maximum(x[j], x[j + 1])
            x[j], x[j + 1] = low, high
    return x


@program((draw(n, 3, seed=n), draw(m, 3, seed=m)) for n, m in PAIRS)
def alignment_by_dictionary(a, b):
    table = {}
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            before = [table[k] for k in ((i - 1, j), (i, j - 1), (i - 1, j - 1)) if k in table]
            here = (a[i] - b[j]).square().sum()
            table[i, j] = here + (torch.stack(before).min() if before else 0)
    return table[a.shape[0] - 1, b.shape[0] - 1]


CELL = nn.Linear(3, 3)


@program((draw(n, 3, seed=n), CELL) for n in range(2, 42))
def cells_over_time(x, cell):
    h = torch.zeros(3)
    with torch.no_grad():
        for t in range(x.size(0)):
            h = torch.tanh(cell(h) + x[t])
    return h


@program((draw(n, 5, seed=n), torch.arange(1, 1 + (n % 4))) for n in range(4, 44))
def alignments_of_labels(scores, labels):
    """The forward pass of CTC."""
    scores = scores.log_softmax(-1)
    extended = [0]
    for k in range(len(labels)):
        extended += [int(labels[k]), 0]
    alpha = [scores[0, extended[0]], *([scores[0, extended[1]]] if len(extended) > 1 else [])]
    alpha += [torch.tensor(-1e9)] * (len(extended) - len(alpha))
    for t in range(1, scores.shape[0]):
        new = []
        for s in range(len(extended)):
            terms = [alpha[s]] + ([alpha[s - 1]] if s > 0 else [])
            if s > 1 and extended[s] != 0 and extended[s] != extended[s - 2]:
                terms.append(alpha[s - 2])
            new.append(torch.logsumexp(torch.stack(terms), 0) + scores[t, extended[s]])
        alpha = new
    return torch.logsumexp(torch.stack(alpha[-2:]), 0)


@program((draw(n, m, seed=n + m),) for n, m in PAIRS)
def rows_by_enumeration(x):
    total = torch.zeros(x.shape[1])
    for i, row in enumerate(x):
        total = total * 0.5 + row * i
    return total


@program((draw(n, seed=n),) for n in range(2, 42))
def while_halves(x):
    while x.shape[0] > 1:
        half = x.shape[0] // 2
        x = torch.cat([x[:half] + x[half : 2 * half], x[2 * half :]])
    return x


@program((draw(n, 2, seed=n),) for n in range(2, 22))
def pairs_by_comprehension(x):
    return torch.stack([(x[i] - x[j]).norm() for i in range(len(x)) for j in range(i + 1, len(x))]).sum()


# Programs compiled while sizes are met for the first time. Each of the programs above is called with as many sizes as
# it has calls, most of them once. The first sizes of a loop are compiled (kSizesOfLoop, frontend/feedback/thresholds.h).
MOST_GRAPHS = 24
FIRST_SIZES = 8


@pytest.mark.parametrize("name", PROGRAMS)
def test_loops_are_bounded(name):
    f, calls = PROGRAMS[name]
    g = cresset.compile(f)
    graphs = []
    for args in calls:
        got, expected = g(*args), f(*args)
        same_structure(got, expected)
        torch.testing.assert_close(got, expected)
        graphs.append(cresset.stats()["graphs"])
    assert graphs[-1] <= MOST_GRAPHS, graphs
    assert graphs[-1] <= FIRST_SIZES or graphs[-1] - graphs[len(graphs) // 2] <= 2, f"compiles on: {graphs}"


@pytest.mark.parametrize("name", PROGRAMS)
def test_sizes_that_come_again_are_compiled(name):
    """Sizes that repeat: calls left to eager mode before are compiled in the end."""
    f, calls = PROGRAMS[name]
    g = cresset.compile(f)
    eager = 0
    for _ in range(4000):
        for args in calls[:2]:
            g(*args)
        if cresset.stats()["eager_calls"] == eager:
            break
        eager = cresset.stats()["eager_calls"]
    graphs = cresset.stats()["graphs"]
    for args in calls[:2]:
        torch.testing.assert_close(g(*args), f(*args))
    assert (cresset.stats()["eager_calls"], cresset.stats()["graphs"]) == (eager, graphs)


def main(names):
    warnings.simplefilter("ignore")
    for name, (f, calls) in PROGRAMS.items():
        if names and name not in names:
            continue
        cresset.reset()
        times = []
        for g in (f, cresset.compile(f)):
            begin = time.perf_counter()
            for args in calls:
                g(*args)
            times.append(time.perf_counter() - begin)
        s = cresset.stats()
        print(
            f"{name:26} eager {times[0]:.3f} s, compiled {times[1]:.3f} s, {times[1] / times[0]:5.1f} times; "
            f"graphs {s['graphs']}, breaks {s['graph_breaks']}, eager calls {s['eager_calls']}",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])

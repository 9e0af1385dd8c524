"""Small functions that change a world, called six times while the world also changes from outside."""

import collections
import contextlib
import dataclasses
import enum
import functools
import io
import itertools
import re
import sys
import types
import warnings

import pytest
import torch
from state_table import plain

import cresset

BODIES = {
    "locals first": "    a = w.n\n    d = locals()\n    return x*d['a'], sorted(d)",
    "locals after break": "    a = int(x.sum())\n    d = locals()\n    return x*d['a'], sorted(d)",
    "locals comp": "    return [sorted(locals()) for i in range(2)], x+w.n",
    "eval names": "    k = w.n\n    return eval('x*k+w.n')",
    "eval global": "    return eval('G_v+1'), x*2",
    "exec": "    d={}\n    exec('q = w.n+1', {'w':w}, d)\n    return x*d['q']",
    "exec plain": "    exec('w.n2 = w.n*2')\n    return x*w.n2",
    "frame": "    return sys._getframe().f_lineno > 0, sys._getframe().f_code.co_name, x+w.n",
    "frame locals": "    q = w.n\n    return sys._getframe().f_locals['q'], x",
    "frame after break": "    q = int(x.sum())\n    return sys._getframe().f_code.co_name, x+q",
    "warn": "    warnings.warn('n')\n    return x*w.n",
    "cls made": "    class K:\n        v = w.n\n        def m(self): return self.v\n    print(K().m(), file=out)\n    return x*K().m()",
    "cls closure": "    n = w.n\n    class K:\n        def m(self): return n\n    print('a', file=out)\n    return x*K().m()",
    "cls closure2": "    n = int(x.sum())+w.n\n    class K:\n        def m(self): return n\n    print('a', file=out)\n    return x*K().m()",
    "cls stored": "    n = w.n\n    class K:\n        def m(self): return n\n    w.K = K\n    return x*w.K().m()",
    "fn closure": "    n = w.n\n    def m(): return n\n    print('a', file=out)\n    return x*m()",
    "fn stored": "    n = w.n\n    w.m = lambda: n\n    print('a', file=out)\n    return x*w.m()",
    "nt made": "    N = collections.namedtuple('N','a b')\n    print('a', file=out)\n    return x*N(w.n,2).a",
    "dc made": "    @dataclasses.dataclass\n    class D:\n        a: int = w.n\n    print('a', file=out)\n    return x*D().a",
    "enum made": "    K = enum.Enum('K', {'A': w.n})\n    print('a', file=out)\n    return x*K.A.value",
    "heap": "    import heapq\n    heapq.heappush(w.h, w.n)\n    print('a', file=out)\n    return x*w.h[0], list(w.h)",
    "dd": "    w.dd[w.n].append(x.sum())\n    print('a', file=out)\n    return len(w.dd[w.n]), sorted(w.dd)",
    "dd2": "    w.dd['k'].append(w.n)\n    return x*len(w.dd['k'])",
    "dd3": "    w.di['k'] += w.n\n    return x*w.di['k']",
    "dd new": "    d = collections.defaultdict(list)\n    for i in w.l: d[i%2].append(x*i)\n    return dict(d)",
    "counter": "    w.c.update(w.l)\n    return x*w.c[1], dict(w.c)",
    "counter new": "    c = collections.Counter(w.l)\n    return x*c[1], c.most_common(1), dict(c)",
    "od": "    w.od.move_to_end('a')\n    return x, list(w.od)",
    "od2": "    w.od['z'+str(len(w.od))] = x\n    return list(w.od), len(w.od)",
    "cache": "    if w.n not in w.d: w.d[w.n] = x*w.n\n    return w.d[w.n]",
    "cache t": "    k = tuple(x.shape)\n    if k not in w.d: w.d[k] = torch.ones(k)*w.n\n    return w.d[k]+x",
    "queue": "    w.q.append(x)\n    if len(w.q) > 2: w.q.popleft()\n    return sum(w.q)",
    "stat": "    w.total += float(x.sum())\n    w.cnt += 1\n    return x/w.cnt, w.total",
    "ema": "    w.t = w.t*0.9 + x*0.1\n    return w.t",
    "ema inplace": "    w.t.mul_(0.9).add_(x*0.1)\n    return w.t.clone()",
    "list growing": "    w.ts.append(x*w.n)\n    return torch.stack(w.ts).sum(0)",
    "list growing2": "    w.ts.append(x*w.n)\n    return torch.cat(w.ts)",
    "dict of lists": "    w.d.setdefault('a',[]).append(w.n)\n    return x*sum(w.d['a'])",
    "nested write": "    w.d['q'] = {'r':[w.n]}\n    w.d['q']['r'].append(2)\n    return x*sum(w.d['q']['r'])",
    "swap": "    w.l[0], w.l[1] = w.l[1], w.l[0]\n    return x*w.l[0]",
    "del": "    if len(w.l)>1: del w.l[0]\n    return x*w.l[0]",
    "slice assign": "    w.l[1:] = [w.n]*2\n    return x*sum(w.l)",
    "aug item": "    w.l[0] += 1\n    return x*w.l[0]",
    "aug attr": "    w.n += 1\n    return x*w.n",
    "global": "    global G_v\n    G_v += 1\n    return x*G_v",
    "try finally": "    try:\n        w.n += 1\n        if w.n % 2: raise ValueError(w.n)\n        return x\n    except ValueError as e:\n        return x*e.args[0]\n    finally:\n        w.l.append(w.n)",
    "ctx": "    with w.cm() as c:\n        r = x*c\n    return r, w.depth",
    "gen state": "    return x*next(w.gen)",
    "iter list": "    it = iter(w.l)\n    a = next(it)\n    print(a, file=out)\n    return x*sum(it)",
    "map lazily": "    m = map(lambda i: i*w.n, w.l)\n    print('k', file=out)\n    return x*sum(m)",
    "sorted state": "    w.l.sort(key=lambda i: -i)\n    return x*w.l[0]",
    "walrus": "    if (k := w.n) > 3: return x*k\n    return x-k",
    "star": "    a, *b = w.l\n    return x*a, b",
    "kwargs": "    def g(a, *p, k=1, **q): return a, p, k, q\n    return g(*w.l, **w.d), x",
    "match": "    match w.l:\n        case [a, *r]: return x*a, r\n        case _: return x",
    "dict comp": "    return {k: x*v for k, v in zip('abc', w.l)}",
    "set comp": "    return sorted({i*w.n for i in w.l}), x",
    "string build": "    s = ''\n    for i in w.l: s += str(i)+','\n    return s, x",
    "f-string": "    return f'{w.n:>4}|{w.l!r}|{x.shape}', x",
    "chained cmp": "    return (x if 0 < w.n < 4 else -x)",
    "ternary tensor": "    return x.relu() if x.sum() > w.n else x.tanh()",
    "while": "    i = 0\n    while i < w.n:\n        x = x + i\n        i += 1\n    return x",
    "while tensor": "    while x.sum() < 50: x = x*2+1\n    return x",
    "early return": "    for i in w.l:\n        if i == 1: return x*i\n    return x",
    "nonlocal": "    c = 0\n    def inc():\n        nonlocal c\n        c += w.n\n    inc(); inc()\n    return x*c",
    "rec": "    def fib(n): return n if n < 2 else fib(n-1)+fib(n-2)\n    return x*fib(w.n)",
    "partial": "    g = functools.partial(torch.add, alpha=w.n)\n    return g(x, x)",
    "reduce": "    return functools.reduce(lambda a, b: a*b, w.l)*x",
    "accumulate": "    return list(itertools.accumulate(w.l))[-1]*x",
    "zip longest": "    return [a for a in itertools.zip_longest(w.l, [1])], x",
    "groupby": "    return [(k, list(g)) for k, g in itertools.groupby(sorted(w.l), lambda i: i % 2)], x",
}


class CM:
    def __init__(s, w):
        s.w = w

    def __enter__(s):
        s.w.depth += 1
        return s.w.depth

    def __exit__(s, *a):
        s.w.depth -= 1
        return False


def gen():
    i = 0
    while True:
        i += 1
        yield i


def world():
    w = types.SimpleNamespace(
        n=3,
        l=[3, 1, 2],
        d={"k": 1},
        h=[5, 9],
        dd=collections.defaultdict(list),
        di=collections.defaultdict(int),
        c=collections.Counter(),
        od=collections.OrderedDict(a=1, b=2),
        q=collections.deque(),
        total=0.0,
        cnt=0,
        t=torch.zeros(3),
        ts=[],
        depth=0,
        memo=functools.lru_cache(lambda n: n * 2),
        gen=gen(),
    )
    w.cm = lambda: CM(w)
    return w


NAMES = {
    "collections": collections,
    "contextlib": contextlib,
    "dataclasses": dataclasses,
    "enum": enum,
    "functools": functools,
    "itertools": itertools,
    "sys": sys,
    "types": types,
    "warnings": warnings,
    "torch": torch,
}


def run(compiled, body):
    out, names, results = io.StringIO(), dict(NAMES), []
    names.update(out=out, G_v=1)
    exec(f"def f(w, x):\n{body}\n", names)
    w, f = world(), compiled(names["f"])
    for i in range(6):
        if i == 2:
            w.n = 5
        if i == 4:
            w.l.insert(0, 7)
            w.n = 3
        try:
            results.append(plain(f(w, torch.arange(3.0) + i)))
        except Exception as e:
            results.append((type(e).__name__, str(e)[:300]))
    kept = [w.n, w.l, w.d, w.h, dict(w.dd), dict(w.di), dict(w.c), list(w.od), list(w.q), w.total, w.cnt, w.t, w.ts]
    state = str(plain([*kept, w.depth, names["G_v"], out.getvalue()]))
    return [*results, re.sub(" at 0x[0-9a-f]+", "", state)]


@pytest.mark.parametrize("grad", [False, True], ids=["no_grad", "grad"])
@pytest.mark.parametrize("name", BODIES)
@pytest.mark.filterwarnings("ignore")
def test_over_calls(name, grad):
    with torch.set_grad_enabled(grad):
        expected = run(lambda f: f, BODIES[name])
        cresset.reset()
        assert run(cresset.compile, BODIES[name]) == expected

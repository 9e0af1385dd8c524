"""Strings from numbers: equal to eager's at each call, and no graph for each call, whatever the numbers are."""

import collections
import enum
import functools
import io
import operator
import os
import pathlib
import re
import string
import types
import warnings

import pytest
import torch

import cresset

# Bodies of f(x, n, lr, word, w, out).
BODIES = {
    "f-string of data": "v = x.sum().item(); return x + 1, f'loss {v:.4f}', f'{v}'",
    "f-strings in a row": "return x + 1, [f'{v.item():.2f}' for v in x]",
    "percent": "return x * lr, '%.3f' % lr, 'lr %.2e at %d' % (lr, n)",
    "str and repr": "return x * lr, str(lr), repr(n), str(n + 1), format(lr, '.2f'), hex(n)",
    "format": "return x, '{0:.3f} {k} {0!r:>8}'.format(lr, k=n)",
    "joined": "return x, ' '.join(f'{k}={v:.2f}' for k, v in {'a': lr, 'b': lr * 2}.items()), 'n' + str(n) + '!'",
    "in place": "s = ''\nfor i in range(3): s += f'{x[i].item():.1f},'\nreturn x, s, s * 2, s[-4:]",
    "of sizes": "y = x[: n % 3 + 1]; return y, f'{y.shape}', f'{y.shape[0]}x{y.numel()}', str(tuple(y.shape))",
    "methods": "s = f'{lr:.2f}'; return x, s.rjust(9), s.upper(), s.replace('.', ','), s.strip('0')",
    "printed": "print(f'loss {x.sum().item():.3f}', file=out); y = x * 2; print('lr', lr, file=out); return y + 1",
    "logged": "w.log.append(f'{lr:.3f}'); w.last = {'text': f'{n:03d}', 'v': lr}; return x * lr",
    "raised": "try: raise ValueError(f'bad {lr:.3f}')\nexcept ValueError as e: return x + 1, str(e), e.args",
    "handed on": "return {'name': word, 'text': f'{word}: {lr:.2f}', 'x': x * lr}",
    "over a break": "s = f'{lr:.2f}'; k = int((x > 0).sum()); s += f' {k}'\nreturn x * k, s, isinstance(s, str), type(s)",
    "steers": "s = f'{x.sum().item():.0f}'\nif s.startswith('-'): return x - 1\nreturn x + 1",
    "compared": "s = f'{x[0].item():.0f}'\nif s == '0' or '3' in s: return x - 1\nreturn x + 1",
    "read again": "v = float(f'{x.sum().item():.2f}'); return x * v, v",
    "rounded": "v = round(x.sum().item(), 3); return x * v, v, round(lr, 2)",
    "named tuple": "t = P(f'{lr:.2f}', n); return x, t, t._replace(a='b')",
    "named tuples of C code": "t = P(f'{lr:.2f}', n); d = {'a': 1}; return x, P._make([t.a, n]), len(t), list(map(d.pop, ('a', 'b'), t))",
    "classes with texts of their own": "m = Meter('loss', lr); return x * lr, str(m), repr(m), [str(a) for a in (m, m)]",
    "what is no text": "class A: __str__ = lambda self: n\ntry: return str(A())\nexcept TypeError as e: return x, str(e)",
    "a break in a text": "class A: __repr__ = lambda self: f'A({x.sum().item():.1f})'\nreturn repr(A()), str(A())",
}
# Few values: a graph for each is right, and code that reads the characters sees a str.
BODIES |= {
    "keys": "k = n % 3; d = {f'k{k}': x, f'k{k + 1}': k}; d[f'z{k}'] = 1; return d, f'k{k}' in d, {f's{k}'}",
    "attributes": "k = n % 2; setattr(w, f'a{k}', x); return getattr(w, f'a{k}') + 1, hasattr(w, f'b{k}')",
    "attributes in a star": "k = n % 2; setattr(*(w, f'a{k}', x)); return getattr(*[w, f'a{k}']) + 1, hasattr(*(w, f'b{k}'))",
    "attributes of data": "s = f'a{x[0].item() > -4}'; setattr(w, s, 1); return x + getattr(w, s), delattr(w, s), hasattr(w, s)",
    "keywords": "k = n % 3; return x, dict(**{f'a{k}': k}), '-'.join({f'a{k}': 1})",
    "matched": "match f'm{n % 3}':\n case 'm0': return x\n case str() as s: return x + 1, s",
    "characters": "s = f'n{n % 2}'; return x, list(s), len(s), s[0], s.encode(), hash(s) == hash(str(s)), [*s]",
    "lengths by map": "k = n % 3; return x, list(map(len, (f'{k}', f'a{k}')))",
    "widths": "k = n % 3 + 6; return x, f'{3.5:{k}.2f}', f'{n:>{k}}'",
}

# Inspected strings: specialized, or a graph break, whatever code inspects them.
LOOKED = {
    "keys of methods": "d = {}; d.setdefault(f'k{n % 2}', []).append(n); return d, d.get(f'k{n % 2}'), d.pop(f'k{n % 2}', None), d",
    "items of sets": "s = set(); s.add(f'k{n % 2}'); s |= {f'k{n % 2}', 'k1'}; s.discard(f'k{n % 3}'); return sorted(s), frozenset([f'k{n}'])",
    "pairs": "d = dict(zip([f'k{n % 2}', 'b'], [n, 2])); d.update([(f'k{n % 2}', 5)]); return d, d['b'], dict(**d)",
    "counted": "c = collections.Counter([f'k{n % 2}', 'k0']); return c, c['k0'], dict.fromkeys([f'k{n % 2}', 'k0'], n)",
    "keys of state": "w.d[f'k{n % 3}'] = n; w.s.add(f'k{n % 3}'); return x, len(w.d), 'k1' in w.d, f'k{n % 3}' in w.s",
    "names of functions": "def g(): pass\ng.__name__ = f'g{n % 2}'; setattr(g, '__qualname__', f'q{n % 2}'); return g.__name__, g.__qualname__",
    "names of classes": "C = type(f'C{n % 2}', (), {'a': f'{lr:.2f}'}); return C.__name__, C().a",
    "patterns": "return int(re.match(r'k(\\d+)', f'k{n}').group(1)) * x, re.sub('k', 'z', f'k{n}')",
    "messages of errors": "try: raise KeyError(f'k{n}')\nexcept KeyError as e: s = str(e), e.args\nreturn x, s, repr(ValueError(f'{lr:.2f}', n))",
    "paths": "return '/'.join([f'{n}', 'b']), os.path.join('a', f'{n}'), str(pathlib.PurePosixPath('a') / f'{n}.txt')",
    "variables of the environment": "os.environ[f'CR{n % 2}'] = f'{n}'; return os.environ[f'CR{n % 2}'], os.getenv(f'CR{n % 2}')",
    "templates": "return string.Template('$a').substitute(a=f'{n}'), '{a}'.format(a=f'{n}'), '%(a)s' % {'a': f'{n}'}, f'{n}'.join('ab')",
    "sorted": "l = [f'{n}', f'{n + 5}', '7']; l.sort(); return l, sorted(l, reverse=True), max(l), l.index('7'), l.count(f'{n}')",
    "iterated": "a, *b = f'{n + 10}'; return a, b, list(reversed(f'{n}')), list(enumerate(f'{n}')), list(zip(f'{n}', 'abc'))",
    "compared in many ways": "s = f'{n}'; return s == '3', s < '5', s in ('3', '10'), '1' in s, bool(s), not s, s or 'z', s is s",
    "asked of": "s = f'{n}'; return isinstance(s, (int, str)), isinstance(s, collections.abc.Sequence), s.__class__, len(s), dir(s) == dir('a')",
    "read as numbers": "return int(f'{n}'), float(f'{lr:.2f}'), ord(f'{n % 10}'), sum(map(int, [f'{n}', '2'])), bytes(f'{n}', 'utf8')",
    "getters": "d = {'k0': 1, 'k1': 2}; return operator.itemgetter(f'k{n % 2}')(d), operator.methodcaller('upper')(f'a{n}'), operator.contains(f'a{n}', '1')",
    "caches": "return x, w.cached(f'k{n % 3}'), w.cached(f'k{n % 3}')",
    "partial": "return functools.partial(lambda a, b: (a, b), f'{n}')(n), functools.partial(str.upper, f'a{n}')(), functools.reduce(operator.add, [f'{n}', 'z'])",
    "equations": "k = 'ij'[n % 2]; return torch.einsum(f'{k},{k}->{k}', x, x), F.pad(x, (1, 1), mode=f'{\"constant\"}')",
    "buffers": "m = torch.nn.Module(); m.register_buffer(f'b{n % 2}', x); return getattr(m, f'b{n % 2}') + 1, sorted(m.state_dict())",
    "members": "return E(f'a{n % 2}'), E(f'a{n % 2}') is E.A, E[f'{\"AB\"[n % 2]}']",
    "warnings": "warnings.warn(f'w {lr:.2f}'); return x + 1",
}


def arguments(i):
    return torch.arange(4.0) * 0.75 - i, 7 * i + 3, 0.1 * 0.8**i, f"word{min(i, 1)}"


class E(enum.Enum):
    A = "a0"
    B = "a1"


def outcomes(f):
    w, out = types.SimpleNamespace(log=[], last=None, word="first", d={}, s=set()), io.StringIO()
    w.cached = functools.lru_cache(lambda text: (text, len(text)))
    results, graphs = [], []
    for i in range(12):
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            results.append(repr(f(*arguments(i), w, out)))
        results += [str(warning.message) for warning in given]
        graphs.append(cresset.stats()["graphs"])
    del w.cached
    w.s = sorted(w.s)
    return [*results, repr(w), out.getvalue()], graphs


class Meter:
    def __init__(self, name, value):
        self.name, self.value = name, value

    def __str__(self):
        return f"{self.name} {self.value:.3f}"

    def __repr__(self):
        return "Meter(" + str(self) + ")"


NAMES = {
    "Meter": Meter,
    "P": collections.namedtuple("P", "a b"),
    "F": torch.nn.functional,
    **{m.__name__: m for m in (torch, collections, functools, operator, os, pathlib, re, string, warnings)},
    "E": E,
}


def function(body):
    names = dict(NAMES)
    exec("def f(x, n, lr, word, w, out):\n " + body.replace("\n", "\n "), names)
    return names["f"]


@pytest.mark.parametrize("name", BODIES)
def test_texts(name):
    expected, _ = outcomes(function(BODIES[name]))
    cresset.reset()
    got, graphs = outcomes(cresset.compile(function(BODIES[name])))
    assert got == expected
    assert graphs[-1] == graphs[5], graphs
    assert cresset.stats()["eager_fallbacks"] == 0


@pytest.mark.parametrize("name", LOOKED)
def test_texts_that_are_looked_at(name):
    expected, _ = outcomes(function(LOOKED[name]))
    cresset.reset()
    got, _ = outcomes(cresset.compile(function(LOOKED[name])))
    assert got == expected
    assert cresset.stats()["eager_calls"] == cresset.stats()["eager_fallbacks"] == 0


def test_a_text_of_data_under_fullgraph():
    def f(x):
        loss = (x * x).mean()
        return x * 2, f"loss {loss.item():.3f}"

    compiled = cresset.compile(f, fullgraph=True)
    for i in range(3):
        x = torch.arange(4.0) + i
        assert compiled(x)[1] == f(x)[1]

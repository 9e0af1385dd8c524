"""Texts that numbers give: equal to eager's at each call, and no graph a call, whatever the numbers are."""

import collections
import io
import types

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
    "kept in state": "before = w.word; w.word = f'{word}!'; return x + 1, before",
    "over a break": "s = f'{lr:.2f}'; k = int((x > 0).sum()); s += f' {k}'\nreturn x * k, s, isinstance(s, str), type(s)",
    "steers": "s = f'{x.sum().item():.0f}'\nif s.startswith('-'): return x - 1\nreturn x + 1",
    "compared": "s = f'{x[0].item():.0f}'\nif s == '0' or '3' in s: return x - 1\nreturn x + 1",
    "read again": "v = float(f'{x.sum().item():.2f}'); return x * v, v",
    "rounded": "v = round(x.sum().item(), 3); return x * v, v, round(lr, 2)",
    "named tuple": "t = P(f'{lr:.2f}', n); return x, t, t._replace(a='b')",
}
# Few values: one graph for each is right, and what looks at the characters sees a str.
BODIES |= {
    "keys": "k = n % 3; d = {f'k{k}': x, f'k{k + 1}': k}; d[f'z{k}'] = 1; return d, f'k{k}' in d, {f's{k}'}",
    "attributes": "k = n % 2; setattr(w, f'a{k}', x); return getattr(w, f'a{k}') + 1, hasattr(w, f'b{k}')",
    "keywords": "k = n % 3; return x, dict(**{f'a{k}': k}), '-'.join({f'a{k}': 1})",
    "matched": "match f'm{n % 3}':\n case 'm0': return x\n case str() as s: return x + 1, s",
    "characters": "s = f'n{n % 2}'; return x, list(s), len(s), s[0], s.encode(), hash(s) == hash(str(s)), [*s]",
    "widths": "k = n % 3 + 6; return x, f'{3.5:{k}.2f}', f'{n:>{k}}'",
}


def arguments(i):
    return torch.arange(4.0) * 0.75 - i, 7 * i + 3, 0.1 * 0.8**i, f"word{i}"


def outcomes(f):
    w, out = types.SimpleNamespace(log=[], last=None, word="first"), io.StringIO()
    results, graphs = [], []
    for i in range(12):
        results.append(repr(f(*arguments(i), w, out)))
        graphs.append(cresset.stats()["graphs"])
    return [*results, repr(w), out.getvalue()], graphs


def function(body):
    names = {"P": collections.namedtuple("P", "a b"), "torch": torch}
    exec("def f(x, n, lr, word, w, out):\n " + body.replace("\n", "\n "), names)
    return names["f"]


@pytest.mark.parametrize("name", BODIES)
def test_texts(name):
    expected, _ = outcomes(function(BODIES[name]))
    cresset.reset()
    got, graphs = outcomes(cresset.compile(function(BODIES[name])))
    assert got == expected
    assert graphs[-1] == graphs[5], graphs
    assert cresset.stats()["native_stretches"] == 0


def test_a_text_of_data_under_fullgraph():
    def f(x):
        loss = (x * x).mean()
        return x * 2, f"loss {loss.item():.3f}"

    compiled = cresset.compile(f, fullgraph=True)
    for i in range(3):
        x = torch.arange(4.0) + i
        assert compiled(x)[1] == f(x)[1]

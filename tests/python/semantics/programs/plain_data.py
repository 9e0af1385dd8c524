# size: table
"""Large plain data that lives across a graph break and differs at each call: code after the graph break sees the
present content. As programs_library, with the prelude of programs_torch."""

_DATA = """|W = {n: [(i * n % 5, "t%d" % (i * n % 3)) for i in range(70 + n % 3)] for n in range(12)}
v = list(W[w.n]); d = {"k%d" % i: t for i, (_, t) in enumerate(W[w.n])}; a = v[3]
y = x + 1
print("|")
"""
_LOOKS = {
    "item": "return y * v[7][0], d['k8']",
    "item_from_the_end": "return y * v[-1][0], v[-2]",
    "slice": "return y, v[2:6], v[::30]",
    "length": "return y * len(v), y / len(d)",
    "length_and_written": "v.append((1, 'a')); d['new'] = 'b'; return y * len(v), y / len(d)",
    "length_then_break": "y = y * len(v)\nprint('|')\nreturn y + len(v), len(d)",
    "no_look": "y = y * 2\nprint('|')\nreturn y, v, d, v[0] is W[w.n][0]",
    "truth": "return (y if v else -y), not d",
    "loop": "s = 0\nfor i, t in v: s += i\nreturn y * s",
    "loop_over_keys": "s = ''\nfor k in d: s = max(s, k)\nreturn y, s",
    "loop_over_a_break": "s = 0\nfor j, (i, t) in enumerate(v):\n    s += i\n    if j == 5: print('|')\nreturn y * s, s",
    "comprehension": "return y, [t for i, t in v if i > 2], {k: t for k, t in [*d.items()][:9] if t != 't1'}",
    "unpack": "first, *rest = v; return y * first[0], len(rest), rest[4]",
    "contains": "return y, (1, 't1') in v, (4, 't2') in v, 'k71' in d",
    "count_and_index": "return y, v.count((0, 't0')), v.index((0, 't0'))",
    "sum_and_max": "return y * sum(i for i, _ in v), max(v), min(d.values())",
    "sorted_and_reversed": "return y, sorted(v)[5], list(reversed(v))[0], sorted(d)[-1]",
    "compare": "return y, v == W[w.n], v == W[2], d == {}, v < W[3]",
    "concatenated": "u = v + [(9, 'z')]; return y, u, len(u)",
    "concatenated_and_seen": "u = v + [(9, 'z')]; print('|'); return y * u[3][0], v[3]",
    "starred": "f = lambda *a, **k: (len(a), a[5], len(k), k['k6']); return y, f(*v, **d), [*v][4], {**d}['k3']",
    "text": "return y, str(v)[:30], f'{d}'[:30], repr(v[4])",
    "json": "import json; return y, json.dumps(v), json.loads(json.dumps(d))['k5']",
    "copies": "import copy; return y, copy.copy(v)[3], copy.deepcopy(d)['k3'], v.copy()[2], list(v)[6], dict(d)['k9']",
    "to_tensor": "return y.sum() + torch.tensor([i for i, _ in v]).sum(), torch.tensor(v[5][0])",
    "numbers_to_tensor": "u = [i for i, _ in v]\nprint('|')\nreturn y.sum() + torch.tensor(u).sum(), x[:1].repeat(u[4] + 1, 1)",
    "numpy": "u = [i for i, _ in v]\nprint('|')\nreturn y, np.array(u).sum(), np.asarray(u)[3]",
    "index_of_tensor": "u = [i % 2 for i, _ in v][:40] * 2\nprint('|')\nreturn torch.arange(9.0)[u], y",
    "pop_and_insert": "q = v.pop(); v.insert(0, q); r = d.pop('k4'); return y, q, r, v, d",
    "written": "v[3] = (7, 'u'); d['k3'] = 'u'; print('|'); return y, v, d",
    "sorted_in_place": "v.sort(); print('|'); return y, v, v[3]",
    "cleared": "u = v; v.clear(); print('|'); return y, u, v is u",
    "part_held_elsewhere": "y = y * 2; print('|'); return y, a, a is v[3], a is W[w.n][3]",
    "part_given_back": "y = y * 2; b = v[9]; print('|'); return y, b, b is v[9]",
    "in_containers": "u = [v, {'d': d}]; print('|'); return y * u[0][5][0], u[1]['d']['k7']",
    "in_an_object": "o = types.SimpleNamespace(v=v, d=d); print('|'); return y * o.v[6][0], o.d['k8'], len(o.v)",
    "in_a_partial": "p = functools.partial(lambda a, b: (a[4], b['k5']), v, b=d); print('|'); return y, p()",
    "in_a_closure": "f = lambda: (v[4], d['k2'], len(v)); print('|'); return y, f()",
    "in_an_iterator": "i = iter(v); next(i); print('|'); return y, next(i), list(i)[3]",
    "in_a_generator": "g = (t for t in v); next(g); print('|'); return y, next(g), len(list(g))",
    "in_views": "k, i = d.keys(), d.items(); print('|'); return y, list(k)[-1], list(i)[4], len(k), 'k70' in k",
    "to_a_function": "def f(a): return a[8][0]\ny = y * f(v); print('|'); return y * f(v)",
    "to_a_method": "o = [].__class__(); o.extend(v); print('|'); return y, o[5], len(o)",
    "zip_and_map": "u = list(zip(v, d)); print('|'); return y, u[4], list(map(len, d))[2], dict(u[:3])",
    "two_lists_of_one": "u = v; v.append((5, 'e')); print('|'); return y, u is v, u[-1], len(u)",
    "rows": "u = [list(r) for r in v]; print('|'); return y, u[5], [r[0] for r in u][3]",
    "records": "u = [{'i': i, 't': t} for i, t in v]; print('|'); return y * u[6]['i'], u[4]",
    "deque_and_set": "q, s = collections.deque(v), set(v); print('|'); return y, q[4], sorted(s), len(s)",
    "bisect_and_counter": "import bisect; u = sorted(v); c = collections.Counter(v); print('|'); return y, bisect.bisect(u, (2, '')), c[v[3]]",
    "joined": "u = [t for _, t in v]; print('|'); return y, ','.join(u)",
    "match": "match v:\n    case [(0, 't0'), *rest]: return y, 'zero', len(rest)\n    case [p, *_]: return y * 2, p",
    "argument": "def f(x, rows): return x * rows[4][0]\nreturn cresset.disable(f)(y, v), f(y, v)",
}

PROGRAMS = "\n\n".join(f"plain_data_{name}\n{_DATA}{look}" for name, look in _LOOKS.items())

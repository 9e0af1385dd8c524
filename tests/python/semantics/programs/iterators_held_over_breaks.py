# size: table
"""Programs that hold iterators of itertools across a graph break: accumulate, tee, groupby and their shared state (rows
as in programs/standard_library.py)."""

PROGRAMS = r"""
accumulate_over_a_break
it = itertools.accumulate([w.n, x.shape[0], 3]); a = next(it)
print("b")
b = next(it)
print("b")
return x * a, a, b, list(it)

accumulate_with_function
it = itertools.accumulate([x, x + 1, x * 2], torch.mul, initial=x); a = next(it)
print("b")
b = next(it); c = next(it)
print("b")
return a, b, c, list(it)

tee_over_a_break
a, b = itertools.tee([x, x + 1, w.n]); p = next(a)
print("b")
q = next(b), next(a)
print("b")
return p, q, list(a), list(b)

tee_of_a_generator
def g():
    for i in range(4): yield x * i
a, b = itertools.tee(g()); p = next(a)
print("b")
q = next(b)
print("b")
return p, q, list(a), list(b)

groupby_over_a_break
r = []
for k, group in itertools.groupby([1, 1, 2, w.n, w.n], key=lambda v: v % 2):
    print("b")
    r.append((k, [x * v for v in group]))
return r

groupby_held
g = itertools.groupby(["a", "a", "b"]); k, i = next(g)
print("b")
l = list(i); k2, j = next(g)
print("b")
return x * len(l), k, k2, list(j)

three_tees_of_one
a, b, c = itertools.tee(iter([x, w.n, x.shape[0], 4]), 3); r = [next(a), next(a), next(b)]
print("b")
r.append(next(c)); r.append(next(b))
print("b")
d = __import__("copy").copy(b)
print("b")
r += [list(a), list(b), list(c), list(d)]
return r

tee_in_an_object
class Box: pass
b = Box(); b.a, b.b = itertools.tee([w.n, 2, 3]); l = [b.a]; r = [next(b.a)]
print("b")
r.append(next(b.b)); r.append(b.a is l[0])
print("b")
return x * w.n, r, list(b.b), list(l[0])

tee_exhausted_and_raising
def g():
    yield w.n
    raise ValueError("end")
a, b = itertools.tee(g()); r = [next(a)]
print("b")
try: next(a)
except ValueError as e: r.append(str(e))
print("b")
r.append(next(b)); r.append(next(b, "none")); r.append(next(a, "none"))
return x, r

tee_in_state
if not hasattr(w, "tee"): w.tee = itertools.tee(range(100))
a, b = w.tee
r = next(a), next(b), next(a)
print("b")
return x * r[2], r, next(b)

accumulate_in_state
if not hasattr(w, "acc"): w.acc = itertools.accumulate(itertools.count(1))
r = next(w.acc)
print("b")
return x * r, next(w.acc)

accumulate_of_none_and_texts
a = itertools.accumulate([None, 1, 2], lambda p, q: q if p is None else p); b = itertools.accumulate("abc")
c = itertools.accumulate([], initial=w.n); d = itertools.accumulate([w.n], initial=None)
r = [next(a), next(b)]
print("b")
r += [next(a), next(b), next(c), next(d)]
print("b")
return x, r, list(a), list(b), list(c), list(d)

accumulate_function_of_the_program
def f(a, b):
    w.calls = getattr(w, "calls", 0) + 1
    return a * 2 + b
it = itertools.accumulate((x + i for i in range(4)), f); a = next(it)
print("b")
b = next(it)
print("b")
return a, b, list(it), w.calls

accumulate_function_breaks
def f(a, b):
    print("f")
    return a + b
it = itertools.accumulate([x, x, w.n], f); a = next(it); b = next(it)
print("b")
return a, b, list(it)

groupby_groups_go_stale
g = itertools.groupby([1, 1, 2, 2, w.n, w.n], key=None); k, first = next(g)
print("b")
k2, second = next(g); r = list(first)
print("b")
a = next(second); k3, third = next(g, (0, iter([])))
print("b")
return x * k, k, k2, r, a, list(second), k3, list(third), list(g)

groupby_of_tensors_and_objects
class Row:
    def __init__(s, k, v): s.k, s.v = k, v
rows = [Row(i // 2, x * i) for i in range(5)]
out = []
for k, g in itertools.groupby(rows, key=lambda r: r.k):
    t = next(g).v
    print("b")
    for r in g:
        t = t + r.v
        print("c")
    out.append((k, t))
return out

groupby_in_generator
def groups(items):
    for k, g in itertools.groupby(items, key=lambda v: v > 2):
        yield k, [x + v for v in g]
g = groups([1, 2, 3, w.n, 5]); a = next(g)
print("b")
return a, list(g)

pairwise_held
p = itertools.pairwise([1, 2, w.n]); c = itertools.accumulate([1]); a = next(c), next(p)
print("b")
return x, a, next(p), list(c)

runs_of_lengths
s = "".join("ab"[(i * w.n) % 3 % 2] for i in range(9)); out = []
for k, g in itertools.groupby(s):
    out.append((k, sum(1 for _ in g)))
    if len(out) == 2: print("b")
return x * len(out), out

window_of_tee
def pairs(it):
    a, b = itertools.tee(it); next(b, None)
    return zip(a, b)
r = []
for p, q in pairs([x, x + w.n, x * 2, x.shape[0]]):
    print("b")
    r.append(p + q)
return r
"""

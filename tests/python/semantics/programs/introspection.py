# size: table
"""Programs with object identity as input: keys with hash and comparison functions of the program, and the number of
calls; tuples of numbers and strings in several places (rows as in programs/standard_library.py)."""

PROGRAMS = r"""
hashed_in_global_dict
|class Key:
|    ASKED = []
|    def __init__(s, v): s.v = v
|    def __hash__(s): Key.ASKED.append(s.v); return hash(s.v)
|    def __eq__(s, o): Key.ASKED.append((s.v, o.v)); return s.v == o.v
|K = Key("a"); L = Key("b"); TABLE = {K: 2, L: 3}; T = []
r = x * TABLE[K]
T.append(len(Key.ASKED))
print("b")
return r, list(Key.ASKED), TABLE[L], len(Key.ASKED)

hashed_in_global_dict_get
|class Key:
|    ASKED = []
|    def __init__(s, v): s.v = v
|    def __hash__(s): Key.ASKED.append(s.v); return hash(s.v)
|    def __eq__(s, o): Key.ASKED.append((s.v, o.v)); return s.v == o.v
|K = Key("a"); L = Key("b"); TABLE = {K: 2, L: 3}
r = x * TABLE.get(K), L in TABLE, Key("c") in TABLE, TABLE.get(Key("a")), TABLE[Key("b")]
return r, list(Key.ASKED)

hashed_no_count_dict
|class Key:
|    def __init__(s, v): s.v = v
|    def __hash__(s): w0.n += 1; return hash(s.v)
|    def __eq__(s, o): w0.n += 10; return s.v == o.v
|w0 = types.SimpleNamespace(n=0)
|K = Key("a"); L = Key("b"); TABLE = {K: 2, L: 3}
r = x * TABLE[K] * w.n
print(w0.n)
s = L in TABLE, TABLE.get(L), TABLE[L]
print(w0.n)
return r, s

hashed_set_over_break
|class Key:
|    N = 0
|    def __init__(s, v): s.v = v
|    def __hash__(s): Key.N += 1; return hash(s.v)
|    def __eq__(s, o): Key.N += 10; return s.v == o.v
s = {Key("a"), Key("b"), Key("c")}
k = Key.N
print("b")
r = Key("a") in s, len(s)
print("b")
return x * k, r, Key.N

hashed_set_in_state
|class Key:
|    N = 0
|    def __init__(s, v): s.v = v
|    def __hash__(s): Key.N += 1; return hash(s.v)
|    def __eq__(s, o): Key.N += 10; return s.v == o.v
|S = {Key("a"), Key("b")}
k = Key.N
r = Key("a") in S, len(S)
print("b")
S.add(Key("z"))
print(Key.N)
return x * w.n, r, Key.N

hashed_state_written
|class Key:
|    N = 0
|    def __init__(s, v): s.v = v
|    def __hash__(s): Key.N += 1; return hash(s.v)
|    def __eq__(s, o): Key.N += 10; return s.v == o.v
|D = {}
D[Key("a")] = x * w.n
print(Key.N)
D[Key("b")] = w.n
print(Key.N)
return D[Key("a")] + D[Key("b")], Key.N, [k.v for k in D]

hashed_key_in_arg_state
|class Key:
|    N = 0
|    def __init__(s, v): s.v = v
|    def __hash__(s): Key.N += 1; return hash(s.v)
|    def __eq__(s, o): Key.N += 10; return s.v == o.v
if not hasattr(w, "d"): w.d = {Key(1): 1, ("t", Key(2)): 2}; w.k = Key(1)
print(Key.N)
r = w.d[w.k], w.d.get(("t", Key(2)))
print(Key.N)
w.d[w.k] += 1
return x * r[0], Key.N, list(w.d.values())

hashed_state_cleared
|class Key:
|    def __init__(s, v, n=0): s.v, s.n = v, n
|    def __hash__(s): return hash(s.v)
|    def __eq__(s, o): return s.v == o.v
|D = {}
D.clear()
D[Key("a", w.n)] = x * w.n
D[Key("b", x)] = w.n
return [(k.v, k.n) for k in D], list(D.values())

hashed_tuple_keys_in_state
|class Key:
|    N = 0
|    def __init__(s, v): s.v = v
|    def __hash__(s): Key.N += 1; return hash(s.v)
|    def __eq__(s, o): Key.N += 10; return s.v == o.v
|D = {(Key("a"), 1): 1, frozenset([Key("b")]): 2, Key("c"): 3}
r = D[Key("a"), 1], D.get((Key("a"), 2)), D[frozenset([Key("b")])], (Key("a"), 1) in D, Key("z") in D
n = Key.N
print("b")
D[Key("c")] += 1
D[Key("a"), 1] = x.sum() * w.n
return x * r[0], n, Key.N, D[Key("c")], len(D)

hashed_default_dict
|class Key:
|    N = 0
|    def __init__(s, v): s.v = v
|    def __hash__(s): Key.N += 1; return hash(s.v)
|    def __eq__(s, o): Key.N += 10; return s.v == o.v
|K = Key("k"); D = collections.defaultdict(int)
D[K] += 1
print("b")
D[K] += w.n
return x * D[K], D[Key("k")], len(D), Key.N

hashed_setdefault_pop_delete
|class Key:
|    N = 0
|    def __init__(s, v): s.v = v
|    def __hash__(s): Key.N += 1; return hash(s.v)
|    def __eq__(s, o): Key.N += 10; return s.v == o.v
|K = Key("k"); L = Key("l"); D = {L: 1}
D[K] = w.n
print(Key.N)
r = D.setdefault(L, 3), D.pop(K), D.pop(Key("q"), None)
print(Key.N)
D[K] = x
del D[K]
return x * r[1], r, len(D), Key.N

hashed_set_members_of_state
|class Key:
|    N = 0
|    def __init__(s, v): s.v = v
|    def __hash__(s): Key.N += 1; return hash(s.v)
|    def __eq__(s, o): Key.N += 10; return s.v == o.v
|K = Key("k"); S = {K, Key("l")}
r = K in S, Key("l") in S, Key("z") in S, len(S & {K})
n = Key.N
print("b")
if w.n % 3 == 0: S.add(Key(w.n))
return x * n, r, n, len(S), Key.N

hashed_ordered_lru
|class Key:
|    def __init__(s, v): s.v = v
|    def __hash__(s): return hash(s.v)
|    def __eq__(s, o): return s.v == o.v
|C = collections.OrderedDict()
k = Key(w.n % 3)
if k in C:
    C.move_to_end(k); hit = True
else:
    C[k] = x * w.n; hit = False
    if len(C) > 2: C.popitem(last=False)
return C[k], hit, [q.v for q in C]

hashed_ordered_moves
|class Key:
|    N = 0
|    def __init__(s, v): s.v = v
|    def __hash__(s): Key.N += 1; return hash(s.v)
|    def __eq__(s, o): Key.N += 10; return s.v == o.v
|K = [Key(i) for i in range(4)]; O = collections.OrderedDict((k, i) for i, k in enumerate(K))
O.move_to_end(K[w.n % 3])
n = Key.N
print("b")
O.move_to_end(K[1], last=False)
first, last = next(iter(O)), next(reversed(O))
print("b")
O[K[0]] = w.n
return x * last.v, first.v, [k.v for k in O], Key.N - n

hashed_ordered_made_and_given
|class Key:
|    N = 0
|    def __init__(s, v): s.v = v
|    def __hash__(s): Key.N += 1; return hash(s.v)
|    def __eq__(s, o): Key.N += 10; return s.v == o.v
|K = [Key("a"), Key("b"), Key("c")]
d = collections.OrderedDict()
for k in K: d[k] = x * w.n
d.move_to_end(K[0])
n = Key.N
print("b")
e = collections.OrderedDict(d); e.pop(K[1])
print("b")
return d[K[0]], [k.v for k in d], [k.v for k in e.keys()], d == e, Key.N - n

hashed_ordered_state_written
|class Key:
|    N = 0
|    def __init__(s, v): s.v = v
|    def __hash__(s): Key.N += 1; return hash(s.v)
|    def __eq__(s, o): Key.N += 10; return s.v == o.v
|class Kept(collections.OrderedDict): pass
|K = [Key(i) for i in range(3)]; O = Kept(); O.seen = 0
for k in K: O.setdefault(k, k.v)
O.seen += 1
print("b")
O.update({K[1]: w.n})
k, v = O.popitem(last=False)
O[k] = v + 1
return x * v, [(q.v, u) for q, u in O.items()], k.v, O.seen, Key.N

hashed_ordered_with_a_break_inside
|class Key:
|    N = 0
|    def __init__(s, v): s.v = v
|    def __hash__(s): Key.N += 1; print("h"); return hash(s.v)
|    def __eq__(s, o): Key.N += 10; return s.v == o.v
|O = collections.OrderedDict((Key(i), i) for i in range(3)); n = Key.N
r = [k.v for k in O]
print("b")
f = next(iter(O))
O[f] = w.n
return x * O[f], r, f.v, Key.N - n

hashed_same_value_several
|class Key:
|    def __init__(s, v): s.v = v
|    def __hash__(s): return 1
|    def __eq__(s, o): return s.v == o.v
|D = {Key(i): i // 2 for i in range(6)}
r = [D[Key(i)] for i in range(6)]
D[Key(3)] = w.n
r += [D[Key(i)] for i in range(6)]
return x * r[3], r, [k.v for k in D]

slice_holds_tuple
t = (w.n, x.shape[0])
s = slice(t, None)
print("b")
r = s.start is t, s.start == t
print("b")
return x * t[0], r, s.start is t, id(s.start) == id(t)

tuple_iterator_holds_tuple
t = (w.n, x.shape[0]); u = (t, 1, t)
it = iter(u)
print("b")
a = next(it)
print("b")
b = next(it); c = next(it)
return x * t[0], a is t, b, c is t, c is a

list_iterator_holds_tuple
t = (w.n, x.shape[0]); l = [t, 1, t]
it = iter(l)
print("b")
a = next(it)
print("b")
b = next(it); c = next(it)
return x * t[0], a is t, b, c is t, c is a, l[0] is t

zip_holds_tuple
t = (w.n, x.shape[0])
it = zip([t, 2], (t, w.n))
print("b")
a, b = next(it)
print("b")
return x * t[0], a is t, b is t, a is b, list(it)

enumerate_holds_tuple
t = (w.n, x.shape[0]); l = [t, t]
it = enumerate(l)
print("b")
i, a = next(it)
print("b")
return x * t[0], a is t, i, [q is t for _, q in it]

reversed_holds_tuple
t = (w.n, x.shape[0]); l = [t, 1, t]; it = reversed(l)
print("b")
a = next(it)
print("b")
return x * t[0], a is t, [q is t for q in it]

chain_repeat_hold_tuple
t = (w.n, x.shape[0]); it = itertools.chain([t], (t,)); jt = itertools.repeat(t, 3); kt = itertools.islice([t, t, t], 1, None)
print("b")
a = next(it); b = next(jt); c = next(kt)
print("b")
return x * t[0], a is t, b is t, c is t, next(it) is t, next(jt) is t, next(kt) is t

map_filter_hold_tuple
t = (w.n, x.shape[0]); it = map(lambda q: q, [t, t]); jt = filter(None, [t, t])
print("b")
a = next(it); b = next(jt)
print("b")
return x * t[0], a is t, b is t, next(it) is t, next(jt) is t

dict_iterator_holds_tuple
t = (w.n, x.shape[0]); d = {1: t, 2: t}; it = iter(d.values()); jt = iter(d.items())
print("b")
a = next(it); _, b = next(jt)
print("b")
return x * t[0], a is t, b is t, next(it) is t, next(jt)[1] is t

for_loops_over_tuples
t = (w.n, x.shape[0]); r = []
for q in (t, 1, t):
    print("b"); r.append(q is t)
for q in [t, 1, t]:
    print("b"); r.append(q is t)
for i, q in enumerate([t, 1, t]):
    print("b"); r.append(q is t)
for p, q in zip([t, t], (t, t)):
    print("b"); r.append((p is t, q is t, p is q))
for q in reversed([t, 1]):
    print("b"); r.append(q is t)
return x * t[0], r

deque_and_set_iterators
t = (w.n, x.shape[0]); d = collections.deque([t, t]); it = iter(d)
print("b")
a = next(it)
print("b")
return x * t[0], a is t, next(it) is t, d[0] is t

frozenset_and_partial
t = (w.n, x.shape[0]); f = frozenset([t, 1]); p = functools.partial(max, t, key=None); s = {t}
print("b")
a = [q for q in f if q != 1][0]
print("b")
return x * t[0], a is t, p.args[0] is t, [q is t for q in s]

slices_nested_in_objects
class Box: pass
t = (w.n, x.shape[0]); b = Box(); b.s = slice(1, t, t); l = [slice(t)]
print("b")
r = b.s.stop is t, b.s.step is b.s.stop, l[0].stop is t
print("b")
return x * t[0], r, b.s.stop is t, l[0].stop is b.s.step

id_of_equal_texts_made_in_the_call
a = f"t{w.n}"; b = f"t{w.n}"; c = a
r = id(a) == id(b), id(a) == id(c), a is b, len({id(a), id(b), id(c)})
print("b")
return x * w.n, r, id(a) == id(b), a is c, len({id(q) for q in (a, b, c)})

id_of_equal_tuples_made_in_the_call
a = (w.n, x.shape[0]); b = (w.n, x.shape[0]); c = a
r = id(a) == id(b), id(a) == id(c), a is b, len({id(a), id(b), id(c)})
print("b")
return x * w.n, r, id(a) == id(b), a is c, len({id(q) for q in (a, b, c)}), a is b

id_of_constants
a = (1, 2); b = (1, 2); t = tuple([w.n, 2]); u = tuple([w.n, 2])
r = id(a) == id(b), a is b, id(t) == id(u), t is u
print("b")
return x * w.n, r, id(a) == id(b), a is b, t is u, id(t) == id(u)

joined_texts
l = ["a", "b", str(w.n)]
a, b = "".join(l), "".join(l)
seen = {id(a)}
r = id(b) in seen, a is b, a == b
print("b")
return x * 2, r, id(b) in seen, a is b

sliced_tuples_of_the_call
t = (w.n, 2, 3); a, b, c = t[:2], t[:2], t[:]
r = a is b, c is t, id(a) == id(b), id(c) == id(t)
print("b")
return x, r, a is b, c is t, id(a) == id(b), id(c) == id(t)

text_argument_is_a_global
|NAMES = ["n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7"]
def f(t, u): return x * 2, t is NAMES[0], t is u, t == u, u is NAMES[w.n % 3]
w.last = NAMES[w.n]
print("b")
t = w.last; u = NAMES[w.n % 2]
return f(t, u), f(t, t), w.last is t

sets_of_keys_hashed_by_address
|class Key:
|    def __init__(s, v): s.v = v
|    def __hash__(s): return object.__hash__(s)
|    def __eq__(s, o): return s is o
|class Other(Key):
|    def __hash__(s): return id(s)
|class Third(Key):
|    def __hash__(s): return super().__hash__() + 1
a, b, c, d = Key(1), Key(2), Other(3), Third(3); s = {a, b, c, d}
print("b")
r = a in s, b in s, Key(2) in s, c in s, len(s), d in s
s.remove(a)
print("b")
return x * 2, r, a in s, b in s, c in s, d in s

numbers_of_numpy_are_made_by_each_call
import numpy as np
a = np.int32(3); b = np.float32(0.1); c = np.datetime64("2020-01-01", "ns"); d = np.timedelta64(3, "D"); e = np.bool_(True); f = np.complex64(1 + 2j)
t = (a, b); l = [a, a, b, c, d, e, f]
print("b")
return x * float(b), l, t, l[0] is a, t[0] is a, a + 1
"""

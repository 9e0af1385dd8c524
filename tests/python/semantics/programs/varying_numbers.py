# size: table
"""Varying numbers as operands of C code: arrays, division by zero, methods of numbers, ranges, strings. As
programs_library."""

PROGRAMS = r"""
arrays_in_place_by_varying_numbers
a = x.numpy().copy(); b = a; a += w.n; c = a[0]; c *= x.shape[0]; a[0] -= w.n; a[:, 1] **= 2
s = a.sum().item(); d = a; d /= w.n
return a, b is a, d is b, c, s

arrays_in_place_by_call
a = x.numpy().copy(); b = a; a = operator.iadd(a, w.n); d = np.add(a, w.n, out=b)
return a is b, a, d is a

arrays_of_state_in_place
|ARR = np.zeros(4, dtype=np.float32)
|STATE = {"a": np.ones(3, dtype=np.int64), "l": [np.zeros(2)]}
global ARR
ARR += w.n; before = ARR; ARR += x.shape[0]
STATE["a"] *= w.n; STATE["a"][1] += x.shape[0]
for a in STATE["l"]: a += round(x.sum().item(), 3); a -= w.n
return x * torch.from_numpy(ARR.copy()), before is ARR, STATE["a"].copy(), STATE["l"][0]

arrays_on_the_right
v = w.n; v += np.ones(2); u = x.shape[0]; u *= np.float32(w.n); t = [1.0]; t += np.ones(2).tolist(); q = round(x.sum().item(), 3); q -= np.arange(2)
z = (1, 2); z += (w.n,); l = [w.n]; l *= x.shape[0]; m = bytearray(b"ab"); m += b"c"; m *= w.n; ar = array.array("i", [1]); ar += array.array("i", [w.n]); ar *= x.shape[0]
return v, u, t, q, z, l, bytes(m), ar.tolist()

ints_of_numpy_divided_and_raised
k = np.int64(3); n = w.n; m = k * n
made = n / k, k / n, (n / k) * 2.5, m / n, 7 / m, m / (n + k), m * 1.5, 1.0 - m, m + 0.5j, n ** k, k ** n, pow(n, k), pow(m, 2), divmod(n, k), divmod(k, n), divmod(m, 4)
return x * (n / k), x * divmod(n, k)[1], repr(made), [isinstance(v, float) for v in made]

ints_of_numpy_in_sums
k = np.int64(3); n = x.shape[0]
made = sum([k, n, w.n]), sum([n, k]), sum((k,), n), sum([k, n], 1.5), sum([k * n, 0.5]), sum([np.float32(1.5), n]), sum([[k], [n]], [])
return x * made[0], repr(made), [type(v).__name__ for v in made]

ints_of_numpy_in_mathematics
k = np.int64(3); n = x.shape[0]; m = k * n
return x * math.hypot(k, n), repr([math.hypot(k, n), math.fabs(m), math.radians(m), math.degrees(m), math.copysign(m, -1), math.pow(n, k)])

others_in_place
f = fractions.Fraction(1, 3); f += w.n; d = decimal.Decimal("1.5"); d *= x.shape[0]; t = datetime.timedelta(seconds=1); t *= w.n; s = {1}; s |= {w.n}; s -= {x.shape[0]}; fs = frozenset([1]); fs |= {w.n}
c = Counter(a=1); c += Counter(a=w.n); dq = deque([1]); dq += [w.n]; dq *= 2; cp = 1j; cp *= w.n; st = "a"; st *= w.n; st += str(x.shape[0]); p = pathlib.PurePosixPath("a"); p /= f"b{w.n}"
sm = x.sum().item(); f -= 1; d -= w.n
return f, d, t, sorted(s), sorted(fs), c, dq, cp, st, str(p), sm > 0

arrays_and_numbers
a = x.numpy().copy(); b = a[0]; c = b + w.n; c = w.n * c; c = c ** w.n; d = a > w.n; a[w.n % 1] = w.n
return a, c, d, np.where(a > w.n, a, w.n), np.full(3, w.n), np.add(a, w.n), np.maximum(w.n, a), np.clip(a, 0, w.n), a.sum().round(2) + w.n, divmod(a, w.n)[1], np.float32(1) + w.n, np.int32(3) * w.n, w.n in a, a.reshape(-1, x.shape[1])

arrays_made_of_numbers
a = x.numpy().copy()
return a.astype(np.float64).round(2) / w.n, np.linspace(0, 1, w.n), np.eye(w.n), np.ones((w.n, 2)), np.concatenate([a, np.zeros((w.n, 4))]), a.repeat(w.n, axis=0)[:2], np.random.RandomState(w.n).rand(2), -w.n + a, np.array([w.n, 2.5]), np.array([w.n]), np.int64(w.n), np.asarray(w.n).dtype, a[..., -1:], np.power(w.n, np.arange(3)), np.prod([w.n, 2]), np.isclose(a, w.n).any(), np.roll(a, w.n)

arrays_and_floats
a = x.numpy().copy(); v = round(x.sum().item(), 2); h = w.n / 4; a += h; b = a * v; a *= h; b -= v; b[0] = v; c = v - b; c /= w.n; d = a.copy(); d[d > h] = h; d[:, 0] = [h] * x.shape[0]
return np.round(b, 3), np.round(c, 3), np.round(a, 3), np.round(d, 3), v, np.float64(h) * v, (a < h).sum(), np.sqrt(h), math.sqrt(h), np.minimum(h, 1.0)

ends_of_ranges
n = x.shape[0]; r = range(w.n, n); q = range(0, n, 2); e = range(n, n); s = x.sum().item()
return r.start, r.stop, q.stop, e.start, repr(q), str(range(n, 0, -3)), [k for k in range(0, n, 2)], len(range(0, n, 3)), list(reversed(range(w.n))), q == range(0, n + n % 2, 2), q, s > 0

quotients_of_zero
out = []
for d in (w.n - 2, (w.n - 3) / 2, 0.0, False):
    for f in (lambda: x.shape[0] / d, lambda: divmod(x.shape[0], d), lambda: x.sum().item() % d, lambda: divmod(w.n * 0.5, d), lambda: w.n // d):
        try: v = f(); out.append(round(v, 3) if isinstance(v, float) else v)
        except ZeroDivisionError as err: out.append(str(err))
return out

partial_functions_side_by_side
ps = [functools.partial(pow, 2, 3), functools.partial(pow, 2, x.shape[0]), functools.partial(max, w.n), functools.partial(min, x.shape[0], w.n)]; s = x.sum().item()
return ps, [p() for p in ps[:2]], ps[3](), s

division_of_data_by_zero
try: x.sum().item() / 0
except ZeroDivisionError as e: return str(e)

division_of_data_by_a_number_that_is_zero
try: return x.sum().item() / (w.n - w.n)
except ZeroDivisionError as e: return str(e)

division_of_a_number_by_zero
s = x.sum().item()
try: return s / 0
except ZeroDivisionError as e: return str(e)

running_mean_zero_count
|S = {"n": 0, "sum": 0.0}
try: mean = S["sum"] / S["n"]
except ZeroDivisionError: mean = None
S["sum"] += x.sum().item(); S["n"] += x.shape[0]
if w.n == 4: S["n"] = 0
return mean, x * (S["sum"] / max(S["n"], 1))

safe_division
def safe(a, b):
    try: return a / b
    except ZeroDivisionError: return 0.0
pos = (x > 0).sum().item(); neg = (x < -100).sum().item()
return safe(pos, neg), safe(neg, pos), safe(x.shape[0], w.n - 3), safe(1.5 * w.n, w.n - 4), safe(pos, x.numel())

precision_recall
p = (x.flatten() > 0.2 * (w.n - 1)); t = torch.ones_like(p)
tp = (p & t).sum().item(); fp = (p & ~t).sum().item(); fn = (~p & t).sum().item()
prec = tp / (tp + fp) if tp + fp else 0.0; rec = tp / (tp + fn) if tp + fn else 0.0
f1 = 2 * prec * rec / (prec + rec) if prec + rec > 0 else 0.0
return round(prec, 3), round(rec, 3), round(f1, 3), f"{f1:.2%}", {"p": tp, "n": fp}

int_float_methods
n = x.shape[0]; v = float(round(x.sum().item(), 1))
return n.bit_length(), n.bit_count(), (n).to_bytes(2, "big"), (2.5 * n).is_integer(), (n / 2).as_integer_ratio(), n.as_integer_ratio(), round(n, -1), round(n / 3, 1), round(2.5), round(n / 2), n.conjugate(), n.real, n.numerator, (0.5 + n).hex(), int.from_bytes(bytes([n])), float.fromhex("0x1p3") * n, n.__round__(), (n + 0.5).__round__(), (n + .5).__trunc__(), math.floor(n / 2), math.ceil(n / 2), abs(-n), v.is_integer(), n.__index__(), n.imag, (n / 4).__floor__(), complex(n, 1) * 2, hash(n) == n, bool(n - 3), n.__class__, (n).__add__(2), n.__divmod__(2)

divmod_pow_negative
n = x.shape[0]; s = x.sum().item()
return divmod(-7, n), divmod(n, -2), -7 // n, -7 % n, n % -4, pow(3, n, 5), pow(n, -1), pow(3, -1, 7), pow(-2, n), n ** 0.5, (-n) ** 3, 7 >> (n % 3), n << 2, n & 6, n | 1, n ^ 3, ~n, -n, +n, n // -2, -n // 2, math.gcd(n, 6), math.comb(n, 2), math.isqrt(n), math.fmod(-7, n), math.remainder(7, n), -7 / n, divmod(7.5, n), 0 ** (n - n), s > 0

range_ops
n = x.shape[0]; r = range(n); s = x.sum().item()
return r == range(0, n, 1), r != range(n + 1), r[1:], r[::-1], r[-1], len(r), n in r, n - 1 in r, r.index(n - 1), r.count(0), list(range(n, 0, -2)), range(0) == range(2, 1), hash(r) == hash(range(n)), r.stop, r.step, range(n)[:: 2], list(reversed(r)), sum(r), max(r), tuple(r[1:n]), bool(range(0, n - n)), isinstance(r, range), type(r) is range, repr(r)

numpy_beside_tensors
a = x.numpy().copy(); a[0] += w.n; t = torch.from_numpy(a); t.mul_(2); n = np.asarray(x)
return t, a.sum().item(), n is x, np.shares_memory(n, x.numpy()), np.array(x.shape), np.arange(x.shape[0]) * w.n, torch.as_tensor(a) + 1, float(np.float32(w.n)), x * np.float64(2), np.zeros(tuple(x.shape)).shape, x.numpy().argmax(), np.mean(x.numpy(), axis=0)

builtins_kept_in_state
w.op = max; w.pair = (min, range); w.tbl = {"r": range, "m": max}
fs = {"max": max, "min": min}
k = "max" if x.sum().item() > 0 else "min"
return fs[k](w.items), fs[k](x.shape[0], 4), w.op is max, w.tbl["r"](w.n)[-1], fs[k] is max, fs[k].__name__, repr(max)

range_type_dispatch
tbl = {range: "r", list: "l", int: "i"}
r = range(x.shape[0])
return tbl[type(r)], type(r) in (list, range), isinstance(r, (list, range)), type(range(3)) is range, tbl.get(type(x.shape[0])), range.__name__, r.__class__ is range, callable(range), issubclass(range, object)

argmax_index_into_list
names = ["a", "b", "c", "d"]; i = x.sum(0).argmax().item(); j = int(x[0].argmin())
top = x.flatten().topk(min(2, x.numel())).indices.tolist()
return names[i], names[-j - 1], names[:i], [names[k % 4] for k in top], {n: k for k, n in enumerate(names)}[names[i]], x[:, i] * j

sum_min_max_of_sizes
ts = [x, x[:2], x.T]
return sum(t.shape[0] for t in ts), max(t.numel() for t in ts), min((t.shape[1], i) for i, t in enumerate(ts)), max(ts, key=lambda t: t.shape[0]).shape, sum([t.sum().item() > 0 for t in ts]), max([], default=x.shape[0]), sorted({t.shape[0] for t in ts}), any(t.shape[0] > 4 for t in ts), all(ts[0].shape), round(sum(x.shape) / 3, 2), math.prod(x.shape), len({*x.shape})

fstrings_sizes
n = x.shape[0]; v = round(x.sum().item(), 2)
return f"{n:03d}|{n:>5}|{n:<4}|{n:^6}|{n:x}|{n:b}|{n:e}|{n:,}|{n!r:>4}|{n=}|{v:+.1f}|{v:8.3f}|{v!s}|{w.n:{n}}|{'a':*^{n}}|{x.dtype}|{x.shape}|{n/3:.2%}|{n*1000:_}"

percent_format
n = x.shape[0]; v = round(x.mean().item(), 3)
return "%d %s %5.2f %x %r %%" % (n, x.shape, v, w.n, w.items), "%(a)s-%(b)03d" % {"a": n, "b": w.n}, "{0}{1}{0}".format(n, w.n), "{a.hidden}{b[0]}".format(a=w.cfg, b=w.items), "{:>{w}}".format(n, w=w.n + 3), string.Template("$a $b").substitute(a=n, b=v)

list_slices_symbolic
n = x.shape[0]; l = list(range(10)); v = x.sum().item()
l2 = l[n % 5:]; l3 = l[: -n]; l4 = l[::n]; l[n:] = [v > 0]; del l2[::2]
return l, l2, l3, l4, "abcdefghij"[:n], (1, 2, 3, 4)[n - 2:], l[slice(None, n, 2)], bytes(range(10))[n:]

string_building
s = ""
for i in range(x.shape[0]):
    s += f"{i}:" + "ab"[i % 2] * i
    if x[i].sum() > 0: s = s.upper()
return s, len(s), s.count("A"), s.split(":"), "-".join(str(d) for d in x.shape), s.rjust(x.shape[0] + 20, "."), s[x.shape[0] - 1], "%s" * x.shape[0] % tuple(range(x.shape[0]))

str_methods_sizes
n = x.shape[0]; s = "a,b,,c" * n
return s.split(",", n), s.partition(","), s.zfill(n * 8), s.center(n + 20, "*"), s.find("c", n), s.replace(",", "", n), s[n:-n:n], s.encode()[n], chr(97 + n), ord("a") + n, f"{'x' * n:>{n + 3}}", "\t".expandtabs(n), s.index("b") * n, "abc".ljust(n, "-"), str(n).isdigit(), int(str(n)) + 1, s.title()[:n], "".join(sorted(set(s)))[:n], hex(n), oct(n), bin(n), format(n, "05"), ascii("é" * n), "é".encode()[:n], "%*d" % (n, 3), s.rsplit(",", 1)[-1], s.startswith("a", n * 0), "{:{}}".format(n, n), n.__format__("03"), str(True)[:n]

operator_functions
o = operator
a = o.add(x, w.n); s = a.sum().item()
return o.itemgetter(0, -1)(w.items), o.attrgetter("cfg.hidden", "n")(w), o.methodcaller("sum", 0)(x), o.matmul(x, x.T).sum().item(), o.floordiv(-7, w.n), o.mod(-7, w.n), o.pow(2, x.shape[0]), o.index(w.n), o.concat([1], [w.n]), o.countOf([w.n, 3, w.n], w.n), o.indexOf([1, w.n], w.n), o.contains(w.items, 9), o.truth(x.sum()), o.not_(s), o.is_(x, x), o.length_hint([1] * w.n), o.inv(w.n), o.neg(x.shape[0])

operator_inplace
l = [1]; l2 = operator.iadd(l, [w.n]); y = x.clone(); z = operator.imul(y, w.n); v = z.sum().item()
d = {}; operator.setitem(d, w.n, x); operator.delitem(w.names, "a") if "a" in w.names and w.n == 5 else None
return l is l2, y is z, l, d, v, operator.ior({1}, {w.n})

array_memoryview_struct
a = array.array("f", [1.0, w.n]); a.append(x.sum().item()); m = memoryview(a); m[0] = x.shape[0]
b = struct.pack("<if", w.n, x.mean().item()); t = torch.frombuffer(bytearray(b[:4]), dtype=torch.int32)
return a[0], len(m), m.format, struct.unpack("<if", b)[0], t, torch.tensor(a)[0], bytes(m.cast("B")[:2]), array.array("i", range(w.n)).tolist()

heapq_bisect
h = []
for i, r in enumerate(x): heapq.heappush(h, (round(r.sum().item(), 3), i, r))
top = heapq.heappop(h) if h else None
l = sorted(w.items); bisect.insort(l, x.shape[0]); k = bisect.bisect_left(l, w.n)
return top[1], len(h), l, k, heapq.nsmallest(2, w.items), heapq.nlargest(2, l, key=lambda v: -v), list(heapq.merge([1, 4], [w.n, 9])), heapq.heapreplace(h, (9.0, -1, x))[1] if h else None

chained_assignment_aug
a = b = [x.shape[0]]; b += [w.n]; a[0] += 1; c, d = d_ = (w.n, x.sum().item()); l = [0, 1, 2]
i = 0; i, l[i] = 1, 5; l[i] += w.n; l[-1:] = [7, 8]; (p, (q, *r)) = (1, [2, 3, w.n])
o = types.SimpleNamespace(v=1); o.v = o.w = w.n; o.v **= 2; o.w //= 2; o.v, o.w = o.w, o.v
return a, a is b, c, d, d_ is not None, l, p, q, r, vars(o)

int_subclass_and_float_subclass
class I(int):
    def __add__(s, o): return I(int(s) + int(o) + 1)
    def __repr__(s): return f"I{int(s)}"
class Fl(float):
    def __mul__(s, o): return "mul"
class St(str):
    def __len__(s): return 42
i = I(x.shape[0]); f = Fl(w.n); s = St("ab"); v = x.sum().item()
return repr(i + w.n), f * 2, 2 * f, len(s), s + "c", type(i - 1).__name__, i == x.shape[0], x * i, x[: i], hash(i) == hash(x.shape[0]), isinstance(i, int), [1, 2, 3, 4, 5, 6, 7, 8, 9][i], {i: 1}[x.shape[0]], range(i)[-1] + 1, f"{i}", f"{i:d}", bool(I(0)), v == Fl(v)

identity_and_interning
a = w.n; b = w.n; s = str(x.shape[0]); t = f"{x.shape[0]}"; n = None; v = x.sum().item()
return a is b, s == t, a == b, n is None, (x is x), x.shape == (x.shape[0], 4), x.shape is x.shape, x.dtype is torch.float32, x.device == torch.device("cpu"), [] is [], () == (), v is v, type(v) is float, x.shape[0] is x.shape[0], True is (v == v), (w.n > 1) is True, 257 is 257, not None
"""

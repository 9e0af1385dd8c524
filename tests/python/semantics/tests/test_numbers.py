"""Python's operations on an int and a float, as arguments and as data, against eager: values, types, exceptions."""

import cmath  # noqa: F401
import datetime  # noqa: F401
import decimal
import fractions
import marshal  # noqa: F401
import math  # noqa: F401
import operator  # noqa: F401
import pickle  # noqa: F401
import random  # noqa: F401
import statistics  # noqa: F401

import numpy as np
import pytest
import torch

import cresset

D, F = decimal.Decimal, fractions.Fraction  # names of the expressions

# Expressions of an int n, a float v and a tensor x of float32.
EXPRESSIONS = """
complex(v) == v
v == complex(v)
complex(1, 2) + v
v * complex(1, 2)
complex(n) == n
n + complex(0, 1)
F(1, 2) + n
n * F(1, 2)
F(1, 2) + v
F(1,2) < v
D(3) + n
D(3) == n
n == D(n)
D(n)
F(n, 3)
F(v)
F(v).limit_denominator(10)
D(v)
D(str(v))
"ab" * n
[v] * n
(n,) * 2 == (n, n)
n in [1, 2, 3]
v in [1.5, 2.5]
n in {1: 2, 3: 4}
{n: v}
{v: n}[v]
datetime.timedelta(seconds=n)
datetime.timedelta(seconds=v)
datetime.timedelta(seconds=1) * n
math.isclose(v, 1.5)
cmath.sqrt(v)
cmath.exp(n)
math.gcd(n, 6)
math.comb(n + 3, 2)
math.factorial(n)
statistics.mean([n, v, 3])
sum([n, v, 1j])
max(n, v), min(v, 2)
sorted([v, n, 2.2])
divmod(v, n)
pow(v, n), pow(n, 2, 5)
round(v), round(v, 1), round(n, -1)
abs(-v), abs(-n)
v.is_integer(), v.hex(), v.as_integer_ratio()
n.bit_length(), n.to_bytes(2, "big")
int(v), float(n), bool(v), str(v), repr(n), hash(v) == hash(float(v)), hash(n) == n
f"{v:.3f} {n:>5} {v!r} {n:b}"
"%d %.2f %s" % (n, v, v)
"{:.2e} {}".format(v, n)
bin(n), hex(n), oct(n), chr(n + 65), ascii(n)
list(range(n)), list(range(0, 10, n))
[0, 1, 2, 3][n], "abcdef"[n:], (1, 2, 3, 4)[:n]
slice(n).indices(10)
n.real, n.imag, v.real, v.conjugate(), n.numerator
isinstance(v, float), isinstance(n, int), type(v) is float, type(n) is int
n.__add__(2), v.__mul__(2), int.__add__(n, 1), float.__add__(v, 1.0)
operator.add(n, v), operator.mul(v, 2), operator.index(n)
np.float32(2) * v, v + np.float64(1), n + np.ones(2), np.full(n, v)
[v, n].index(n), [n, n].count(n)
random.Random(n).random()
n << 2, n >> 1, n & 3, n | 8, n ^ 1, ~n
n / 2, n // 2, n % 2, -n // 2, n ** 2, n ** -1, 2 ** n, v // 1, v % 1, -v % 1
v < n, v <= n, n != 3, n == 3.0, v == v
not n, not v, n and v, v or n
complex(v, n), complex(n, v)
float("nan") == v, v < float("inf")
memoryview(b"abc")[n % 3], bytes(n), bytearray(n), bytes([n])
enumerate([1], n).__next__()
dict(a=n)["a"], set([n, v, n])
pickle.dumps(*(n + 1,)), pickle.dumps(*[v], 2), marshal.dumps(*[x.shape[0] + n])
pickle.dumps(*(v,), **{"protocol": 2}), pickle.dumps(**{"obj": n, "protocol": 2})
F(1, 2) ** n, n ** F(1, 2)
True + n, n + True, n == True, v * True
x * complex(n, v)
x + n * 1j
torch.full((2,), v) + n, torch.tensor([n, v]), torch.tensor(v), torch.tensor(n), torch.as_tensor([v])
x.mul(v).add(n, alpha=v), torch.where(x > v, x, n), x.clamp(min=v), x ** v, x // n, v / (x + 9), n - x
x.item() if x.numel() == 1 else n
torch.nn.functional.dropout(x, v / 100, training=False), torch.lerp(x, x + 1, v), torch.addcmul(x, x, x, value=v)
torch.linspace(0, v, 4), torch.arange(n), torch.arange(0, v, 0.5), torch.eye(n), torch.zeros(n, 2)
torch.rsub(x, v), torch.add(x, v), torch.remainder(x, v), torch.fmod(x, n), torch.pow(v, x), torch.pow(n, x.abs())
x == v, x == n, x.eq(v), torch.isclose(x, torch.tensor(v)), x.to(torch.int64) + v, x.to(torch.int32) * n, (x > 0) + n, (x > 0) * v
x.to(torch.float64) * v, x.double() + v, x.to(torch.int64) == v, x.float() == v
""".strip().split("\n")
EAGERLY = {"random.Random(n).random()"}  # a random generator alive across a graph break
VALUES = [(3, 1.5), (3, -0.1), (2, 2.7), (0, 0.3)]


def described(thing):
    if isinstance(thing, torch.Tensor):
        numbers = thing.tolist() if not thing.is_floating_point() else [f"{v:.4g}" for v in thing.double().flatten()]
        return "tensor", thing.dtype, thing.shape, numbers
    if isinstance(thing, np.ndarray):
        return "array", str(thing.dtype), thing.tolist()
    if isinstance(thing, (list, tuple)):
        return type(thing).__name__, [described(item) for item in thing]
    return type(thing).__name__, repr(thing)


def result_of(function, *args):
    try:
        return described(function(*args))
    except Exception as e:
        return type(e).__name__, str(e)


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("source", ["data", "arguments"])
def test_expression(source, expression):
    names = dict(globals())
    read = "n = int(n); v = v.item()" if source == "data" else "pass"
    exec(f"def function(x, n, v):\n    {read}\n    y = x * 2\n    return y, ({expression})", names)
    function = names["function"]
    cresset.reset()
    compiled = cresset.compile(function)
    raised = False
    for n, v in VALUES:
        args = torch.randn(2, 2), *((torch.tensor(n), torch.tensor(v)) if source == "data" else (n, v))
        expected = result_of(function, *args)
        raised |= expected[0] != "tuple"
        for _ in range(2):
            assert result_of(compiled, *args) == expected
    assert raised or expression in EAGERLY or cresset.stats()["eager_calls"] == 0, cresset.stats()[
        "graph_break_reasons"
    ]


@pytest.mark.parametrize("least", [0.001, 0.3])
def test_functions_of_numpy_of_their_own_results(least):
    """The constant result of several numpy steps is a constant: no graph break."""

    def f(x):
        constant = np.log(np.exp(1 - least) - 1)
        return x + constant * np.sin(np.float64(0.5)), constant

    cresset.reset()
    g = cresset.compile(f)
    for n in (3, 4):
        x = torch.arange(float(n))
        (got, constant), (want, known) = g(x), f(x)
        assert torch.equal(got, want) and constant == known and type(constant) is type(known)
    stats = cresset.stats()
    assert stats["graph_breaks"] == 0 and stats["graphs"] == 1

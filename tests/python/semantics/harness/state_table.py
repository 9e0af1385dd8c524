"""State in many places, of many kinds: its location, the reads of it, and its changes between two calls."""

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools

import numpy as np
import torch


class A:
    def go(self, x):
        return x + 1

    def __repr__(self):
        return "A"


class B:
    def go(self, x):
        return x * 3

    def __repr__(self):
        return "B"


class E(enum.Enum):
    P = 1
    Q = 2


class Obj:
    def __init__(self, k):
        self.k = k

    def __eq__(self, o):
        return isinstance(o, Obj) and self.k == o.k

    def __hash__(self):
        return hash(self.k)

    def __repr__(self):
        return f"Obj({self.k})"


NT = collections.namedtuple("NT", "p q")


@dataclasses.dataclass
class DC:
    p: int
    q: float = 1.0


def inc(a, k=1):
    return a + k


def plus1(a):
    return a + 1


def times2(a):
    return a * 2


# value kind: (before, after, expression of v and x)
VALUES = {
    "int": (lambda: 3, lambda: 5, "x*v"),
    "int2": (lambda: 3, lambda: 5, "x.sum()+len('a'*v)"),
    "intif": (lambda: 3, lambda: 5, "x+1 if v>4 else x-1"),
    "intrange": (lambda: 1, lambda: 3, "[x+i for i in range(v)]"),
    "intshape": (lambda: 2, lambda: 3, "torch.ones(v)+x.sum()"),
    "intret": (lambda: 3, lambda: 5, "(x+1, v)"),
    "float": (lambda: 1.5, lambda: 2.5, "x*v"),
    "floatret": (lambda: 1.5, lambda: 2.5, "(x+1, v*2, str(v))"),
    "bool": (lambda: False, lambda: True, "x.sum() if v else x.mean()"),
    "boolop": (lambda: False, lambda: True, "x.sum(0, keepdim=v)"),
    "str": (lambda: "sum", lambda: "mean", "getattr(x,v)()"),
    "strret": (lambda: "sum", lambda: "mean", "(x*len(v), v.upper(), f'{v}!')"),
    "none": (lambda: None, lambda: 1, "x if v is None else x*2"),
    "complex": (lambda: 1j, lambda: 2j, "x*v"),
    "tuple": (lambda: (1, 2), lambda: (2, 3), "x*v[1]"),
    "tuple2": (lambda: (1, 2), lambda: (2, 3, 4), "[x*i for i in v]"),
    "list": (lambda: [1, 2], lambda: [2, 3], "x*v[1]"),
    "list2": (lambda: [1, 2], lambda: [2, 3, 4], "(x*len(v), sum(v))"),
    "dict": (lambda: {"a": 1}, lambda: {"a": 2}, "x*v['a']"),
    "dict2": (lambda: {"a": 1}, lambda: {"b": 2}, "[(k,x*i) for k,i in v.items()]"),
    "set": (lambda: {1}, lambda: {1, 2}, "(x*len(v), 2 in v)"),
    "fset": (lambda: frozenset([1]), lambda: frozenset([1, 2]), "(x*len(v), sorted(v))"),
    "size": (lambda: torch.Size([2, 3]), lambda: torch.Size([3, 2]), "torch.ones(v)*x.sum()"),
    "dtype": (lambda: torch.float32, lambda: torch.float64, "x.to(v)"),
    "device": (lambda: torch.device("cpu"), lambda: torch.device("meta"), "torch.ones(2,device=v)"),
    "slice": (lambda: slice(0, 1), lambda: slice(0, 2), "x[v]"),
    "range": (lambda: range(2), lambda: range(3), "[x*i for i in v]"),
    "func": (lambda: plus1, lambda: times2, "v(x)"),
    "lam": (lambda: lambda a: a + 1, lambda: lambda a: a + 2, "v(x)"),
    "torchf": (lambda: torch.sin, lambda: torch.cos, "v(x)"),
    "cls": (lambda: A, lambda: B, "v().go(x)"),
    "inst": (lambda: A(), lambda: B(), "v.go(x)"),
    "isinst": (lambda: A(), lambda: B(), "x if isinstance(v,A) else x*2"),
    "tensor": (lambda: torch.tensor([1.0, 2.0, 3.0]), lambda: torch.tensor([3.0, 2.0, 3.0]), "x*v"),
    "tensor2": (
        lambda: torch.tensor([1.0, 2.0, 3.0]),
        lambda: torch.tensor([[3.0], [4.0], [5.0]], dtype=torch.float64),
        "x*v",
    ),
    "tensorl": (lambda: torch.tensor([1.0, 2.0, 3.0]), lambda: torch.tensor([3.0, 2.0, 3.0]), "(v.tolist(), x+1)"),
    "param": (lambda: torch.nn.Parameter(torch.ones(3)), lambda: torch.nn.Parameter(torch.zeros(3)), "(x*v).detach()"),
    "mod": (lambda: torch.nn.ReLU(), lambda: torch.nn.Tanh(), "v(x)"),
    "lin": (lambda: torch.nn.Linear(3, 2), lambda: torch.nn.Linear(3, 4), "v(x)"),
    "enum": (lambda: E.P, lambda: E.Q, "x*v.value if v is E.P else x-1"),
    "enumname": (lambda: E.P, lambda: E.Q, "(x*v.value, v.name, v)"),
    "bytes": (lambda: b"ab", lambda: b"abc", "x*v[-1]"),
    "npscalar": (lambda: np.float32(2), lambda: np.float32(3), "x*float(v)"),
    "npint": (lambda: np.int64(2), lambda: np.int64(3), "x*v"),
    "nparr": (lambda: np.ones(3), lambda: np.zeros(3), "x*torch.from_numpy(v)"),
    "frac": (lambda: fractions.Fraction(1, 2), lambda: fractions.Fraction(1, 3), "x*float(v)"),
    "dec": (lambda: decimal.Decimal("1.5"), lambda: decimal.Decimal("2.5"), "x*float(v)"),
    "delta": (lambda: datetime.timedelta(seconds=1), lambda: datetime.timedelta(seconds=2), "x*v.total_seconds()"),
    "partial": (lambda: functools.partial(inc, k=2), lambda: functools.partial(inc, k=3), "v(x)"),
    "bound": (lambda: A().go, lambda: B().go, "v(x)"),
    "nt": (lambda: NT(1, 2), lambda: NT(1, 3), "x*v.q"),
    "ntun": (lambda: NT(1, 2), lambda: NT(1, 3), "[x*i for i in v]+[v]"),
    "dc": (lambda: DC(1, 2.0), lambda: DC(1, 3.0), "x*v.q"),
    "dcret": (lambda: DC(1, 2.0), lambda: DC(1, 3.0), "(x, dataclasses.replace(v,p=4), v==DC(1,2.))"),
    "obj": (lambda: Obj(1), lambda: Obj(2), "x*v.k"),
    "objeq": (lambda: Obj(1), lambda: Obj(2), "x if v==Obj(1) else -x"),
    "objhash": (lambda: Obj(1), lambda: Obj(2), "(x,{Obj(1):5}.get(v,7))"),
    "objdict": (lambda: Obj(1), lambda: Obj(2), "(x,dict(v.__dict__))"),
    "deque": (lambda: collections.deque([1, 2]), lambda: collections.deque([1, 3]), "(x*v[-1],list(v))"),
    "counter": (lambda: collections.Counter("aab"), lambda: collections.Counter("abb"), "(x*v['a'], v.most_common(1))"),
    "dd": (lambda: collections.defaultdict(int, a=1), lambda: collections.defaultdict(int, a=2), "(x*v['a'], v['zz'])"),
    "od": (
        lambda: collections.OrderedDict(a=1, b=2),
        lambda: collections.OrderedDict(b=2, a=1),
        "(x*next(iter(v.values())), list(v))",
    ),
    "nest": (lambda: {"a": [1, {"b": (2,)}]}, lambda: {"a": [1, {"b": (3,)}]}, "x*v['a'][1]['b'][0]"),
    "ltensor": (lambda: [torch.ones(3), torch.ones(3)], lambda: [torch.ones(3), torch.zeros(3)], "sum(v)*x"),
    "dtensor": (lambda: {"w": torch.ones(3)}, lambda: {"w": torch.zeros(3)}, "{k:t*x for k,t in v.items()}"),
    "gen": (
        lambda: torch.Generator().manual_seed(1),
        lambda: torch.Generator().manual_seed(2),
        "torch.rand(2,generator=v)+x.sum()",
    ),
    "ba": (lambda: bytearray(b"ab"), lambda: bytearray(b"ac"), "x*v[1]"),
    "memoryfmt": (lambda: torch.contiguous_format, lambda: torch.preserve_format, "x.clone(memory_format=v)"),
}
# location: (prelude, set statement given `val`, read expression)
LOC = {
    "attr": ("w=types.SimpleNamespace()", "w.a=val", "w.a"),
    "getattr": ("w=types.SimpleNamespace()", "w.a=val", "getattr(w,'a')"),
    "dict": ("w={}", "w['k']=val", "w['k']"),
    "dictget": ("w={}", "w['k']=val", "w.get('k')"),
    "list": ("w=[0,0]", "w[1]=val", "w[1]"),
    "tup": ("w=[()]", "w[0]=(0,val)", "w[0][1]"),
    "glob": ("", "globals()['G']=val", "G"),
    "globs": ("", "globals()['G']=val", "globals()['G']"),
    "modattr": ("m=types.ModuleType('m')", "m.a=val", "m.a"),
    "clsattr": ("class C: pass\nw=C()", "C.a=val", "w.a"),
    "clsattr2": ("class C: pass", "C.a=val", "C.a"),
    "clsbase": ("class C0: pass\nclass C(C0): pass\nw=C()", "C0.a=val", "w.a"),
    "slots": ("class C:\n    __slots__=('a',)\nw=C()", "w.a=val", "w.a"),
    "prop": ("class C:\n    @property\n    def a(self): return self._a\nw=C()", "w._a=val", "w.a"),
    "getattr_": (
        "class C:\n    def __getattr__(self,n): return self.__dict__['_s'][n]\nw=C(); w.__dict__['_s']={}",
        "w._s['a']=val",
        "w.a",
    ),
    "getattribute": (
        "class C:\n    def __getattribute__(self,n): return object.__getattribute__(self,'_'+n)\nw=C()",
        "object.__setattr__(w,'_a',val)",
        "w.a",
    ),
    "getitem": ("class C:\n    def __getitem__(self,n): return self.s[n]\nw=C(); w.s=[0]", "w.s[0]=val", "w[0]"),
    "call": ("class C:\n    def __call__(self): return self.s\nw=C()", "w.s=val", "w()"),
    "desc": (
        "class D:\n    def __get__(self,o,t): return o.__dict__['zz']\nclass C:\n    a=D()\nw=C()",
        "w.__dict__['zz']=val",
        "w.a",
    ),
    "dct": ("w=types.SimpleNamespace()", "w.a=val", "w.__dict__['a']"),
    "vars": ("w=types.SimpleNamespace()", "w.a=val", "vars(w)['a']"),
    "od": ("w=collections.OrderedDict(z=0)", "w['k']=val", "w['k']"),
    "dd": ("w=collections.defaultdict(list)", "w['k']=val", "w['k']"),
    "deque": ("w=collections.deque([0,0])", "w[0]=val", "w[0]"),
    "chain": ("w=collections.ChainMap({},{})", "w.maps[1]['k']=val", "w['k']"),
    "mproxy": ("d={}\nw=types.MappingProxyType(d)", "d['k']=val", "w['k']"),
    "udict": ("w=collections.UserDict()", "w['k']=val", "w['k']"),
    "ulist": ("w=collections.UserList([0])", "w[0]=val", "w[0]"),
    "subdict": ("class M(dict): pass\nw=M()", "w['k']=val", "w['k']"),
    "sublist": ("class M(list): pass\nw=M([0])", "w[0]=val", "w[0]"),
    "missing": ("class M(dict):\n    def __missing__(self,k): return self.z\nw=M()", "w.z=val", "w['k']"),
    "module": ("w=torch.nn.Module()", "w.__dict__['a']=val", "w.a"),
    "ctxvar": ("cv=contextvars.ContextVar('cv')", "cv.set(val)", "cv.get()"),
    "tlocal": ("w=threading.local()", "w.a=val", "w.a"),
    "fattr": ("def fn(): pass", "fn.a=val", "fn.a"),
    "default": ("def fn(a=None): return a", "fn.__defaults__=(val,)", "fn()"),
    "kwdefault": ("def fn(*,a=None): return a", "fn.__kwdefaults__={'a':val}", "fn()"),
    "partial": ("def fn(a): return a\nw=[None]", "w[0]=functools.partial(fn,val)", "w[0]()"),
    "closure": (
        "def mk():\n    c=None\n    def get(): return c\n    def put(v):\n        nonlocal c\n        c=v\n    return get,put\nget,put=mk()",
        "put(val)",
        "get()",
    ),
    "nextiter": ("w=[0]", "w[0]=val", "next(iter(w))"),
    "forval": ("w={}", "w['k']=val", "[i for i in w.values()][0]"),
    "items": ("w={}", "w['k']=val", "list(w.items())[0][1]"),
    "starred": ("w=[0,0]", "w[1]=val", "(lambda a,b:b)(*w)"),
    "kwstar": ("w={}", "w['k']=val", "(lambda k:k)(**w)"),
    "copy": ("w=types.SimpleNamespace()", "w.a=val", "copy.copy(w).a"),
    "lcopy": ("w=[0]", "w[0]=val", "w.copy()[0]"),
    "lslice": ("w=[0]", "w[0]=val", "w[:][0]"),
    "llist": ("w=[0]", "w[0]=val", "list(w)[0]"),
    "dcopy": ("w={}", "w['k']=val", "dict(w)['k']"),
    "dmerge": ("w={}", "w['k']=val", "{**w,'z':1}['k']"),
    "zip": ("w=[0]", "w[0]=val", "[b for a,b in zip([1],w)][0]"),
    "enumer": ("w=[0]", "w[0]=val", "[b for a,b in enumerate(w)][0]"),
    "map": ("w=[0]", "w[0]=val", "list(map(lambda i:i,w))[0]"),
    "rev": ("w=[0]", "w[0]=val", "list(reversed(w))[0]"),
    "attrgetter": ("w=types.SimpleNamespace()", "w.a=val", "operator.attrgetter('a')(w)"),
    "itemgetter": ("w=[0]", "w[0]=val", "operator.itemgetter(0)(w)"),
    "popput": ("w=[]", "w[:]=[val]", "w.pop()"),
    "setdef": ("w={}", "w['k']=val", "w.setdefault('k',None)"),
    "nested": ("w=types.SimpleNamespace(o=types.SimpleNamespace(d={'l':[0]}))", "w.o.d['l'][0]=val", "w.o.d['l'][0]"),
    "replaced": ("w=types.SimpleNamespace()", "w.o=types.SimpleNamespace(d={'l':[val]})", "w.o.d['l'][0]"),
    "dcfield": ("@dataclasses.dataclass\nclass C:\n    a: object=None\nw=C()", "w.a=val", "w.a"),
    "frozen": ("@dataclasses.dataclass(frozen=True)\nclass C:\n    a: object=None\nw=[C()]", "w[0]=C(val)", "w[0].a"),
    "asdict": (
        "@dataclasses.dataclass\nclass C:\n    a: object=None\nw=C()",
        "w.a=val",
        "(lambda d: d['a'])({f.name:getattr(w,f.name) for f in dataclasses.fields(w)})",
    ),
    "ntf": ("NT2=collections.namedtuple('NT2','a b')\nw=[None]", "w[0]=NT2(val,1)", "w[0].a"),
    "ntrep": ("NT2=collections.namedtuple('NT2','a b')\nw=[None]", "w[0]=NT2(val,1)", "w[0]._replace(b=3).a"),
    "super": (
        "class C0:\n    def g(self): return self.s\nclass C(C0):\n    def g(self): return super().g()\nw=C()",
        "w.s=val",
        "w.g()",
    ),
    "classm": ("class C:\n    @classmethod\n    def g(cls): return cls.s", "C.s=val", "C.g()"),
    "static": ("w=types.SimpleNamespace()\nclass C:\n    @staticmethod\n    def g(o): return o.s", "w.s=val", "C.g(w)"),
    "meta": (
        "class M(type):\n    @property\n    def a(cls): return cls.s\nclass C(metaclass=M): s=None",
        "C.s=val",
        "C.a",
    ),
    "lru": ("w=types.SimpleNamespace()\ndef fn(o): return o.a", "w.a=val", "fn(w)"),
    "with_": (
        "class C:\n    def __enter__(self): return self.s\n    def __exit__(self,*a): return False\nw=C()\ndef fn():\n    with w as q: return q",
        "w.s=val",
        "fn()",
    ),
    "genr": ("w=types.SimpleNamespace()\ndef fn():\n    yield w.a", "w.a=val", "next(fn())"),
    "yieldfrom": ("w=[0]\ndef fn():\n    yield from w", "w[0]=val", "list(fn())[0]"),
    "match": ("w={'t':1}\ndef fn():\n    match w:\n        case {'k':v}: return v", "w['k']=val", "fn()"),
    "tryexc": ("w={}\ndef fn():\n    try: return w['no']\n    except KeyError: return w['k']", "w['k']=val", "fn()"),
    "weak": ("import weakref\nclass C: pass\nw=C()\nr=weakref.ref(w)", "w.a=val", "r().a"),
    "imported": (
        "import sys\nm=types.ModuleType('zz_m'); sys.modules['zz_m']=m\ndef fn():\n    import zz_m\n    return zz_m.a",
        "m.a=val",
        "fn()",
    ),
    "importfrom": (
        "import sys\nm=types.ModuleType('zz_m'); sys.modules['zz_m']=m\ndef fn():\n    from zz_m import a\n    return a",
        "m.a=val",
        "fn()",
    ),
    "modgetattr": ("m=types.ModuleType('m'); s=[0]\nm.__getattr__=lambda n: s[0]", "s[0]=val", "m.zz"),
}


def plain(v, depth=0):
    if isinstance(v, torch.Tensor):
        if v.device.type == "meta":
            return ("meta", tuple(v.shape), str(v.dtype))
        return (
            "T",
            type(v).__name__,
            tuple(v.shape),
            str(v.dtype),
            [round(complex(i).real, 4) + 1j * round(complex(i).imag, 4) for i in v.detach().flatten().tolist()],
        )
    if isinstance(v, (list, tuple)):
        return (type(v).__name__, [plain(i) for i in v])
    if isinstance(v, dict):
        return (type(v).__name__, [(repr(k), plain(i)) for k, i in v.items()])
    return (type(v).__name__, repr(v) if " at 0x" not in repr(v) else "")

# size: table
"""Programs of the language, of objects: classes, data classes, context managers; as programs_language has them."""

PROGRAMS = """
## object model

properties
class P:
    def __init__(self): self._v = 1
    @property
    def v(self):
        w.log.append("get")
        return self._v
    @v.setter
    def v(self, n):
        w.log.append("set")
        self._v = n
    @v.deleter
    def v(self): self._v = None
p = P(); p.v += 2
a = p.v
del p.v
return a, p._v, x

descriptors
class D:
    def __set_name__(self, owner, name): self.name = name
    def __get__(self, o, t=None): return self if o is None else o.__dict__.get(self.name, 0) + 1
    def __set__(self, o, v): o.__dict__[self.name] = v
class C:
    a = D()
c = C(); c.a = 5
return c.a, C.a.name, vars(c), x

non_data_descriptor
class D:
    def __get__(self, o, t=None): return "from descriptor"
class C:
    a = D()
c = C(); before = c.a; c.__dict__["a"] = "own"
return before, c.a, x

getattr_fallback
class C:
    def __init__(self): self.real = 1
    def __getattr__(self, name):
        if name.startswith("no"): raise AttributeError(name)
        w.log.append(name)
        return len(name)
c = C()
return c.real, c.abc, getattr(c, "nothing", "default"), hasattr(c, "nope"), hasattr(c, "yes"), x

getattribute_override
class C:
    v = 1
    def __getattribute__(self, name):
        w.log.append(name)
        return object.__getattribute__(self, name)
c = C(); c.k = x
return c.v, c.k + 1

setattr_delattr
class C:
    def __setattr__(self, n, v):
        w.log.append(n)
        super().__setattr__(n, v)
    def __delattr__(self, n):
        w.log.append("del " + n)
        super().__delattr__(n)
c = C(); c.a = x; c.b = 1; del c.b
return c.a * 2, vars(c).keys() == {"a"}

slots
class S:
    __slots__ = ("a", "b")
s = S(); s.a = x
try:
    s.c = 1
except AttributeError as e:
    w.log.append(str(e))
return s.a + 1, hasattr(s, "b")

super_calls
class A:
    def f(self, t): return t + 1
    @classmethod
    def name(cls): return cls.__name__
class B(A):
    def f(self, t): return super().f(t) * 2
    @classmethod
    def name(cls): return "B" + super().name()
class C(B):
    def f(self, t): return super(B, self).f(t) - 1
return B().f(x), C().f(x), C.name()

multiple_inheritance
class A:
    def f(self): return ["A"]
class B(A):
    def f(self): return ["B"] + super().f()
class C(A):
    def f(self): return ["C"] + super().f()
class D(B, C):
    def f(self): return ["D"] + super().f()
return D().f(), [c.__name__ for c in D.__mro__], isinstance(D(), C), x

operator_overloads
class V:
    def __init__(self, t): self.t = t
    def __add__(self, o): return V(self.t + getattr(o, "t", o))
    __radd__ = __add__
    def __matmul__(self, o): return "matmul"
    def __neg__(self): return V(-self.t)
    def __iadd__(self, o):
        self.t = self.t + o
        return self
    def __eq__(self, o): return "eq"
    def __lt__(self, o): return "lt"
    def __getitem__(self, i): return i
    def __call__(self, *a): return len(a)
    def __contains__(self, i): return i == 3
v = V(x); v += 1
return (v + v).t, (1 + v).t, (-v).t, v @ v, v == 1, v < 1, v[1:2, ...], v(1, 2), 3 in v

reflected_not_implemented
class L:
    def __add__(self, o): return NotImplemented
class R:
    def __radd__(self, o): return "R"
try:
    L() + L()
except TypeError as e:
    w.log.append(str(e))
return L() + R(), x

class_body_and_scope
k = 3
class C:
    a = k
    b = [a for _ in range(2)] if False else [k]
    def f(self): return k
    n: int = 1
return C.a, C.b, C().f(), C.__annotations__, C.__qualname__, x

class_attributes_shared
class C:
    shared = []
    n = 0
a, b = C(), C(); a.shared.append(1); a.n += 1
return b.shared, b.n, a.n, C.n, x

metaclass
class M(type):
    def __new__(m, name, bases, ns, **kw):
        ns["made"] = sorted(k for k in ns if not k.startswith("__"))
        return super().__new__(m, name, bases, ns)
    def __call__(cls, *a):
        w.log.append("call")
        return super().__call__(*a)
    @property
    def nice(cls): return cls.__name__.lower()
class C(metaclass=M, flag=1):
    v = 2
    def __init__(self, t): self.t = t
return C(x).t + C.v, C.made, C.nice

init_subclass
class A:
    seen = []
    def __init_subclass__(cls, tag=None, **kw):
        super().__init_subclass__(**kw)
        A.seen.append((cls.__name__, tag))
class B(A, tag="b"): pass
return A.seen, x

new_and_init
class C:
    def __new__(cls, v):
        w.log.append("new")
        self = super().__new__(cls)
        return self
    def __init__(self, v): self.v = v
return C(x).v * 2, type(C(1)).__name__

singleton_new
class C:
    one = None
    def __new__(cls):
        if cls.one is None: cls.one = super().__new__(cls)
        return cls.one
return C() is C(), x

abstract_classes
class A(abc.ABC):
    @abc.abstractmethod
    def f(self): ...
class B(A):
    def f(self): return 1
try:
    A()
except TypeError as e:
    w.log.append(type(e).__name__)
return B().f(), issubclass(B, A), x

virtual_subclass
class A(abc.ABC):
    @classmethod
    def __subclasshook__(cls, c): return hasattr(c, "quack")
class D:
    def quack(self): pass
return isinstance(D(), A), isinstance(1, A), isinstance([], collections.abc.Sized), callable(len), x

iterator_protocol
class It:
    def __init__(self, n): self.n = n
    def __iter__(self): return self
    def __next__(self):
        if self.n == 0: raise StopIteration
        self.n -= 1
        return self.n
return list(It(3)), sum(x * i for i in It(2)), [*It(2)], 1 in It(3), dict(enumerate(It(2)))

getitem_iteration
class Old:
    def __getitem__(self, i):
        if i > 2: raise IndexError
        return i * 10
a, b, c = Old()
return list(Old()), a + c, 20 in Old(), list(reversed(range(2))), x

hash_and_eq
class K:
    def __init__(self, v): self.v = v
    def __hash__(self): return hash(self.v)
    def __eq__(self, o): return self.v == o.v
d = {K(1): "one"}
return d[K(1)], len({K(1), K(1), K(2)}), K(3) in d, x

instance_dict_tricks
o = types.SimpleNamespace(**w.names); vars(o)["c"] = x
return o.a, o.c + 1, sorted(vars(o)), o == types.SimpleNamespace(a=1)

method_objects
m = w.items.append; m(4); f = w.box.__class__.__repr__
w.items.pop()
return m.__self__ is w.items, f(w.box), w.net.forward.__func__ is Net.forward, x

dynamic_class
C = type("C", (Box,), {"double": lambda self: self.value * 2, "tag": 7})
return C(4).double(), C.tag, C.__bases__[0].__name__, x

class_decorator
def add_tag(c):
    c.tag = c.__name__
    return c
@add_tag
class C: pass
return C.tag, x

static_and_class_methods
class C:
    n = 2
    @staticmethod
    def s(t): return t + 1
    @classmethod
    def c(cls, t): return t * cls.n
return C.s(x), C().c(x), C.c(x)

weak_references
b = Box(3); r = weakref.ref(b); alive = r() is b
del b
return alive, r() is None, x

total_ordering
@functools.total_ordering
class O:
    def __init__(self, v): self.v = v
    def __eq__(self, o): return self.v == o.v
    def __lt__(self, o): return self.v < o.v
return O(1) <= O(2), O(2) >= O(3), max([O(1), O(3)], key=lambda o: o.v).v, sorted([O(2), O(1)])[0].v, x

cached_property
class C:
    @functools.cached_property
    def v(self):
        w.log.append("computed")
        return x * 2
c = C()
return c.v, c.v is c.v

name_mangling
class C:
    def __init__(self): self.__v = 1
    def get(self): return self.__v
return C().get(), list(vars(C())), x

## dataclasses, enums, named tuples

dataclass_basics
p = Point(x, rest=[1]); q = Point(1)
return p.left + 1, repr(q), q == Point(1), dataclasses.asdict(q), [f.name for f in dataclasses.fields(p)]

dataclass_replace
p = dataclasses.replace(Point(x), right=5)
return p.left is x, p.right, dataclasses.is_dataclass(p)

dataclass_frozen_order
a, b = Frozen(1), Frozen(1, 2)
try:
    a.a = 2
except dataclasses.FrozenInstanceError as e:
    w.log.append(str(e))
return a < b, hash(a) == hash(Frozen(1)), sorted([b, a])[0] is a, x

dataclass_post_init
@dataclasses.dataclass
class D:
    t: object
    n: dataclasses.InitVar[int] = 2
    twice: object = dataclasses.field(init=False)
    def __post_init__(self, n): self.twice = self.t * n
return D(x).twice, D(x, 3).twice

enums
return Color.RED.name, Color(2) is Color.BLUE, Color["RED"].value, [c.name for c in Color], Color.RED == 1, x

enum_as_key
d = {Color.RED: x, Color.BLUE: x + 1}
return d[Color.RED] + d[Color(2)], Color.RED in Color

int_flags
f = Flag.A | Flag.B
return f.value, Flag.A in f, f & Flag.B == Flag.B, int(Flag.A) + 1, x * Flag.B

enum_errors
try:
    Color(5)
except ValueError as e:
    return str(e), x

named_tuples
p = Pair(x); q = p._replace(right=1)
return p.left + 1, p.right, q._asdict()["right"], Pair._fields, p[1], len(p)

named_tuple_classes
t = Typed(x)
a, b = t
return a is x, b, t._replace(n=4).n, isinstance(t, tuple), t

named_tuple_returned
return Pair(x * 2, Pair(1, x))

## context managers

nested_with
@contextlib.contextmanager
def say(n):
    w.log.append(n)
    try:
        yield n
    finally:
        w.log.append(-n)
with say(1) as a, say(2) as b:
    y = x * (a + b)
return y

with_swallows
class S:
    def __enter__(self): return self
    def __exit__(self, t, v, tb):
        w.log.append(t and t.__name__)
        return t is ValueError
with S():
    raise ValueError("gone")
return x

with_raises_in_exit
class S:
    def __enter__(self): pass
    def __exit__(self, *a): raise KeyError("exit")
try:
    with S():
        raise ValueError("body")
except KeyError as e:
    return str(e), type(e.__context__).__name__, x

exit_stack
with contextlib.ExitStack() as stack:
    stack.callback(w.log.append, "callback")
    stack.push(lambda t, v, tb: w.log.append("pushed"))
    y = x + 1
return y

return_inside_with
with contextlib.suppress(KeyError):
    if w.n:
        return x * 2
    {}["k"]
return x

suppress
with contextlib.suppress(KeyError, ValueError):
    w.log.append("before")
    {}["k"]
    w.log.append("never")
return x

null_and_closing
class C:
    def close(self): w.log.append("closed")
with contextlib.nullcontext(5) as five, contextlib.closing(C()):
    return x * five

redirect_stdout
import io
out = io.StringIO()
with contextlib.redirect_stdout(out):
    print("hello", w.n, sep="-", end="!")
return out.getvalue(), x

generator_context_throws
@contextlib.contextmanager
def guard():
    try:
        yield
    except ZeroDivisionError:
        w.log.append("caught")
with guard():
    1 / 0
return x

grad_modes
with torch.no_grad():
    a = torch.is_grad_enabled()
with torch.enable_grad():
    b = torch.is_grad_enabled()
return a, b, torch.is_grad_enabled(), x * 2

break_out_of_with
for i in range(3):
    with contextlib.ExitStack() as s:
        s.callback(w.log.append, i)
        if i == 1: break
return x * i

"""

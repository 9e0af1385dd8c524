"""Programs in the language of CPython 3.12, as strings: earlier versions cannot parse them (see evaluator_programs)."""

SOURCE = """
def comprehensions():
    i, out = 7, []
    try:
        out.append([(i, j) for i in range(3) for j in range(i)])
        out.append({i: [i * k for k in range(2)] for i in "ab"})
        out.append([(lambda: i)() for i in range(2)])
        out.append([1 // i for i in (1, 0)])
    except ZeroDivisionError as error:
        out.append((str(error), i))
    return out, i, sorted({i for i in (3, 1)}), sum(i for i in range(4))


class Base:
    tag = "base"

    @property
    def shown(self):
        return f"<{self.tag}>"

    @classmethod
    def made(cls):
        return cls()

    def call(self, *args, **kwargs):
        return args, kwargs


class Derived(Base):
    tag = "derived"

    @property
    def shown(self):
        return super().shown + "!"

    @classmethod
    def made(cls):
        return super().made().tag

    def call(self, *args, **kwargs):
        return super(Derived, self).call(1, *args, **kwargs)

    def misses(self):
        return super().nothing


def supers():
    out = [Derived().shown, Derived.made(), Derived().call(2, k=3)]
    try:
        Derived().misses()
    except AttributeError as error:
        out.append(str(error))
    return out


class Sliced:
    def __init__(self):
        self.log = []

    def __getitem__(self, key):
        return [n * 2 for n in range(10)[key]]

    def __setitem__(self, key, value):
        self.log.append((str(key), value))


def slices():
    s, items = Sliced(), list(range(6))
    s[1:3] = s[2:4]
    s[:] = items[1:]
    items[2:4] = "xyz"
    return s.log, items, "text"[1:-1], (1, 2, 3)[:2], s[items[0]:3]


def generic():
    def first[T: int](items: list[T]) -> T:
        return items[0]

    type Pairs[K] = list[tuple[K, K]]
    parameters = [p.__name__ for p in first.__type_params__]
    return first([4]), parameters, first.__type_params__[0].__bound__, str(Pairs[int])


def generic_class():
    class Box[T, *Ts, **P]:
        kind = T.__name__

        def get[U: (int, str)](self, value: U) -> U:
            return value

    parameters = [p.__name__ for f in (Box, Box.get) for p in f.__type_params__]
    return Box.kind, Box().get(3), parameters, Box.get.__type_params__[0].__constraints__


def delegating():
    def inner():
        try:
            got = yield 1
            yield got
        except ValueError as error:
            yield str(error)
        return "inner"

    def outer():
        out = yield from inner()
        yield out

    g = outer()
    sent = [next(g), g.throw(ValueError("thrown")), next(g)]
    h = outer()
    sent += [next(h), h.send("sent"), h.close()]
    k = (1 // n for n in (1, 0))
    sent.append(next(k))
    try:
        next(k)
    except ZeroDivisionError as error:
        sent.append(str(error))
    return sent


def stops():
    def early():
        yield 1
        raise StopIteration("early")

    async def coroutine():
        raise StopIteration

    out = []
    for make in (lambda: list(early()), lambda: coroutine().send(None)):
        try:
            make()
        except RuntimeError as error:
            out.append((str(error), type(error.__cause__).__name__))
    return out


def formats():
    names = {"a": 1}
    return f"{names["a"]}{f"{f"{2 + 2}"}":>4}", f"{names!r:>{len("abcdefghijkl")}}"


PROGRAMS = [comprehensions, supers, slices, generic, generic_class, delegating, stops, formats]
"""

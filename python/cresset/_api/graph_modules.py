"""Captured graphs as ``torch.fx.GraphModule``, for a backend that is a function of the user's.

The native module gives a description of plain objects (src/python/graph_taker.cpp). The backend is called at the first
run, as then there are tensors to give it. Compiled programs find its code by the operator ``cresset::run_graph``.
"""

import itertools
import operator
import weakref

import torch

_DTYPES = {
    "bool": torch.bool,
    "u8": torch.uint8,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "c64": torch.complex64,
    "c128": torch.complex128,
}
_DEVICES = ("cpu", "cuda", "meta")
_FORMATS = (torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d)


def _sum(*terms):
    return sum(terms)


def _product(*factors):
    out = 1
    for factor in factors:
        out = out * factor
    return out


def _all(*conditions):
    return all(conditions)


def _any(*conditions):
    return any(conditions)


_FUNCTIONS = {
    "+": (operator.add, _sum),
    "*": (operator.mul, _product),
    "//": (operator.floordiv, None),
    "%": (operator.mod, None),
    "min": (min, min),
    "max": (max, max),
    "==": (operator.eq, None),
    "!=": (operator.ne, None),
    "<": (operator.lt, None),
    "<=": (operator.le, None),
    "and": (operator.and_, _all),
    "or": (operator.or_, _any),
    "not": (operator.not_, None),
}
# Their results depend on where the elements of the first argument lie in memory.
_BY_MEMORY = ("aten::as_strided", "aten::as_strided_copy", "aten::as_strided_scatter")


def laid_out(tensor, strides):
    """The tensor with these strides, at the start of its storage: as_strided() sees the memory that the program saw."""
    same = all(n < 2 or a == b for n, a, b in zip(tensor.shape, tensor.stride(), strides, strict=True))
    if same and tensor.storage_offset() == 0:
        return tensor
    return torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype, device=tensor.device).copy_(tensor)


def tensors_of(result):
    """The tensors among an operator's results, in order."""
    if isinstance(result, torch.Tensor):
        return [result]
    return [t for part in result for t in tensors_of(part)] if isinstance(result, (list, tuple)) else []


class _Builder:
    """Makes a graph module of a description."""

    def __init__(self, description):
        self._graph = torch.fx.Graph()
        self._values, self._types, self._symbols = {}, {}, {}
        for name, hint in description["symbols"]:
            self._symbols[name] = self._placeholder(name)
            self._symbols[name].meta["val"] = hint
        for value, name, type_ in description["inputs"]:
            self._note(value, self._placeholder(name or "input"), type_)
        for row in description["nodes"]:
            self._node(*row)
        self._graph.output(tuple(self._values[v] for v in description["results"]))

    def module(self):
        self._graph.lint()
        return torch.fx.GraphModule(torch.nn.Module(), self._graph)

    def _placeholder(self, name):
        plain = "".join(c if c.isalnum() else "_" for c in name).strip("_")
        node = self._graph.placeholder(plain if plain[:1].isalpha() else f"input_{plain}")
        node.target = node.name  # distinct
        return node

    def _note(self, value, node, type_):
        dtype, device, sizes, strides = type_
        self._values[value], self._types[value] = node, strides
        known = [n for n in strides if isinstance(n, int)]
        if None not in sizes and len(known) == len(strides):
            node.meta["val"] = torch.empty_strided(sizes, known, dtype=_DTYPES[dtype], device="meta")
        else:
            node.meta["val"] = None if None in sizes else torch.empty(sizes, dtype=_DTYPES[dtype], device="meta")
        node.meta["device"] = self._device(device)

    @staticmethod
    def _device(described):
        _, kind, index = described
        return torch.device(_DEVICES[kind]) if index < 0 else torch.device(_DEVICES[kind], index)

    def _call(self, function, *args, **kwargs):
        return self._graph.call_function(function, args, kwargs)

    def _argument(self, described):
        if isinstance(described, list):
            return [self._argument(x) for x in described]
        if not isinstance(described, tuple):
            return described
        kind, *rest = described
        if kind == "value":
            return self._values[rest[0]]
        if kind == "symbol":
            return self._symbols[rest[0]]
        if kind == "expression":
            of_two, of_many = _FUNCTIONS[rest[0]]
            operands = [self._argument(x) for x in rest[1]]
            return self._call(of_two if len(operands) <= 2 else of_many, *operands)
        if kind == "dtype":
            return _DTYPES[rest[0]]
        if kind == "memory_format":
            return _FORMATS[rest[0]]
        return torch.strided if kind == "layout" else self._device(described)

    def _arguments(self, name, described, schema):
        """Positional and keyword arguments, without defaults at the end."""
        args, kwargs = [], {}
        for given, argument in zip(described, schema.arguments, strict=True):
            value = self._argument(given)
            text = str(argument.type)
            if isinstance(value, torch.fx.Node) and isinstance(given, tuple) and given[0] == "value":
                if text in ("float", "number", "Scalar", "Optional[float]", "Optional[number]"):
                    value = self._call(torch.ops.aten._local_scalar_dense.default, value)
            elif text in ("bool", "Optional[bool]") and isinstance(value, int):
                value = bool(value)
            elif text in ("float", "Optional[float]") and isinstance(value, int):
                value = float(value)
            if argument.kwarg_only:
                if not (argument.has_default_value() and argument.default_value is value):
                    kwargs[argument.name] = value
            else:
                args.append(value)
        positional = [a for a in schema.arguments if not a.kwarg_only]
        while args and positional[len(args) - 1].has_default_value():
            default = positional[len(args) - 1].default_value
            if isinstance(args[-1], torch.fx.Node) or type(args[-1]) is not type(default) or args[-1] != default:
                break
            args.pop()
        if name in _BY_MEMORY:
            strides = [self._argument(s) for s in self._types[described[0][1]]]
            args[0] = self._call(laid_out, args[0], strides)
        return args, kwargs

    def _node(self, name, described, results, location):
        space, _, rest = name.partition("::")
        base, _, overload = rest.partition(".")
        if name == "aten::view":  # a tensor of the backend may have other strides than eager mode's
            base = "reshape"
        function = getattr(getattr(getattr(torch.ops, space), base), overload or "default")
        args, kwargs = self._arguments(name, described, function._schema)
        node = self._call(function, *args, **kwargs)
        if location:
            node.meta["stack_trace"] = location
        returned = [str(r.type) for r in function._schema.returns]
        if returned == ["Tensor"] and len(results) == 1:
            return self._note(results[0][0], node, results[0][1])
        by_place = returned == ["List[Tensor]"] or len(returned) == len(results)
        many = node if by_place else self._call(tensors_of, node)
        for i, (value, type_) in enumerate(results):
            self._note(value, self._call(operator.getitem, many, i), type_)
        return None


_numbers = itertools.count()
_codes = weakref.WeakValueDictionary()  # number: _Code; a taker owns them


class _Code:
    """The code of one graph: the function that the backend returned."""

    def __init__(self, description, backend, more):
        self._description, self._backend, self._more = description, backend, more
        self._run = None

    def run(self, tensors, numbers):
        given = [*numbers, *tensors]
        if self._run is None:
            made = self._backend(_Builder(self._description).module(), list(given), **self._more)
            if not callable(made):
                raise TypeError(f"cresset.compile: the backend must return a callable, got {type(made).__name__}")
            self._run, self._count = made, len(self._description["results"])
            self._description = self._backend = None
        out = self._run(*given)
        out = [out] if isinstance(out, torch.Tensor) else list(out)
        if len(out) != self._count:
            raise RuntimeError(
                f"cresset.compile: the backend's code returned {len(out)} tensors for a graph of {self._count}"
            )
        return _apart(out, tensors)


def _apart(results, arguments):
    """The results in memory of their own: a program's values share none."""
    taken = {t.untyped_storage()._cdata for t in arguments}
    for i, tensor in enumerate(results):
        if tensor.untyped_storage()._cdata in taken:
            results[i] = tensor = tensor.clone()
        taken.add(tensor.untyped_storage()._cdata)
    return [t.detach() for t in results]


class Taker:
    """Takes the graphs of a compiled function for a backend."""

    def __init__(self, backend, more):
        _define()
        self._backend, self._more, self._codes = backend, more, []

    def __call__(self, description):
        number = next(_numbers)
        _codes[number] = code = _Code(description, self._backend, self._more)
        self._codes.append(code)
        return number

    def __reduce__(self):
        return Taker, (self._backend, self._more)


_library = None


def _define():
    """Defines the operator, in the first process-wide use."""
    global _library
    if _library is not None:
        return
    _library = torch.library.Library("cresset", "FRAGMENT")
    _library.define("run_graph(int number, Tensor[] values, SymInt[] symbols) -> Tensor[]")
    _library.impl("run_graph", _run_graph, "CompositeExplicitAutograd")


def _run_graph(number, values, symbols):
    with torch.no_grad():
        return _codes[number].run(list(values), list(symbols))

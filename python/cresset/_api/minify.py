"""cresset.minify(): a failing or differing compiled call as a small program of its own."""

import base64
import math
import re
import types
import zlib

import torch

_LITERAL = 64  # elements of a tensor that is written out


def _outcome(function, args, settings):
    """How a compiled function fails beside itself in eager mode: a few words, which name the failure; None: it does not.
    Results may differ by three times of what torch.testing allows, or have ten times the error of eager mode's."""
    from .compile import compile

    expected = function(*_copies(args))
    try:
        got = compile(function, **settings)(*_copies(args))
    except Exception as raised:
        return type(raised).__name__
    exact = _in_doubles(function, args)
    for i, (mine, its) in enumerate(zip(got, expected, strict=True)):
        if mine.dtype != its.dtype or mine.shape != its.shape or mine.stride() != its.stride():
            return "another dtype, size or stride"
        rtol, atol = torch.testing._comparison.default_tolerances(its.dtype)
        if torch.allclose(mine, its, rtol=3 * rtol, atol=3 * atol, equal_nan=True):
            continue
        if exact is None or not _error(mine, exact[i]) <= 10 * _error(its, exact[i]) + atol:
            return "other values"
    return None


def _in_doubles(function, args):
    """The results in double precision; None where the function has none."""
    wide = [a.double() if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in _copies(args)]
    try:
        return function(*wide)
    except Exception:
        return None


def _error(result, exact):
    """The largest difference; NaN, which no bound accepts, where the values cannot be compared."""
    if not result.is_floating_point() or result.shape != exact.shape:
        return math.nan
    return float((result.double() - exact.double()).abs().max())


def _copies(args):
    return [a.detach().clone() if isinstance(a, torch.Tensor) else a for a in args]


class _Part:
    """A part of a captured graph: the nodes from `cut`, whose values become arguments, to `outputs`."""

    def __init__(self, graph, values, outputs, cut=frozenset()):
        self.graph, self.values, self.outputs, self.cut = graph, values, outputs, cut
        self.text, self.arguments = self._write()

    def function(self):
        space = {}
        exec(compile(self.text, "<minified>", "exec"), space)
        return space["function"]

    def args(self):
        return [self.values[node] for node in self.arguments]

    def size(self):
        return len(self._inner())

    def _is_leaf(self, node):
        return node.op == "placeholder" or node in self.cut

    def _needed(self):
        found, open_ = set(), list(self.outputs)
        while open_:
            node = open_.pop()
            if node not in found:
                found.add(node)
                open_ += () if self._is_leaf(node) else node.all_input_nodes
        return [node for node in self.graph.nodes if node in found]

    def _inner(self):
        return [node for node in self._needed() if not self._is_leaf(node)]

    def candidates(self):
        """Nodes whose value may become an argument."""
        return [n for n in self._inner() if n not in self.outputs and isinstance(self.values[n], (torch.Tensor, int))]

    def _write(self):
        """The part as the text of a function, and the nodes which are its arguments."""
        made, known = torch.fx.Graph(), {}
        needed = self._needed()
        arguments = [node for node in needed if self._is_leaf(node)]
        for node in arguments:
            known[node] = made.placeholder(f"a{len(known)}")
        for node in needed:
            if node not in known:
                known[node] = made.node_copy(node, known.__getitem__)
        made.output([known[node] for node in self.outputs])
        code = made.python_code("self")
        lines = code.src.strip().splitlines()
        start = next(i for i, line in enumerate(lines) if line.startswith("def "))
        names = ", ".join(known[node].name for node in arguments)
        used = {n: v for n, v in code.globals.items() if re.search(rf"\b{n}\b", code.src)}
        text = "\n".join([_imports(used), "", "", f"def function({names}):", *lines[start + 1 :]])
        return text, arguments


def _imports(names):
    """Import statements for the names which the text of a graph uses."""
    lines = {"import torch", "import cresset"}
    for name, value in names.items():
        if isinstance(value, types.FunctionType):
            lines.add(f"from {value.__module__} import {value.__qualname__} as {name}")
        elif name in ("inf", "nan"):
            lines.add(f"from math import {name}")
        elif isinstance(value, types.BuiltinFunctionType) or value is torch.device:
            lines.add(f"from {value.__module__} import {value.__name__} as {name}")
    return "\n".join(sorted(lines))


class _Keeping(torch.fx.Interpreter):
    """Runs a graph and keeps the value of every node."""

    def __init__(self, module):
        super().__init__(module, garbage_collect_values=False)


def _whole(module, args):
    run = _Keeping(module)
    run.run(*_copies(args))
    (output,) = (node for node in module.graph.nodes if node.op == "output")
    outputs = list(dict.fromkeys(n for n in output.args[0] if n.op != "placeholder"))
    return _Part(module.graph, dict(run.env), outputs)


def _smaller(part, fails):
    """The part, as small as it still fails: fewer results, then fewer operators, by halves."""
    for output in part.outputs if len(part.outputs) > 1 else ():
        alone = _Part(part.graph, part.values, [output])
        if fails(alone):
            part = alone
            break
    earlier = [n for n in part.candidates()]
    for output in earlier:  # an earlier value as the only result
        alone = _Part(part.graph, part.values, [output])
        if isinstance(part.values[output], torch.Tensor) and fails(alone):
            part = alone
            break
    count = max(1, len(part.candidates()) // 2)
    while True:
        rest = part.candidates()
        for start in range(0, len(rest), count):
            fewer = _Part(part.graph, part.values, part.outputs, part.cut | set(rest[start : start + count]))
            if fewer.size() < part.size() and fails(fewer):
                part = fewer
        if count == 1:
            return part
        count = max(1, count // 2)


# ---- The program


def _tensor_text(tensor):
    """An expression for the tensor, with its strides."""
    plain = tensor.detach().cpu()
    device = "" if tensor.device.type == "cpu" else f", device={str(tensor.device)!r}"
    if plain.numel() == 0:
        return f"torch.empty_strided({tuple(plain.shape)}, {tensor.stride()}, dtype={plain.dtype}{device})"
    if plain.numel() <= _LITERAL and not plain.is_complex() and bool(torch.isfinite(plain.double()).all()):
        made = f"torch.tensor({plain.tolist()!r}, dtype={plain.dtype}{device})"
    else:
        packed = zlib.compress(plain.contiguous().view(-1).view(torch.uint8).numpy().tobytes(), 9)
        made = (
            f"torch.frombuffer(bytearray(zlib.decompress(base64.b64decode({base64.b64encode(packed)!r}))), "
            f"dtype={plain.dtype}).reshape({tuple(plain.shape)})" + (f".to({str(tensor.device)!r})" if device else "")
        )
    if tensor.is_contiguous() or math.prod(tensor.stride()) == 0:
        return made
    return f"torch.empty_strided({tuple(tensor.shape)}, {tensor.stride()}, dtype={tensor.dtype}{device}).copy_({made})"


def _settings_text(settings):
    return "".join(f", {name}={value.__name__ if callable(value) else repr(value)}" for name, value in settings.items())


def _program(part, settings, outcome):
    args = [_tensor_text(a) if isinstance(a, torch.Tensor) else repr(a) for a in part.args()]
    rows = "".join(f"    {text},\n" for text in args)
    packed = "import base64\nimport zlib\n" if any("zlib." in text for text in args) else ""
    return (
        f"# Compiled, this has: {outcome}.\n{packed}{part.text.rstrip()}\n\n\nargs = [\n{rows}]\n"
        "expected = function(*[a.clone() if isinstance(a, torch.Tensor) else a for a in args])\n"
        f"got = cresset.compile(function{_settings_text(settings)})(*args)\n"
        "for mine, its in zip(got, expected, strict=True):\n"
        "    assert mine.stride() == its.stride(), (mine.stride(), its.stride())\n"
        "    torch.testing.assert_close(mine, its, equal_nan=True)\n"
    )


def minify(function, *args, check=None, settings=None, **kwargs):
    """Shrinks a compiled call that fails or differs from eager mode to a small program; returns its text.

    The graphs of ``function(*args, **kwargs)`` are captured, and each is compiled alone. The first one that raises, or
    whose results differ, is cut down to few operators with their values as arguments. None: no graph fails alone.

    ``settings``: a dict of arguments of :func:`compile`. ``check``: a function of a function and its arguments, called in
    place of the comparison; it returns a few words about the failure, or None. A failure that ends the process is not
    handled. Backward passes inside ``function`` are included.
    """
    from .compile import compile

    settings = dict(settings or {})
    graphs = []

    def keep(module, inputs):
        graphs.append((module, _copies(inputs)))
        return module

    compile(function, backend=keep)(*args, **kwargs)
    check = check or (lambda f, values: _outcome(f, values, settings))
    for module, inputs in graphs:
        whole = _whole(module, inputs)
        with torch.no_grad():
            outcome = check(whole.function(), whole.args()) if whole.outputs else None
            if outcome is None:
                continue
            part = _smaller(whole, lambda p, as_before=outcome: check(p.function(), p.args()) == as_before)
        return _program(part, settings, outcome)
    return None

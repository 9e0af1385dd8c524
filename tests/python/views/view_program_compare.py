"""Runs a random program about views in eager mode and compiled, and reports the differences.

A program (`view_program_generator`) has functions `call0`, `call1`, ... for making leaves and arguments, the function
`f`, and settings. The settings are AROUND (the context of the calls), ORDER (of the gradients) and AFTER (a write to a
result before the gradients). The comparison covers everything that a user can see of each call: results, arguments,
whole storages of arguments, shared memory, exceptions, gradients.
"""

from __future__ import annotations

import ast
import contextlib
import re
import warnings
from pathlib import Path

import torch

PRELUDE = '''\
import contextlib
import torch
from torch.utils.checkpoint import checkpoint


def values(sizes, dtype, seed=0):
    """Small multiples of a quarter, so that sums and products are exact."""
    g = torch.Generator().manual_seed(seed)
    if dtype.is_complex:
        return torch.complex(*(torch.randint(-6, 7, sizes, generator=g).double() / 4 for _ in "ri")).to(dtype)
    t = torch.randint(-6, 7, sizes, generator=g)
    return t.to(dtype) / 4 if dtype.is_floating_point else t.to(dtype)
'''


def known_failures():
    """Seeds of differing programs today; the fix of a program deletes its line."""
    lines = Path(__file__).with_name("view_programs_known.txt").read_text().splitlines()
    return {int(line.split()[0]) for line in lines if line and not line.startswith("#")}


def load(source):
    scope = {}
    exec(compile(source, "<program>", "exec"), scope)
    return scope


def call_names(source):
    return re.findall(r"^def (call\d+)", source, re.MULTILINE)


# ------------------------------------------------------------------------------------------------ visible facts


def plain(t):
    """Values as numbers without lazy bits."""
    t = t.detach()
    return t.resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)


def storage_of(t):
    whole = torch.empty(0, dtype=torch.uint8)
    storage = t.untyped_storage()
    return whole.set_(storage, 0, (storage.nbytes(),), (1,)).clone(), t.dtype


class Described:
    """Results and effects of a call. Tensors and storages are named in the order of their first occurrence."""

    def __init__(self):
        self.objects, self.storages, self.rows = {}, {}, []

    def value(self, path, v):
        if isinstance(v, torch.Tensor):
            return self.tensor(path, v)
        if isinstance(v, (tuple, list)):
            self.rows.append((path, "type", (type(v).__name__, len(v))))
            for i, item in enumerate(v):
                self.value(f"{path}[{i}]", item)
            return None
        self.rows.append((path, "value", v))

    def tensor(self, path, t):
        if id(t) in self.objects:
            return self.rows.append((path, "object", self.objects[id(t)][0]))
        self.objects[id(t)] = path, t
        with torch.no_grad():
            place = t.untyped_storage().data_ptr() if t.untyped_storage().nbytes() else None
            owner = self.storages.setdefault(place, path) if place is not None else "nothing"
            given = owner.startswith(("argument", "leaf"))
            facts = {
                "dtype": str(t.dtype),
                "sizes": tuple(t.shape),
                "strides": tuple(t.stride()),
                "storage": owner if t.numel() else "",
                "offset": t.storage_offset() if given and t.numel() else 0,
                "lazy": (t.is_conj(), t.is_neg()),
                "grad": grad_of(t),
            }
            self.rows += [(path, name, fact) for name, fact in facts.items()]
            self.rows.append((path, "values", plain(t)))


def grad_of(t):
    try:
        return t.requires_grad, t.is_leaf
    except RuntimeError as error:  # for a view whose base had writes forbidden by autograd
        return first_line(error)


def weights(t):
    w = torch.arange(1, t.numel() + 1, dtype=torch.float64).reshape(t.shape) / 4
    return w.to(t.dtype)


def loss_of(tensors):
    loss = torch.zeros((), dtype=torch.float64)
    for t in tensors:
        if t.requires_grad and t.numel():
            part = (t * t * weights(t)).sum()
            loss = loss + (part.real if part.is_complex() else part)
    return loss


def tensors_of(v):
    if isinstance(v, torch.Tensor):
        return [v]
    return [t for item in v for t in tensors_of(item)] if isinstance(v, (tuple, list)) else []


def first_line(error):
    """Messages of autograd name nodes and versions, which differ where a call is a single node."""
    text = str(error)
    for known in (
        "one of the variables needed for gradient computation has been modified",
        "Trying to backward through",
    ):
        if text.startswith(known):
            return known
    return text


def gradients(described, scope, leaves, args, result):
    seen = tensors_of([list(args), result])
    unique = list({id(t): t for t in seen}.values())
    wanted = [t for t in leaves if t.requires_grad]
    loss = loss_of(unique)
    if not scope["ORDER"] or not wanted or not loss.requires_grad:
        return
    if scope["ORDER"] == 1:
        loss.backward()
        first = [t.grad for t in wanted]
    else:
        first = torch.autograd.grad(loss, wanted, create_graph=True, allow_unused=True)
    for i, g in enumerate(first):
        described.rows.append((f"gradient {i}", "values", None if g is None else plain(g)))
    again = loss_of([g for g in first if g is not None])
    if scope["ORDER"] == 2 and again.requires_grad:
        for i, g in enumerate(torch.autograd.grad(again, wanted, allow_unused=True)):
            described.rows.append((f"second gradient {i}", "values", None if g is None else plain(g)))


@contextlib.contextmanager
def noted(described, where):
    try:
        yield
    except Exception as error:
        kind = type(error).__name__
        described.rows.append((where, "raised", (kind, first_line(error))))


def observe(scope, name, f):
    """A call of the program: [(where, kind of fact, fact)]."""
    described = Described()
    leaves, args = scope[name]()
    versions = [t._version for t in args]
    result = None
    with noted(described, "call"), scope["AROUND"]():
        result = f(*args)
    for i, t in enumerate(leaves):
        described.value(f"leaf {i}", t)
    for i, (t, before) in enumerate(zip(args, versions)):
        described.value(f"argument {i}", t)
        described.rows.append((f"argument {i}", "written", t._version > before))
        described.rows.append((f"argument {i}", "base", storage_of(t)))
    described.value("result", result)
    with noted(described, "gradient"):
        if scope["AFTER"] and (late := [t for t in tensors_of(result) if t.requires_grad]):
            late[0].mul_(3)
            described.rows.append(("result", "values", plain(late[0])))
        gradients(described, scope, leaves, args, result)
    return described.rows


def history(source, wrap):
    scope = load(source)
    f = wrap(scope["f"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [observe(scope, name, f) for name in call_names(source)]


# ------------------------------------------------------------------------------------------------------- differences


def same_numbers(a, b, loose):
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not (a.is_floating_point() or a.is_complex()):
        return torch.equal(a, b)
    if a.is_complex():
        a, b = torch.view_as_real(a), torch.view_as_real(b)
    limit = 5e-2 if loose else {torch.float64: 1e-9, torch.float32: 1e-4}.get(a.dtype, 2e-2)
    a, b = a.double(), b.double()
    finite = b[torch.isfinite(b)].abs()
    scale = max(1.0, finite.max().item()) if finite.numel() else 1.0
    return torch.allclose(a, b, rtol=limit, atol=limit * (scale if loose else 1.0), equal_nan=True)


def same_base(a, b, loose):
    """Memory, interpreted in the argument's dtype."""
    (mine, dtype), (its, other) = a, b
    if dtype != other or mine.shape != its.shape:
        return False
    if torch.equal(mine, its) or mine.numel() % dtype.itemsize:
        return torch.equal(mine, its)
    return same_numbers(mine.view(dtype), its.view(dtype), loose)


def difference(got, expected, loose=False):
    """(kind, text) of the first differing fact; else None."""
    for (where, kind, a), (path, its, b) in zip(got, expected):
        if (where, kind) != (path, its):
            text = f"{where} {kind} {text_of(a)} instead of {path} {its} {text_of(b)}"
            return ("raised" if "raised" in (kind, its) else "type"), text
        if kind == "base":
            same = same_base(a, b, loose)
        elif isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
            same = same_numbers(a, b, loose)
        else:
            same = type(a) is type(b) and (a == b or (a != a and b != b))
        if not same and kind == "value" and isinstance(a, float) and isinstance(b, float):
            same = abs(a - b) <= (5e-2 if loose else 1e-6) * max(1.0, abs(b))
        if not same:
            kind = where.split(" 0")[0].rstrip(" 0123456789") if "gradient" in where else kind
            return kind, f"{where}: {kind} {text_of(a)} instead of {text_of(b)}"
    if len(got) != len(expected):
        return "gradient", f"{len(got)} facts instead of {len(expected)}"
    return None


def text_of(v):
    if isinstance(v, tuple) and len(v) == 2 and isinstance(v[0], torch.Tensor):
        v = v[0].view(v[1]) if v[0].numel() % v[1].itemsize == 0 else v[0]
    return str(v.tolist() if isinstance(v, torch.Tensor) else v)[:300]


def is_loose(source):
    return "autocast" in source or "float16" in source


def compare(source, wrap, expected=None):
    """None when the compiled program behaves as in eager mode (`expected`), else (kind, text)."""
    expected = expected or history(source, lambda f: f)
    try:
        got = history(source, wrap)
    except BaseException as error:
        return "failed", f"{type(error).__name__}: {str(error)[:300]}"
    for i, (mine, its) in enumerate(zip(got, expected)):
        if found := difference(mine, its, is_loose(source)):
            return found[0], f"call {i}: {found[1]}"
    return None


def runs(source):
    try:
        expected, again = history(source, lambda f: f), history(source, lambda f: f)
    except Exception:
        return False
    return all(difference(a, b) is None for a, b in zip(expected, again))


# ------------------------------------------------------------------------------------------------------------ shrinking


def candidates(source):
    """Programs with an element less: a call, a statement, a step of a chain, a result."""
    tree = ast.parse(source)
    calls = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name.startswith("call")]
    for call in calls[::-1] if len(calls) > 1 else []:
        yield ast.unparse(ast.Module([n for n in tree.body if n is not call], []))
    functions = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name != "values"]
    yield from without_aliases(source)
    for function in functions[::-1]:
        yield from with_less(tree, function)
    for setting in ("AROUND", "ORDER", "AFTER"):
        simple = {"AROUND": "contextlib.nullcontext", "ORDER": "1", "AFTER": "False"}[setting]
        yield re.sub(rf"^{setting} = .*$", f"{setting} = {simple}", source, flags=re.MULTILINE)
    yield re.sub(r"^ORDER = .*$", "ORDER = 0", source, flags=re.MULTILINE)


def with_less(tree, function):
    for node in ast.walk(function):
        for field in ("body", "orelse"):
            body = getattr(node, field, None)
            if isinstance(body, list):
                yield from with_fewer_statements(tree, body)
    for node in ast.walk(function):
        for field, value in ast.iter_fields(node):
            if isinstance(value, ast.Tuple) and isinstance(node, ast.Return):
                for i in range(len(value.elts)):
                    removed = value.elts.pop(i)
                    yield ast.unparse(tree)
                    value.elts.insert(i, removed)
            items = enumerate(value) if isinstance(value, list) else [(None, value)]
            for i, item in items:
                if (inner := shorter(item)) is not None:
                    put(node, field, i, inner)
                    yield ast.unparse(tree)
                    put(node, field, i, item)


def put(node, field, i, value):
    if i is None:
        setattr(node, field, value)
    else:
        getattr(node, field)[i] = value


def shorter(node):
    """x.view(-1) -> x; x[0] -> x; torch.g(x) -> x; x.real -> x"""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        of_torch = isinstance(node.func.value, ast.Name) and node.func.value.id == "torch"
        return node.args[0] if of_torch and node.args else None if of_torch else node.func.value
    if isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, ast.Load):
        return None if isinstance(node.value, ast.Name) and node.value.id == "torch" else node.value
    return node.left if isinstance(node, ast.BinOp) else None


def without_aliases(source):
    """Drops v2 = v1, and replaces v2 by v1."""
    for line, new, old in re.findall(r"^( +(\w+) = ([a-z]\w*)\n)", source, re.MULTILINE):
        yield re.sub(rf"\b{new}\b", old, source.replace(line, "", 1))


def with_fewer_statements(tree, body):
    for i in reversed(range(len(body))):
        removed = body.pop(i)
        inner = [s for field in ("body", "orelse", "finalbody") for s in getattr(removed, field, [])]
        for instead in ([], inner) if inner else ([],):
            if body or instead:
                body[i:i] = instead
                yield ast.unparse(tree)
                del body[i : i + len(instead)]
        body.insert(i, removed)


def shrink(source, differs, tries=400):
    """The smallest program for which `differs` still holds, by dropping elements in turn."""
    source = ast.unparse(ast.parse(source)) + "\n"
    smaller = True
    while smaller and tries > 0:
        smaller = False
        for text in candidates(source):
            if len(text) >= len(source) or not runs(text):
                continue
            tries -= 1
            if differs(text):
                smaller, source = True, text
                break
            if tries <= 0:
                break
    return source


SHOW = """

def show(compile):
    g = compile(f)
    for make in [v for n, v in list(globals().items()) if n.startswith("call")]:
        leaves, args = make()
        result = None
        try:
            with AROUND():
                result = g(*args)
            for t in [*leaves, *args, *(result if isinstance(result, (tuple, list)) else [result])]:
                print(t, getattr(t, "dtype", ""), t.stride() if isinstance(t, torch.Tensor) else "")
            ready = [t for t in [*args, *(result if isinstance(result, (tuple, list)) else [result])]
                     if isinstance(t, torch.Tensor) and t.requires_grad]
            loss = sum((t * t * (torch.arange(1, t.numel() + 1).reshape(t.shape) / 4)).sum().real for t in ready)
            first = torch.autograd.grad(loss, leaves, create_graph=ORDER == 2, allow_unused=True) if ORDER and ready else ()
            print(first)
            if ORDER == 2:
                print(torch.autograd.grad(sum((g * g).sum().real for g in first), leaves, allow_unused=True))
        except Exception as e:
            print(type(e).__name__, e, args)


import cresset

show(lambda f: f)
print("compiled")
show(cresset.compile)
"""


def stand_alone(source):
    return source + SHOW

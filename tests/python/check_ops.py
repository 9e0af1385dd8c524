"""Runs operator rows through shape rule and reference interpreter and compares with eager: values, dtypes, strides.

Usage: check_ops.py <path of run_ops> [operator name prefix ...]. Each sample runs with static sizes and, where its
layout can be written with symbols, with one symbol a dimension. Samples that eager rejects must be refused.
"""

import collections
import itertools
import os
import subprocess
import sys
import tempfile

import torch

from op_samples import samples

DTYPES = {
    torch.bool: "bool", torch.uint8: "u8", torch.int8: "i8", torch.int16: "i16", torch.int32: "i32",
    torch.int64: "i64", torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64",
}  # fmt: skip
FROM_TEXT = {text: dtype for dtype, text in DTYPES.items()}
LIMIT = int(os.environ.get("CHECK_OPS_LIMIT", "25"))
FORMATS = {
    torch.contiguous_format: "contiguous", torch.preserve_format: "preserve", torch.channels_last: "channels_last",
    torch.channels_last_3d: "channels_last_3d",
}  # fmt: skip


class Case:
    """One call as graph text. `symbolic`: dimensions become symbols with the sizes as hints."""

    def __init__(self, name, args, symbolic):
        self.name, self.symbolic = name, symbolic
        self.tensors, self.symbols = [], 0
        self.header, self.leaves = [], []
        packet, _, overload = name.removeprefix("aten::").partition(".")
        self.op = getattr(getattr(torch.ops.aten, packet), overload or "default")
        self.values = self.filled(args)
        words = [self.argument(value, arg.type) for value, arg in zip(self.values, self.op._schema.arguments)]
        self.text = "\n".join(self.header + self.leaves + [f"{name}({', '.join(words)})", "return"])

    def filled(self, args):
        keywords = dict(args[-1]) if args and isinstance(args[-1], dict) else {}
        positional = args[:-1] if keywords else args
        out = []
        for i, argument in enumerate(self.op._schema.arguments):
            if i < len(positional):
                out.append(positional[i])
            else:
                out.append(keywords.pop(argument.name, argument.default_value))
        assert not keywords, (self.name, keywords)
        return out

    def tensor(self, t):
        sizes, strides = [str(s) for s in t.shape], [str(s) for s in t.stride()]
        if self.symbolic:
            sizes = [self.symbol(s) if s > 1 else str(s) for s in t.shape]
            strides = symbolic_strides(t, sizes)
        self.tensors.append(t)
        i = len(self.tensors) - 1
        self.leaves.append(f'%{i}: {DTYPES[t.dtype]}[{", ".join(sizes)}][{", ".join(strides)}] = input "t{i}"')
        return f"%{i}"

    def symbol(self, hint):
        self.header.append(f'symbol s{self.symbols} {hint} [0, inf] dynamic "x"')
        self.symbols += 1
        return f"s{self.symbols - 1}"

    def argument(self, value, kind):
        kind = str(kind)
        if value is None:
            return "none"
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if isinstance(value, torch.dtype) or (isinstance(value, int) and "ScalarType" in kind):
            return f"dtype:{DTYPES[value]}"
        if isinstance(value, torch.memory_format):
            return f"format:{FORMATS[value]}"
        if isinstance(value, torch.device):
            return f"device:{value}"
        if isinstance(value, torch.layout):
            return "layout:strided"
        if isinstance(value, str):
            return f'"{value}"'
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, (list, tuple)):
            if "Tensor" in kind:
                return "tensors(" + ", ".join("none" if t is None else self.tensor(t) for t in value) + ")"
            return "[" + ", ".join(str(v) for v in value) + "]"
        if isinstance(value, float) or "float" in kind:
            text = repr(float(value))
            return text
        return str(value)


def symbolic_strides(t, names):
    """Strides of a dense tensor as products of its sizes; None when they are not."""
    order = sorted(range(t.dim()), key=lambda d: (t.stride(d), t.shape[d], -d))
    strides, expected, factors = [None] * t.dim(), 1, []
    for d in order:
        if t.shape[d] != 1 and t.stride(d) != expected:
            raise NotImplementedError
        strides[d] = "*".join(factors) or "1"
        if t.shape[d] != 1:
            expected *= t.shape[d]
            factors.append(names[d])
    return strides


def eager(case, dtype=None):
    """What torch gives, or the exception it raises. `dtype`: with f16 and bf16 tensors converted to it first."""
    narrow = (torch.bfloat16, torch.float16)
    values = [v.to(dtype) if dtype and isinstance(v, torch.Tensor) and v.dtype in narrow else v for v in case.values]
    arguments = case.op._schema.arguments
    positional = [v for v, a in zip(values, arguments) if not a.kwarg_only]
    keywords = {a.name: v for v, a in zip(values, arguments) if a.kwarg_only}
    try:
        out = case.op(*positional, **keywords)
    except Exception as error:  # noqa: BLE001 - whatever eager raises
        return error
    return list(out) if isinstance(out, (tuple, list)) else [out]


def raw(t):
    """Contents in row-major order."""
    return t.contiguous().reshape(-1).clone().view(torch.uint8).numpy().tobytes() if t.numel() else b""


def tolerance(dtype):
    return {torch.bfloat16: (1.6e-2, 1e-3), torch.float16: (2e-3, 1e-4), torch.float32: (2e-5, 2e-6)}.get(
        dtype, (1e-9, 1e-10) if dtype == torch.float64 else (0, 0))


def nearer_than_eager(case, result, got, want):
    """bf16 and f16: eager rounds between steps; measured by f64, our result may be off by at most as much."""
    if got.dtype not in (torch.bfloat16, torch.float16):
        return False
    exact = eager(case, torch.float64)[result].double()
    return bool((got.double() - exact).abs().max() <= (want.double() - exact).abs().max())


def compare(case, expected, kinds, blob, offset, problems, types_only=False):
    label = describe(case)
    if len(expected) != len(kinds):
        problems["results"].append(f"{label}: {len(kinds)} results, eager has {len(expected)}")
        return offset, False
    for i, (want, kind) in enumerate(zip(expected, kinds)):
        dtype_text, sizes, strides = kind.split(" ")
        dtype = FROM_TEXT[dtype_text]
        sizes = [int(s) for s in sizes.split(",") if s]
        strides = [int(s) for s in strides.split(",") if s]
        count = 1
        for s in sizes:
            count *= s
        got = torch.empty(0, dtype=dtype)
        if count and not types_only:
            size = count * dtype.itemsize
            got = torch.frombuffer(bytearray(blob[offset:offset + size]), dtype=dtype)
            offset += size
        got = want if types_only else got.reshape(sizes)
        if want is None or dtype != want.dtype:
            problems["dtype"].append(f"{label}: {dtype}, eager {want if want is None else want.dtype}")
        elif sizes != list(want.shape):
            problems["sizes"].append(f"{label}: {sizes}, eager {list(want.shape)}")
        else:
            if any(a != b for a, b, s in zip(strides, want.stride(), sizes) if s > 1 and want.numel()):
                problems["strides"].append(f"{label}: {sizes} {strides}, eager {want.stride()}")
            rtol, atol = tolerance(dtype)
            close = torch.allclose(got.double(), want.double(), rtol=rtol, atol=atol, equal_nan=True)
            if not close and not nearer_than_eager(case, i, got, want):
                worst = (got.double() - want.double()).abs().max().item() if want.numel() else 0
                problems["values"].append(f"{label}: differs by {worst}: {got.flatten()[:4].tolist()} eager {want.flatten()[:4].tolist()}")
    return offset, True


def describe(case):
    def short(v):
        if isinstance(v, torch.Tensor):
            return f"{DTYPES[v.dtype]}{list(v.shape)}/{list(v.stride())}"
        return str(v)
    return f"{case.name}{'~' if case.symbolic else ''}({', '.join(short(v) for v in case.values)})"


def build(prefixes):
    for name, args in samples():
        if prefixes and not any(name.removeprefix("aten::").startswith(p) for p in prefixes):
            continue
        for symbolic in (False, True):
            try:
                yield Case(name, args, symbolic)
            except NotImplementedError:
                pass


def run(tool, cases):
    with tempfile.TemporaryDirectory() as folder:
        inputs, outputs = os.path.join(folder, "in"), os.path.join(folder, "out")
        with open(inputs, "wb") as f:
            for case in cases:
                for t in case.tensors:
                    f.write(raw(t))
        text = "".join(case.text + "\n---\n" for case in cases)
        done = subprocess.run([tool, inputs, outputs], input=text, capture_output=True, text=True, check=True)
        with open(outputs, "rb") as f:
            return done.stdout.splitlines(), f.read()


def main():
    tool, prefixes = sys.argv[1], sys.argv[2:]
    torch.manual_seed(0)
    cases = list(build(prefixes))
    lines, blob = run(tool, cases)
    assert len(lines) == len(cases), (len(lines), len(cases))
    problems, refused, good, offset = collections.defaultdict(list), collections.Counter(), 0, 0
    for case, line in zip(cases, lines):
        want = eager(case)
        status, *kinds = line.split("\t")
        if status.startswith("error"):
            problems["error"].append(f"{describe(case)}: {status}")
        elif status.startswith("fallback"):
            if not isinstance(want, Exception):
                refused[f"{case.name}: {status.removeprefix('fallback ')}"] += 1
        elif isinstance(want, Exception):
            problems["accepts"].append(f"{describe(case)}: eager says {str(want)[:100]}")
            if status.startswith("shape"):
                continue
            sizes = [k.split(" ") for k in kinds]
            for dtype_text, shape, _ in sizes:
                count = 1
                for s in shape.split(","):
                    count *= int(s) if s else 1
                offset += count * FROM_TEXT[dtype_text].itemsize
        else:
            offset, _ = compare(case, want, kinds, blob, offset, problems, status.startswith("shape"))
            good += 1
    for kind, found in problems.items():
        print(f"== {kind}: {len(found)}")
        for text in itertools.islice(found, LIMIT):
            print("  ", text)
    print("== refused though eager accepts (goes through ATen)")
    for text, count in sorted(refused.items()):
        print("  ", count, text)
    print(f"{len(cases)} cases, {good} compared, {sum(map(len, problems.values()))} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

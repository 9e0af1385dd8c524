"""Runs operator rows through shape rule and reference interpreter and compares with eager: values, dtypes, strides.

Each sample runs with static sizes and, where symbols can express its layout, with a symbol for each dimension. Calls
rejected by eager mode must be refused. Sources of samples: op_samples.py, or the calls that reach the backend while
torch's op_db or the model zoo runs.
"""

import argparse
import collections
import contextlib
import math
import os
import subprocess
import sys
import tempfile

import op_samples
import recorded_ops
import torch

DTYPES = {
    torch.bool: "bool", torch.uint8: "u8", torch.int8: "i8", torch.int16: "i16", torch.int32: "i32",
    torch.int64: "i64", torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64",
}  # fmt: skip
FROM_TEXT = {text: dtype for dtype, text in DTYPES.items()}
DTYPE_CODES = {0: torch.uint8, 3: torch.int32, 4: torch.int64, 6: torch.float32, 7: torch.float64}  # c10::ScalarType
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
        words = [self.argument(v, a.type, a.name == "dtype") for v, a in zip(self.values, self.op._schema.arguments)]
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

    def argument(self, value, kind, argument_is_dtype):
        kind = str(kind)
        if value is None:
            return "none"
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if isinstance(value, int) and argument_is_dtype:
            return f"dtype:{DTYPES[DTYPE_CODES[value]]}"
        if isinstance(value, torch.dtype):
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
    """Eager's result or its exception. `dtype`: f16 and bf16 tensors are converted to it first."""
    narrow = (torch.bfloat16, torch.float16)
    values = [v.to(dtype) if dtype and isinstance(v, torch.Tensor) and v.dtype in narrow else v for v in case.values]
    arguments = case.op._schema.arguments
    positional = [v for v, a in zip(values, arguments) if not a.kwarg_only]
    keywords = {a.name: v for v, a in zip(values, arguments) if a.kwarg_only}
    try:
        out = case.op(*positional, **keywords)
    except Exception as error:
        return error
    return list(out) if isinstance(out, (tuple, list)) else [out]


def raw(t):
    """Contents in row-major order."""
    return (
        t.reshape(-1).clone(memory_format=torch.contiguous_format).view(torch.uint8).numpy().tobytes()
        if t.numel()
        else b""
    )


def tolerance(dtype):
    return {torch.bfloat16: (1.6e-2, 1e-3), torch.float16: (2e-3, 1e-4), torch.float32: (2e-5, 2e-6)}.get(
        dtype, (1e-9, 1e-10) if dtype == torch.float64 else (0, 0)
    )


def nearer_than_eager(case, result, got, want):
    """bf16 and f16: eager rounds between steps; measured by f64, our result may be off by at most as much."""
    if got.dtype not in (torch.bfloat16, torch.float16):
        return False
    exact = eager(case, torch.float64)[result].double()
    return bool((got.double() - exact).abs().max() <= (want.double() - exact).abs().max())


def compare(case, expected, kinds, contents, problems):
    """`contents` None: only types are compared."""
    label, offset = describe(case), 0
    if len(expected) != len(kinds):
        problems["results"].append(f"{label}: {len(kinds)} results, eager has {len(expected)}")
        return
    for i, (want, kind) in enumerate(zip(expected, kinds)):
        dtype_text, sizes, strides = kind.split(" ")
        dtype = FROM_TEXT[dtype_text]
        sizes, strides = ([int(s) for s in text.split(",") if s] for text in (sizes, strides))
        size = math.prod(sizes) * dtype.itemsize
        start, offset = offset, offset + size
        if want is None or dtype != want.dtype:
            problems["dtype"].append(f"{label}: {dtype}, eager {want if want is None else want.dtype}")
            continue
        if sizes != list(want.shape):
            problems["sizes"].append(f"{label}: {sizes}, eager {list(want.shape)}")
            continue
        if any(a != b for a, b, s in zip(strides, want.stride(), sizes) if s > 1 and want.numel()):
            problems["strides"].append(f"{label}: {sizes} {strides}, eager {want.stride()}")
        if contents is None or not size:
            continue
        got = torch.frombuffer(bytearray(contents[start:offset]), dtype=dtype).reshape(sizes)
        rtol, atol = tolerance(dtype)
        close = torch.allclose(got.double(), want.double(), rtol=rtol, atol=atol, equal_nan=True)
        if not close and not nearer_than_eager(case, i, got, want):
            pair = f"{got.flatten()[:4].tolist()} eager {want.flatten()[:4].tolist()}"
            problems["values"].append(f"{label}: off by {(got.double() - want.double()).abs().max().item()}: {pair}")


def describe(case):
    def short(v):
        if isinstance(v, torch.Tensor):
            return f"{DTYPES[v.dtype]}{list(v.shape)}/{list(v.stride())}"
        return str(v)

    return f"{case.name}{'~' if case.symbolic else ''}({', '.join(short(v) for v in case.values)})"


SOURCES = {"samples": op_samples.samples, "opdb": recorded_ops.from_opdb, "models": recorded_ops.from_models}
# Uninitialized memory has no values to compare; as_strided reads beyond the elements of its argument.
TYPES_ONLY = {"empty.memory_format", "empty_strided", "empty_like", "new_empty", "new_empty_strided", "as_strided"}


def build(samples, prefixes):
    for name, args in samples:
        if prefixes and not any(name.removeprefix("aten::").startswith(p) for p in prefixes):
            continue
        for symbolic in (False, True):
            with contextlib.suppress(NotImplementedError):
                yield Case(name, args, symbolic)


def known_rows(tool):
    dump = os.path.join(os.path.dirname(tool), "dump_ops")
    lines = subprocess.run([dump], check=True, capture_output=True, text=True).stdout.splitlines()
    return {line.split("\t")[1].split("(")[0] for line in lines}


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


def contents_size(kinds):
    total = 0
    for dtype_text, sizes, _ in (kind.split(" ") for kind in kinds):
        total += math.prod(int(s) for s in sizes.split(",") if s) * FROM_TEXT[dtype_text].itemsize
    return total


def check(cases, lines, blob):
    """(problems by kind, refusals, number compared)."""
    problems, refused, good, offset = collections.defaultdict(list), collections.Counter(), 0, 0
    for case, line in zip(cases, lines):
        status, *kinds = line.split("\t")
        word, _, rest = status.partition(" ")
        if word == "error":
            problems["error"].append(f"{describe(case)}: {rest}")
            continue
        want = eager(case)
        if word == "fallback":
            if not isinstance(want, Exception):
                refused[f"{case.name}: {rest}"] += 1
            continue
        if isinstance(want, Exception):
            problems["accepts"].append(f"{describe(case)}: eager says {str(want)[:100]}")
        else:
            contents = None if word == "shape" else blob[offset:]
            types_only = case.name.removeprefix("aten::") in TYPES_ONLY
            compare(case, want, kinds, None if types_only else contents, problems)
            good += 1
        if word == "ok":
            offset += contents_size(kinds)
    return problems, refused, good


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool", help="path of run_ops")
    parser.add_argument("prefixes", nargs="*", help="names of operators to check, without aten::")
    parser.add_argument("--source", choices=SOURCES, default="samples")
    parser.add_argument("--limit", type=int, default=25, help="problems of a kind to print")
    options = parser.parse_args()
    torch.manual_seed(0)
    rows = known_rows(options.tool)
    samples = ((name, args) for name, args in SOURCES[options.source]() if name in rows)
    cases = list(build(samples, options.prefixes))
    lines, blob = run(options.tool, cases)
    assert len(lines) == len(cases), (len(lines), len(cases))
    problems, refused, good = check(cases, lines, memoryview(blob))
    for kind, found in problems.items():
        print(f"== {kind}: {len(found)}")
        for text in found[: options.limit]:
            print("  ", text[:300])
    print("== refused though eager accepts (goes through ATen)")
    for text, count in sorted(refused.items()):
        print("  ", count, text)
    print(f"{len(cases)} cases, {good} compared, {sum(map(len, problems.values()))} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

"""Random programs about views, writes and aliasing, by seed.

A program makes new arguments for each of a few calls, in other sizes and layouts. `f` takes chains of views of them,
writes through some, reads others, and returns a random choice. Each statement is tried in eager mode when it is added.
A raising statement is kept rarely: most programs do something, and exceptions occur all the same. Statements with
machine-dependent results are excluded: writes to memory that overlaps itself or the read operand.
"""

from __future__ import annotations

import random
import re
import warnings

import torch
from view_program_compare import PRELUDE, load
from view_program_grammar import READS, VIEWS, WRITES, layouts

KINDS = ["float64"] * 5 + ["complex128"] * 3 + ["int64"] + ["float32"] * 2
INEXACT = ("sin", "sigmoid", "tanh", "/ 2", "div_", "mean", "@", "linear", "lerp", "abs")


class Program:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.kind = self.random.choice(KINDS)
        self.order = self.random.choice([0, 0, 0, 1, 1, 1, 2, 2]) if self.kind != "int64" else 0
        self.autocast = self.kind == "float32" and self.random.random() < 0.6
        around = ["torch.no_grad"] * 3 + ["torch.inference_mode"] * 2 + ["contextlib.nullcontext"] * 55
        self.around = self.random.choice(around)
        if self.autocast and self.random.random() < 0.4:
            self.around = "lambda: torch.autocast('cpu', dtype=torch.bfloat16)"
        self.after = self.order > 0 and self.random.random() < 0.1
        self.lines, self.names, self.depth = [], 0, 0
        self.bits, self.raised, self.scope = False, False, None
        self.calls = self.make_calls()
        self.inputs = ", ".join(self.arguments)

    def chance(self, p):
        return self.random.random() < p

    # ---- arguments

    def make_calls(self):
        rank = self.random.choice([0, 1, 1, 2, 2, 2, 2, 3, 3, 4, 4])
        sizes = tuple(self.random.choice([2, 3, 4]) for _ in range(rank))
        self.arguments = ["a", "b"] if self.chance(0.4) else ["a"]
        self.aliased = len(self.arguments) == 2 and self.random.choice(
            [None, "a.detach()", "a[:1]", "a.mT", "a.view(a.shape)"]
        )
        self.histories = [self.random.choice(["leaf", "history", "history", "history", "none"]) for _ in "ab"]
        way = self.random.random()
        calls = []
        for i in range(self.random.choice([2, 3, 3, 4])):
            if i > 1:  # the second call is like the first
                sizes = tuple(self.another_size(s) for s in sizes)
                way = way if self.chance(0.5) else self.random.random()
            calls.append(self.make_call(i, sizes, way))
        return calls

    def another_size(self, size):
        if self.chance(0.5):
            return size
        return 0 if self.chance(0.08) else 1 if self.chance(0.3) else self.random.randint(2, 5)

    def make_call(self, number, sizes, way):
        lines, leaves = [], []
        for position, name in enumerate(self.arguments):
            if position and self.aliased:
                lines.append(f"{name} = {self.aliased}")
                continue
            ways = layouts(sizes, self.kind)
            text, made, kind = ways[int((way + 0.37 * position) % 1 * len(ways))]
            value = f"values({made}, torch.{kind}, {number + 10 * position})"
            if self.order and self.histories[position] != "none":
                lines.append(f"leaf_{name} = {value}.requires_grad_()")
                leaves.append(f"leaf_{name}")
                value = f"leaf_{name}" if self.histories[position] == "leaf" else f"(leaf_{name} * 1)"
            lines.append(f"{name} = {text.format(value)}")
        lines.append(f"return [{', '.join(leaves)}], [{', '.join(self.arguments)}]")
        return f"def call{number}():\n    " + "\n    ".join(lines) + "\n"

    # ---- strings

    def new(self):
        self.names += 1
        return f"v{self.names}"

    def function(self, lines, last):
        body = "\n".join("    " + line for line in [*lines, last])
        return f"def f({self.inputs}):\n{body}\n"

    def source(self, lines, last):
        settings = f"AROUND = {self.around}\nORDER = {self.order}\nAFTER = {self.after}\n"
        return "\n\n".join([PRELUDE, *self.calls, settings, self.function(lines, last)])

    def run(self, lines):
        """The variables at the end of each call; raises the exception of the first raising call."""
        last = "    " * self.depth + "return dict(locals())"
        scope = self.scope = self.scope or load(self.source([], "pass"))
        exec(compile(self.function(lines, last), "<program>", "exec"), scope)
        found = []
        for i in range(len(self.calls)):
            _, args = scope[f"call{i}"]()
            with scope["AROUND"]():
                found.append(scope["f"](*args))
        return found

    def try_lines(self, *lines, may_raise=0.05):
        """Adds the lines if they run in eager mode; raising lines, sometimes."""
        lines = ["    " * self.depth + line for line in lines]
        try:
            self.known = self.run(self.lines + lines)
        except Exception:
            if not self.chance(may_raise) or self.depth or len(self.lines) < 2:
                return False
            return self.attempt(lines)
        self.lines += lines
        return True

    def attempt(self, lines):
        """Lines with an exception in some of the calls, and its handling."""
        if self.chance(0.5):
            self.lines += lines
            self.raised = True
            return True
        name = self.new()
        whole = ["try:", *("    " + line for line in lines), f"    {name} = 'none'"]
        whole += ["except Exception as e:", f"    {name} = str(e)"]
        return self.try_lines(*whole, may_raise=0)

    def tensors(self):
        known = {n for call in self.known for n in call} & set(self.known[0])
        return [n for n in known if all(isinstance(call.get(n), torch.Tensor) for call in self.known)]

    def name(self):
        names = sorted(self.tensors(), key=lambda n: (len(n), n))
        return self.random.choice(names + names[-2:])

    def fill(self, template, x, rank, n="?"):
        d, e = (self.random.randint(-rank, rank - 1) if rank else 0 for _ in "de")
        p = list(range(rank))
        self.random.shuffle(p)
        y = self.name()
        return template.format(x=x, y=y, d=d, e=e, p=p, m=", ".join(["-1"] * rank) or "-1", n=n)

    def row(self, table, avoid=()):
        return self.random.choice(table[self.random.choice([k for k in table if k not in avoid])])

    # ---- statements

    def chain(self, steps):
        """A variable that holds a view of a view of ..., made by as many statements as need a name for it."""
        x = self.name()
        lines = len(self.lines)
        for _ in range(steps):
            for _ in range(6):
                rank = self.known[0][x].dim()
                avoid = ["complex"] if self.kind == "int64" else []
                template = self.row(VIEWS, avoid if self.chance(0.7) or self.exact() else [*avoid, "bits"])
                if ("torch.int" in template or self.is_bits_of_int(template)) and not self.exact():
                    continue
                name = self.new()
                if self.try_lines(f"{name} = {self.fill(template, x, rank)}", may_raise=0.01):
                    self.bits = self.bits or "torch.int" in template or self.is_bits_of_int(template)
                    if self.raised or name not in self.tensors():
                        return x
                    x = name
                    break
        if self.chance(0.6):
            self.fold(lines)
        return x

    def is_bits_of_int(self, template):
        """Integers as floats may be NaNs, whose bits are the machine's after arithmetic."""
        return self.kind == "int64" and "torch.float" in template

    def exact(self):
        return not any(word in line for line in self.lines for word in INEXACT)

    def fold(self, first):
        """v2 = v1.t(); v3 = v2[0] -> v3 = v1.t()[0], where no other statement needs v2."""
        i = first
        while i + 1 < len(self.lines):
            m = re.fullmatch(r"\s*(v\d+) = (.*)", self.lines[i])
            here = len(re.findall(rf"\b{m[1]}\b", self.lines[i + 1])) if m else 0
            if m and here == 1 and f" = {m[1]}" in self.lines[i + 1]:
                self.lines[i : i + 2] = [re.sub(rf"\b{m[1]}\b", lambda _, text=m[2]: text, self.lines[i + 1])]
            else:
                i += 1
        self.known = self.run(self.lines)

    def write(self):
        x = self.chain(self.random.choice([0, 0, 1, 1, 2]))
        for _ in range(8):
            if self.random.random() < 0.35:
                template = self.random.choice(WRITES["numbers"])
            else:
                template = self.row(WRITES)
            if (self.bits and any(word in template for word in INEXACT)) or not self.may_write(template, x):
                continue
            text = self.fill(template, x, self.known[0][x].dim(), n=x)
            if template.startswith("{x}.") and text.endswith(")") and self.chance(0.2):
                text = f"{self.new()} = {text}"  # the tensor itself
            if self.try_lines(text):
                return

    def may_write(self, template, x):
        """Excludes elements in the same place, and a part of the read elements, unless eager mode refuses the write."""
        for call in self.known:
            if overlaps_itself(call[x]):
                return False
            if "{y}" in template or "{x}.narrow" in template:
                others = [call[n] for n in self.tensors()]
                if any(partly_the_same(call[x], t) for t in others):
                    return False
        return True

    def read(self):
        x = self.chain(self.random.choice([0, 0, 0, 1, 2]))
        for _ in range(8):
            template = self.row(READS, () if self.autocast else ("products",))
            if self.autocast and self.chance(0.5):
                template = self.random.choice(READS["products"])
            if self.bits and any(word in template for word in INEXACT):
                continue
            if self.try_lines(f"{self.new()} = {self.fill(template, x, self.known[0][x].dim())}"):
                return

    def context(self):
        headers = ["with torch.no_grad():", "with torch.enable_grad():"]
        if self.autocast:
            headers = [
                "with torch.autocast('cpu', dtype=torch.bfloat16):",
                "with torch.autocast('cpu', enabled=False):",
            ]
        before = len(self.lines)
        self.lines.append("    " * self.depth + self.random.choice(headers))
        self.depth += 1
        for _ in range(self.random.randint(1, 2)):
            self.random.choice([self.read, self.write])()
            if self.raised:
                break
        self.depth -= 1
        if len(self.lines) == before + 1:
            del self.lines[before:]

    def hook(self):
        x = self.name()
        if any(call[x]._is_view() and call[x]._version for call in self.known):  # torch itself may crash
            return
        hook = self.random.choice(["lambda g: g * 2", "lambda g: g + 1", "lambda g: None", "lambda g: g.mul(g)"])
        self.try_lines(f"{x}.register_hook({hook})", may_raise=0)

    def checkpoint(self):
        """A function of a tensor with recomputation in the backward pass."""
        x, name, result = self.name(), self.new(), self.new()
        rank = self.known[0][x].dim()
        lines = [f"def {name}(t):"]
        step = self.fill(self.row(VIEWS, ("bits", "complex")), "t", rank)
        lines.append(f"    u = {step}{self.random.choice([' * 2', '.sin()', ' * 1', ''])}")
        for _ in range(self.random.choice([0, 1, 1, 2])):
            lines.append("    " + self.fill(self.random.choice(WRITES["numbers"] + WRITES["assignments"][:3]), "u", 0))
        lines.append(f"    return {self.random.choice(['u', 'u * u', 'u.sin()', '(u, t * 2)[0]'])}")
        call = f"{result} = checkpoint({name}, {x}, use_reentrant=False)"
        self.try_lines(*lines, call, may_raise=0)

    # ---- the whole

    def statement(self):
        ways = [self.read, self.read, self.write, self.write, self.write]
        if self.depth == 0 and self.chance(0.15):
            ways = [self.context]
        elif self.order and self.depth == 0 and self.chance(0.15):
            ways = [self.hook, self.checkpoint]
        self.random.choice(ways)()

    def generate(self):
        try:
            self.known = self.run([])
        except Exception:  # a layout impossible for these sizes
            return None
        if self.chance(0.8):
            self.chain(self.random.randint(1, 4))
        for _ in range(self.random.randint(2, 5)):
            if self.raised:
                break
            self.statement()
        known = [n for n in sorted(self.known[0]) if not callable(self.known[0][n])]
        results = self.random.sample(known, min(len(known), self.random.randint(1, 3)))
        newest = max(known, key=lambda n: (len(n), n))
        if newest not in results:
            results.append(newest)
        return self.source(self.lines, f"return {', '.join(results)},")


def places(t):
    """The byte positions of the elements of `t`."""
    at = torch.full(t.shape, t.storage_offset())
    for d, (size, stride) in enumerate(zip(t.shape, t.stride())):
        at += (torch.arange(size) * stride).reshape([-1] + [1] * (t.dim() - d - 1))
    return at * t.element_size()


def overlaps_itself(t):
    at = places(t)
    return at.numel() != at.unique().numel()


def partly_the_same(x, y):
    """Whether elements of `x` lie in elements of `y`, and not each at the same index of both."""
    if x.untyped_storage().data_ptr() != y.untyped_storage().data_ptr():
        return False
    mine, its = places(x), places(y)
    if x.shape == y.shape and x.element_size() == y.element_size() and torch.equal(mine, its):
        return (x.is_conj(), x.is_neg()) != (y.is_conj(), y.is_neg())
    taken = set(mine.flatten().tolist())
    steps = range(0, max(x.element_size(), y.element_size()), min(x.element_size(), y.element_size()))
    small, large = (mine, its) if x.element_size() < y.element_size() else (its, mine)
    covered = {at + step for at in large.flatten().tolist() for step in steps}
    return bool(taken & set(its.flatten().tolist())) or bool(covered & set(small.flatten().tolist()))


def generate(seed):
    """The source of a program: the first valid program from the seed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for turn in range(100):
            source = Program(f"{seed} {turn}").generate()
            if source is not None:
                return source
    raise AssertionError(f"no program of seed {seed} runs in eager mode")

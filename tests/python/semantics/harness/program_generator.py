"""Random Python programs on tensors, by seed.

A program is the source of a module: state in globals, classes and helpers, `make()` for a world, and `f(w, x)`. The
generator knows the kind of each variable (a number, a matrix of n x 4, a vector of 4, a scalar tensor, a list of
numbers, ...), so most statements raise nothing; some raise on purpose, inside and outside `try`. Tensors are float64,
and conditions on data compare with odd constants: rounding decides nothing. `program_compare` runs them.
"""

from __future__ import annotations

import random
import re

from program_grammar import EXPRESSIONS, MAKE, PRELUDE


class Program:
    """Writes a program. `kinds` maps a variable to its kind: int, float, M, V, S, ints, dict, box, str, fn."""

    def __init__(self, seed, avoid=()):
        self.random = random.Random(seed)
        self.lines = []
        self.names = 0
        self.depth = 0
        self.avoid = set(avoid)
        self.kinds = {"x": "M"}
        self.fixed = set()  # never assigned: loop variables, variables of enclosing functions
        self.in_loop = self.in_function = 0

    # ---- strings

    def line(self, text):
        self.lines.append("    " * (self.depth + 1) + text)

    def new(self):
        self.names += 1
        return f"v{self.names}"

    def block(self, write, count=(1, 3)):
        """An indented block with names of its own."""
        kinds = dict(self.kinds)
        self.depth += 1
        before = len(self.lines)
        write() if callable(write) else None
        for _ in range(self.random.randint(*count)):
            self.statement()
        if len(self.lines) == before:
            self.line("pass")
        self.depth -= 1
        self.kinds = kinds

    def pick(self, *options):
        return self.random.choice(options)

    def pick_filled(self, *templates):
        return self.fill(self.random.choice(templates), 3)

    def known(self, *kinds):
        return [name for name, kind in self.kinds.items() if kind in kinds]

    def variable(self, kind, default):
        known = self.known(kind)
        return self.random.choice(known) if known and self.random.random() < 0.9 else default

    # ---- expressions

    def fill(self, template, depth):
        """The template with each <kind> replaced by an expression of its kind."""
        return re.sub(r"<(\w+)>", lambda m: self.expression(m[1], depth - 1), template)

    def expression(self, kind, depth=3):
        if kind in ("literal", "small", "real"):
            return {
                "literal": lambda: str(self.random.randint(-2, 6)),
                "small": lambda: str(self.random.randint(0, 4)),
                "real": lambda: f"{self.random.uniform(-1, 1):.4f}",
            }[kind]()
        leaf, templates = EXPRESSIONS[kind]
        if depth <= 0 or self.random.random() < 0.2:
            known = self.known(kind)
            if known and self.random.random() < 0.8:
                return self.random.choice(known)
            return self.fill(self.random.choice(leaf), 1)
        return self.fill(self.random.choice(templates), depth)

    def int(self, depth=2):
        return self.expression("int", depth)

    def condition(self, depth=2):
        return self.expression("condition", depth)

    def ints(self):
        return self.expression("ints", 1)

    def box(self):
        return self.expression("box", 0)

    def matrix(self, depth=2):
        return self.expression("M", depth)

    def vector(self, depth=1):
        return self.expression("V", depth)

    def scalar(self, depth=1):
        return self.expression("S", depth)

    def text(self):
        return self.expression("str", 2)

    def value(self):
        """Any value, with its kind."""
        kind = self.pick("int", "int", "M", "M", "V", "S", "ints", "str", "box")
        return kind, self.expression(kind, 2)

    def anything(self):
        return self.expression("any", 3)

    # ---- statements

    def statement(self):
        simple = [
            self.assign,
            self.assign,
            self.assign,
            self.assign_again,
            self.write_world,
            self.write_world,
            self.write_container,
            self.write_container,
            self.write_tensor,
            self.unpack,
            self.say,
        ]
        nested = [
            self.branch,
            self.branch,
            self.loop,
            self.loop,
            self.counted_while,
            self.attempt,
            self.attempt,
            self.context,
            self.function,
            self.generator,
            self.pattern,
            self.leave,
        ]
        room = self.depth < 3 and len(self.lines) < 45
        self.random.choice(simple + (nested if room else []))()

    def assign(self):
        kind, text = self.value()
        name = self.new()
        self.line(f"{name} = {text}")
        self.kinds[name] = kind

    def assign_again(self):
        names = [n for n in self.known("int", "M") if n not in self.fixed and n != "x"]
        if not names:
            return self.assign()
        name = self.random.choice(names)
        if self.kinds[name] == "int":
            self.line(self.pick(f"{name} += {self.int(1)}", f"{name} = {self.int()}", f"{name} -= 1"))
        else:
            self.line(self.pick(f"{name} = {self.matrix()}", f"{name} = {name} * 0.5", f"{name} += {self.matrix(1)}"))

    def write_world(self):
        self.line(
            self.pick(
                f"w.log.append({self.anything()})",
                f"w.n = {self.int()} % 11",
                "w.n += 1",
                f"w.last = {self.anything()}",
                f"w.flag = bool({self.condition(1)})",
                f"{self.box()}.bump({self.int(0)})",
                f"{self.box()}.value = {self.int(1)}",
                f"{self.box()}.extra = {self.value()[1]}",
                "counter += 1",
                f"table['a'] = {self.int(1)}",
                f"table['b'] = {self.int(1)} % 5",
                f"setattr(w, 'note', {self.text()})",
                "w.__dict__.pop('note', None)",
                "del w.last; w.last = 0",
            )
        )

    def write_container(self):
        items = self.variable("ints", "w.items")
        self.line(
            self.pick(
                f"{items}.append({self.int(1)})",
                f"{items}.insert(0, {self.int(0)})",
                f"{items}.sort()",
                f"{items}.reverse()",
                f"{items}[:] = [{self.int(0)}, {self.int(0)}]",
                f"{items} and {items}.pop()",
                f"{items}.extend(i + 1 for i in {self.ints()}[:2])",
                f"w.items[0:1] = [{self.int(0)}]",
                "w.items[-1:] = []",
                f"w.names['r'] = {self.int(1)}",
                f"w.names.update(p={self.int(1)})",
                "w.names.pop('r', None)",
                "w.names.setdefault('s', w.n)",
                f"w.seen.add({self.int(1)})",
                "w.seen.discard(1)",
                f"w.queue.append({self.int(0)})",
                "w.queue.rotate(1)",
                f"w.items += [{self.int(0)}]",
                f"w.box.items.append({self.int(0)})",
                "w.names |= {'t': 1}",
            )
        )

    def write_tensor(self):
        target = self.variable("M", "x")
        self.line(
            self.pick(
                f"{target} = {target}.clone(); {target}.add_({self.int(0)})"
                if target not in self.fixed
                else "w.weight.mul_(0.5)",
                f"x.mul_({self.random.uniform(0.5, 1.5):.2f})",
                f"w.weight.add_({self.vector(0)}.detach() * 0.1)",
                f"x[0] = {self.vector(1)}",
                f"x[:, 1] += {self.int(0)}",
                f"w.weight = {self.vector(1)}.clone()",
            )
        )

    def unpack(self):
        a, b = self.new(), self.new()
        self.line(
            self.pick(
                f"{a}, {b} = {self.int(1)}, {self.int(1)}",
                f"{a}, *_, {b} = [*{self.ints()}, 1, 2]",
                f"({a}, {b}) = Pair({self.int(1)}, {self.int(0)})",
                f"{a} = {b} = {self.int(1)}",
                f"{a} = ({b} := {self.int(1)}) + 1",
            )
        )
        self.kinds[a] = self.kinds[b] = "int"

    def say(self):
        self.line(self.pick(f"print({self.int(1)}, {self.text()}, file=out)", f"out.write({self.text()} + ';')"))

    def branch(self):
        self.line(f"if {self.condition()}:")
        self.block(None)
        if self.random.random() < 0.3:
            self.line(f"elif {self.condition(1)}:")
            self.block(None)
        if self.random.random() < 0.5:
            self.line("else:")
            self.block(None)

    def loop(self):
        name = self.new()
        over = self.pick(
            f"range({self.random.randint(1, 3)})",
            f"list({self.ints()})[:3]",
            "list(w.names)",
            "tuple(w.names.items())[:2]",
            f"numbers({self.random.randint(1, 3)})",
            f"rows({self.matrix(1)}, w.log)",
            f"{self.matrix(1)}",
            f"enumerate({self.ints()}[:2])",
            f"zip({self.ints()}[:2], {self.ints()})",
            f"(i * i for i in {self.ints()}[:3])",
            "reversed(w.items[:2])",
            "iter(w.box)",
        )
        numeric = over.startswith(("range", "numbers", "reversed", "(i", "list(w.items", "iter"))
        kind = "int" if numeric else "V" if over.startswith(("rows", "x")) else None
        self.line(f"for {name} in {over}:")

        def start():
            if kind:
                self.kinds[name] = kind
                self.fixed.add(name)
            if self.random.random() < 0.2:
                self.line(f"if {self.condition(1)}: {self.pick('break', 'continue')}")

        self.in_loop += 1
        self.block(start)
        self.in_loop -= 1
        if self.random.random() < 0.2:
            self.line("else:")
            self.block(None)

    def counted_while(self):
        name = self.new()
        self.line(f"{name} = 0")
        self.line(f"while {name} < {self.random.randint(1, 3)}:")

        def start():
            self.line(f"{name} += 1")
            self.kinds[name] = "int"
            self.fixed.add(name)

        self.block(start)

    def attempt(self):
        self.line("try:")

        def fail():
            if self.random.random() < 0.6:
                self.line(
                    self.pick(
                        f"w.names[{self.pick('p', 'nowhere')!r}] += 1",
                        f"{self.ints()}[{self.random.randint(0, 4)}]",
                        f"1 / {self.int(1)}",
                        f"if {self.condition(1)}: raise ValueError({self.int(1)})",
                        "w.absent",
                        "int('q')",
                        "torch.zeros(2) + torch.zeros(3)",
                        "next(iter(()))",
                    )
                )

        self.block(fail)
        if self.random.random() < 0.7:
            self.line(
                self.pick(
                    "except (KeyError, IndexError, ZeroDivisionError) as e:",
                    "except Exception as e:",
                    "except ValueError as e:",
                    "except (RuntimeError, AttributeError, StopIteration, ValueError) as e:",
                )
            )
            self.block(lambda: self.line("w.log.append((type(e).__name__, str(e)[:20]))"))
            if self.random.random() < 0.3:
                self.line("else:")
                self.block(None, (1, 1))
        self.line("finally:")
        self.block(None, (1, 2))

    def context(self):
        name = self.new()
        self.line(
            self.pick(
                f"with Manager(w.log, {name!r}):",
                f"with Manager(w.log, {name!r}, swallow=True):",
                f"with managed(w.log, {name!r}):",
                "with contextlib.suppress(KeyError, ZeroDivisionError):",
                "with torch.no_grad():",
                f"with contextlib.ExitStack() as {name}:",
            )
        )
        self.block(None)

    def function(self):
        name, cell = self.new(), self.new()
        self.line(f"{cell} = {self.int(1)}")
        self.kinds[cell] = "int"
        outer = dict(self.kinds), set(self.fixed)
        arg = self.new()
        self.line(f"def {name}({arg}, k={self.random.randint(0, 3)}):")
        self.fixed |= set(self.kinds)

        def start():
            self.line(f"nonlocal {cell}")
            self.line(f"{cell} += k")
            self.kinds[arg] = "M"

        in_loop, self.in_loop = self.in_loop, 0
        self.in_function += 1
        self.depth += 1
        start()
        for _ in range(self.random.randint(0, 2)):
            self.statement()
        self.line(f"return {arg} * {cell} + {self.int(0)}")
        self.depth -= 1
        self.in_function -= 1
        self.in_loop = in_loop
        self.kinds, self.fixed = outer
        result = self.new()
        self.line(f"{result} = {name}({self.matrix(1)}{self.pick('', ', 2', ', k=1')})")
        if self.random.random() < 0.5:
            self.line(f"{result} = {name}({result})")
        self.kinds[result] = "M"

    def generator(self):
        name, total = self.new(), self.new()
        self.line(f"def {name}(limit):")
        self.line("    for i in range(limit):")
        self.line(f"        {self.pick('w.log.append(i)', 'w.n += 1', 'pass')}")
        self.line(f"        yield {self.pick('i', 'i + w.n', f'i * {self.int(0)}', 'x * i', 'float(x.mean()) + i')}")
        self.line(f"{total} = [{self.pick('v', '(v, 1)')} for v in {name}({self.random.randint(1, 3)})]")
        self.line(f"w.log.append({total})")

    def pattern(self):
        self.line(f"match {self.pick(self.anything(), 'w.names', 'w.items', 'w.box', self.int(1))}:")
        captured = self.new()
        cases = self.random.sample(
            [
                "case {'p': captured, **rest}:",
                "case [captured, *_]:",
                "case Box(value=captured):",
                "case int(captured) if captured > 2:",
                "case (captured, _):",
                "case str() as captured:",
            ],
            2,
        )
        self.depth += 1
        for case in cases:
            self.line(case.replace("captured", captured))
            self.block(None, (1, 2))
        self.line("case _:")
        self.block(None, (1, 1))
        self.depth -= 1

    def leave(self):
        if self.in_function:
            return self.assign()
        self.line(f"if {self.condition(1)}:")
        self.line(
            f"    {self.pick(f'return {self.anything()}', f'return {self.anything()}', f'raise KeyError({self.int(0)})')}"
        )

    def write(self):
        self.line("global counter")
        for _ in range(self.random.randint(3, 7)):
            self.statement()
        self.line(f"return {self.anything()}")
        return PRELUDE + MAKE + "\n\ndef f(w, x):\n" + "\n".join(self.lines) + "\n"


def generate(seed):
    return Program(seed).write()

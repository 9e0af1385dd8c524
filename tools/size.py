"""Prints functions and files which have outgrown their limits. `--check` fails if a hard limit is exceeded.

Limits: functions 40 lines (hard 80), .cpp 500 (hard 800), headers 200 (hard 400). Complexity of a function of the product
in C++, one more than the number of its decisions (if, for, while, case, catch, &&, ||, ?): 25 (hard 40). Exempt from all
limits: .def files and files which say `size: table` in their first ten lines (rule tables). A function whose body is one
exhaustive switch says `size: switch` on the line before it. Functions over the hard limit of complexity are listed in
tools/complex_functions.txt, which only shrinks.

Classes of the product in C++ declare at most 60 functions (a hard limit). Overrides do not count: an interface decides
their number. `--list` prints the largest classes.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE_LIMITS = {".cpp": (500, 800), ".c": (500, 800), ".h": (200, 400), ".py": (500, 800)}
FUNCTION_LIMITS = (40, 80)
COMPLEXITY_LIMITS = (25, 40)
METHOD_LIMIT = 60
KNOWN_COMPLEX = ROOT / "tools/complex_functions.txt"
# Comments, strings and characters hold no decisions.
TEXT = re.compile(r'//.*$|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'', re.MULTILINE)
DECISION = re.compile(r"\b(?:if|for|while|case|catch)\b|&&|\|\||\?")
# A definition starts in column 0 or inside a class (two spaces), has a parameter list, and is no control statement.
STARTS = re.compile(
    r"^( {0,2})(?!\s)(?!else\b|namespace\b|struct\b|class\b|enum\b|union\b|extern\b|using\b|#|//|\})[^=;]*\("
)
NAME = re.compile(r"([\w:~]+|operator\S+)\s*\(")
# A class with a body, and members which declare no function of their own.
CLASS = re.compile(r"\b(?:class|struct)\s+(?:\[\[[^\]]*\]\]\s*)?((?:\w+::)*\w+)\s*(?:final\s*)?(?::[^;{()]*)?\{")
NO_METHOD = re.compile(r"(?:using|friend|typedef|static_assert|class|struct|enum|union|template\s+(?:class|struct))\b")
METHOD = re.compile(r"[^={]*?(?:\b\w+|operator\s*\S+?|~\w+)\s*\(")


@dataclass
class Finding:
    where: str
    lines: int
    limit: int
    hard: bool
    unit: str = "lines"

    def __str__(self) -> str:
        return f"{'HARD ' if self.hard else '     '}{self.lines:5d} {self.unit} (limit {self.limit}): {self.where}"


def functions(text: str):
    """Yields (name, first line, number of lines, line before) for each function body, by indentation."""
    lines = text.splitlines()
    i = 0
    while i < len(lines):
        match = STARTS.match(lines[i])
        if not match:
            i += 1
            continue
        indent = match.group(1)
        j = i
        while j < len(lines) and not lines[j].rstrip().endswith(("{", ";", "}")) and j - i < 12:
            j += 1
        if j >= len(lines) or not lines[j].rstrip().endswith("{"):
            i += 1
            continue
        end = next((k for k in range(j + 1, len(lines)) if lines[k].startswith(indent + "}")), j)
        name = NAME.search(lines[i])
        yield (name.group(1) if name else lines[i].strip()), i + 1, end - i + 1, lines[i - 1] if i else ""
        i = end + 1


def python_functions(text: str):
    import ast

    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1, ""


def names_in(path: Path) -> set[str]:
    lines = path.read_text().splitlines() if path.exists() else []
    return {line for line in lines if line and not line.startswith("#")}


def members(body: str):
    """The declarations of a class body, with nested braces emptied."""
    declaration, depth = "", 0
    for character in body:
        depth -= character == "}"
        if depth == 0 and character != ";":
            declaration += character
        depth += character == "{"
        is_function = character == "}" and re.search(r"\)[^;=]*\{?\}$", declaration) is not None
        if depth == 0 and (character == ";" or is_function):
            yield declaration
            declaration = ""


def is_method(declaration: str) -> bool:
    plain = re.sub(r"\b(?:public|private|protected)\s*:|\[\[.*?\]\]", "", declaration)
    before = None
    while before != plain:  # template arguments, from the innermost
        before, plain = plain, re.sub(r"<[^<>]*>", "", plain)
    plain = plain.strip()
    overrides = re.search(r"\)[^(){}]*\boverride\b", plain) is not None
    return not overrides and NO_METHOD.match(plain) is None and METHOD.match(plain) is not None


def classes(text: str):
    """Yields (name, line, number of declared functions) for each class body."""
    text = TEXT.sub("", text)
    for match in CLASS.finditer(text):
        depth, end = 1, match.end()
        while end < len(text) and depth > 0:
            depth += (text[end] == "{") - (text[end] == "}")
            end += 1
        count = sum(is_method(member) for member in members(text[match.end() : end - 1]))
        yield match.group(1), text.count("\n", 0, match.start()) + 1, count


def check_classes(name: str, text: str) -> list[Finding]:
    """Classes of a C++ file which declare too many functions."""
    return [
        Finding(f"{name}:{line} {found}", count, METHOD_LIMIT, True, "methods")
        for found, line, count in classes(text)
        if count > METHOD_LIMIT
    ]


def list_classes() -> None:
    found = [
        (count, name, f"{path.relative_to(ROOT)}:{line}")
        for path in sorted((ROOT / "src").rglob("*"))
        if path.suffix in {".h", ".cpp"}
        for name, line, count in classes(path.read_text())
    ]
    for count, name, where in sorted(found, reverse=True)[:20]:
        print(f"{count:5d} methods (limit {METHOD_LIMIT}): {where} {name}")


def check_complexity(name: str, text: str) -> list[Finding]:
    """Functions of a C or C++ file which decide too much."""
    found, lines, known = [], text.splitlines(), names_in(KNOWN_COMPLEX)
    soft, hard = COMPLEXITY_LIMITS
    for function, line, length, before in functions(text):
        decisions = 1 + len(DECISION.findall(TEXT.sub("", "\n".join(lines[line - 1 : line - 1 + length]))))
        if decisions > soft and "size: switch" not in before:
            is_hard = decisions > hard and function not in known
            found.append(Finding(f"{name}:{line} {function}", decisions, soft, is_hard, "decisions"))
    return found


def check_file(path: Path) -> list[Finding]:
    text = path.read_text()
    name = str(path.relative_to(ROOT))
    if "size: table" in "\n".join(text.splitlines()[:10]):
        return []
    found = []
    count = text.count("\n")
    soft, hard = FILE_LIMITS[path.suffix]
    if count > soft:
        found.append(Finding(name, count, soft, count > hard))
    for function, line, length, before in (python_functions if path.suffix == ".py" else functions)(text):
        if length > FUNCTION_LIMITS[0] and "size: switch" not in before:
            found.append(Finding(f"{name}:{line} {function}", length, FUNCTION_LIMITS[0], length > FUNCTION_LIMITS[1]))
    if name.startswith("src/") and path.suffix != ".py":
        found += check_complexity(name, text)
        if path.suffix != ".c":
            found += check_classes(name, text)
    return found


def diff_size() -> str:
    stat = subprocess.run(["git", "diff", "--shortstat", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout
    return stat.strip() or "no uncommitted change"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="print hard offenders only; fail when there are any")
    parser.add_argument("--list", action="store_true", help="print the classes with the most functions")
    arguments = parser.parse_args()
    if arguments.list:
        list_classes()
        return 0
    check = arguments.check
    folders = ["src", "include", "tools", "tests", "bench", "python", "examples"]
    files = [p for f in folders for p in sorted((ROOT / f).rglob("*")) if p.suffix in FILE_LIMITS]
    found = [finding for path in files for finding in check_file(path)]
    found.sort(key=lambda f: -f.lines / f.limit)
    hard = [f for f in found if f.hard]
    for finding in hard if check else found:
        print(finding)
    if not check:
        print(f"{len(files)} files, {len(found)} over a limit, {len(hard)} over a hard one; diff: {diff_size()}")
    elif not hard:
        print("sizes: within the hard limits")
    return 1 if check and hard else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:  # `make size | head`
        sys.exit(0)

"""Compares the schema of every operator row with torch's registered schema.

Usage: check_schemas.py <path of dump_ops>. Rows of other namespaces than aten are cresset's own and are skipped.
"""

import subprocess
import sys

import torch


def normalized(schema: str) -> str:
    """torch's printer and native_functions.yaml differ in quotes and in the spelling of numbers."""
    return str(torch._C.parse_schema(schema))


def differences(lines):
    registered = {}
    for schema in torch._C._jit_get_all_schemas():
        name = schema.name + ("." + schema.overload_name if schema.overload_name else "")
        registered[name] = str(schema)
    for line in lines:
        _, text = line.split("\t")
        name = text.split("(")[0]
        if not name.startswith("aten::"):
            continue
        if name not in registered:
            yield f"{name}: torch has no such operator"
            continue
        try:
            ours = normalized(text)
        except RuntimeError as error:
            yield f"{name}: does not parse: {error}"
            continue
        if ours != registered[name]:
            yield f"{name}:\n  ours  {ours}\n  torch {registered[name]}"


def main() -> int:
    lines = subprocess.run([sys.argv[1]], check=True, capture_output=True, text=True).stdout.splitlines()
    found = list(differences(lines))
    for difference in found:
        print(difference)
    print(f"{len(lines)} rows, {len(found)} differ")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

"""Lets torchvision be imported without its compiled operators. Set-up runs it after installing torchvision.

The default index has torchvision for CUDA builds of torch alone: its library of operators does not load beside a CPU
build. torchvision expects that, but for the registrations of two operators, and its import fails there. timm and
transformers need its Python files only. Here these registrations become conditional, as torchvision's others are. With
a torchvision that loads, nothing is changed.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

UNCONDITIONAL = re.compile(r'^@torch\.library\.register_fake\(("torchvision::\w+")\)$', re.MULTILINE)
CONDITIONAL = r"@(torch.library.register_fake(\1) if torchvision.extension._has_ops() else lambda function: function)"


def imports() -> bool:
    return subprocess.run([sys.executable, "-c", "import torchvision"], capture_output=True).returncode == 0


def main() -> int:
    if imports():
        return 0
    file = (
        Path(next(iter(importlib.util.find_spec("torchvision").submodule_search_locations))) / "_meta_registrations.py"
    )
    text = UNCONDITIONAL.sub(CONDITIONAL, file.read_text())
    mended = file.with_suffix(".mended")
    mended.write_text(text)
    os.replace(mended, file)  # a new file: an installer may have linked the old one into other environments
    if not imports():
        print("setup: torchvision cannot be imported beside this torch", file=sys.stderr)
        return 1
    print(
        "setup: torchvision's compiled operators (nms, roi_align) do not load beside this torch; its Python part does"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""How `pip install .` builds cresset: scikit-build-core, against the torch of the environment that is installed into.

A build in isolation does not see the environment's packages, and a torch downloaded for the build alone could be another
release. The module must run with the minor release of torch that it was built against. An isolated interpreter (-I)
ignores the path of the build and finds the environment's own torch. Without one there, torch is a requirement of the
build. The package requires the minor release that it was built against.
"""

from __future__ import annotations

import subprocess
import sys

from scikit_build_core.build import (  # noqa: F401
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_sdist,
)
from scikit_build_core.build import get_requires_for_build_editable as _editable_requires
from scikit_build_core.build import get_requires_for_build_wheel as _wheel_requires

SUPPORTED = "torch>=2.11,<2.15"
_VERSION = "import importlib.metadata as m; print(m.version('torch'))"


def torch_version() -> str | None:
    """The environment's torch, else the one of this build."""
    for flags in (["-I"], []):
        found = subprocess.run([sys.executable, *flags, "-c", _VERSION], capture_output=True, text=True)
        if found.returncode == 0:
            return found.stdout.strip()
    return None


def _torch_if_missing() -> list[str]:
    return [] if torch_version() else [SUPPORTED]


def get_requires_for_build_wheel(config_settings=None):
    return _wheel_requires(config_settings) + _torch_if_missing()


def get_requires_for_build_editable(config_settings=None):
    return _editable_requires(config_settings) + _torch_if_missing()


def dynamic_metadata(field, settings=None, project=None):
    """The field `dependencies` of pyproject.toml."""
    version = torch_version()
    if version is None:  # a source distribution
        return [SUPPORTED]
    major, minor = version.split(".")[:2]
    return [f"torch>={major}.{minor},<{major}.{int(minor) + 1}"]

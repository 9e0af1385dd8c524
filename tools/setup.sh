#!/usr/bin/env bash
# Brings a fresh Debian or Ubuntu machine to the point where `make demo` works: system packages, and a virtual
# environment in .venv. With the argument `test` also to that where `make test` works. Safe to run again (it then takes a
# fraction of a second) and to run twice at once.
#
#   PYTHON=python3.12      the interpreter .venv is made with (default: the first of 3.11 to 3.14, python3)
#   TORCH_VERSION=2.11.0   the torch to install into a new .venv (default 2.13.0)
#   TORCH_INDEX=<url>      a package index with CPU builds of torch, if the default index has none
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-demo}

exec 9>.setup.lock
flock 9

python_version() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null; }

find_python() {
  for candidate in ${PYTHON:-} python3.11 python3.12 python3.13 python3.14 python3; do
    case "$(python_version "$candidate" || true)" in
      3.11 | 3.12 | 3.13 | 3.14) command -v "$candidate"; return ;;
    esac
  done
  return 1
}

# ---- system packages: only what is missing, so that a second run needs neither root nor a network
missing_packages() {
  local wanted=(g++ cmake ninja-build ccache mold git libfmt-dev nlohmann-json3-dev libxxhash-dev libzstd-dev libz3-dev)
  if [ "$what" = test ]; then wanted+=(libgtest-dev libgmock-dev libbenchmark-dev); fi
  find_python >/dev/null || wanted+=(python3)
  # A Python that is not the distribution's brings its own headers and venv module.
  case "$(find_python || echo /usr/bin/python3)" in /usr/bin/*) wanted+=(python3-dev python3-venv) ;; esac
  local package
  for package in "${wanted[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed' || echo "$package"
  done
}

llvm_present() {
  local version
  for version in 19 20 18; do
    [ -e "/usr/lib/llvm-$version/lib/cmake/llvm/LLVMConfig.cmake" ] && return
  done
  return 1
}

install_packages() {
  local root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "setup: needs root or sudo to install: $*" >&2; exit 1; }
    root=(sudo)
  fi
  local apt=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
  "${apt[@]}" update
  if ! llvm_present; then
    local version
    for version in 19 20 18; do
      if apt-cache show "llvm-$version-dev" >/dev/null 2>&1; then set -- "$@" "llvm-$version-dev"; break; fi
    done
  fi
  "${apt[@]}" install -y --no-install-recommends "$@"
}

if ! command -v dpkg-query >/dev/null; then
  echo "setup: not a Debian or Ubuntu machine: install the packages named in CONTRIBUTING.md by hand" >&2
else
  mapfile -t missing < <(missing_packages)
  if [ "${#missing[@]}" -gt 0 ] || ! llvm_present; then install_packages "${missing[@]}"; fi
  # Absence is no error: only `make fmt` and `make lint` use clang-format, which decides the style, and one test opens
  # the page of cresset.report in a browser.
  for program in clang-format-19 chromium; do
    if [ "$what" = test ] && [ "$(id -u)" = 0 ] && ! command -v "$program" >/dev/null; then
      apt-get -q install -y --no-install-recommends "$program" >/dev/null 2>&1 || true
    fi
  done
fi

# ---- the virtual environment
stamp=.venv/cresset-setup-$what
fingerprint="$(cat tools/setup.sh tools/mend_torchvision.py | sha256sum | cut -c1-16) ${TORCH_VERSION:-}"
if [ -x .venv/bin/python ] && [ "$(cat $stamp 2>/dev/null)" = "$fingerprint" ]; then exit 0; fi

if [ ! -x .venv/bin/python ]; then
  python=$(find_python) || { echo "setup: needs Python 3.11, 3.12, 3.13 or 3.14" >&2; exit 1; }
  "$python" -m venv .venv
fi
pip=(.venv/bin/python -m pip install -q --disable-pip-version-check)

installed_torch() { .venv/bin/python -c 'import importlib.metadata as m; print(m.version("torch"))' 2>/dev/null || true; }
case "$(installed_torch)" in
  2.11.* | 2.12.* | 2.13.* | 2.14.*) ;;
  *)
    version=${TORCH_VERSION:-2.13.0}
    index=()
    if [ -n "${TORCH_INDEX:-}" ]; then index=(--extra-index-url "$TORCH_INDEX"); fi
    # The CPU build where an index has it (200 MB instead of gigabytes), else the default one.
    "${pip[@]}" "${index[@]}" "torch==$version+cpu" 2>/dev/null || "${pip[@]}" "${index[@]}" "torch==$version"
    ;;
esac
if [ "$what" = test ]; then
  "${pip[@]}" pytest hypothesis rich typer ruff psutil expecttest mypy
  "${pip[@]}" pytest-xdist || true  # without it the tests run one after the other
fi
# What the demo and the models of the tests use.
"${pip[@]}" numpy 'transformers>=5,<6' pyyaml huggingface_hub safetensors pillow
# torchvision's releases go with torch's: 0.28 with 2.13. Its requirement names the one build of torch that its wheel was
# linked against, so it is installed without requirements, and so is timm, which requires it.
torch=$(installed_torch)
vision="torchvision==0.$(($(cut -d. -f2 <<<"$torch") + 15))"
index=()
if [ -n "${TORCH_INDEX:-}" ]; then index=(--extra-index-url "$TORCH_INDEX"); fi
case "$torch" in
  *+cpu) "${pip[@]}" --no-deps "${index[@]}" "$vision.0+cpu" 2>/dev/null || "${pip[@]}" --no-deps "$vision.*" ;;
  *) "${pip[@]}" --no-deps "${index[@]}" "$vision.*" ;;
esac
.venv/bin/python tools/mend_torchvision.py
"${pip[@]}" --no-deps timm
if [ "$what" = test ]; then  # beside which compiled modules are tested (tests/python/interop); absent ones are skipped
  "${pip[@]}" --no-deps accelerate peft torchao pytorch-lightning lightning-utilities torchmetrics coverage || true
fi

# `import cresset` from any folder finds this checkout.
site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
echo "$PWD/python" >"$site/cresset-checkout.pth"
# So does torch.compile(backend="cresset"), by what an installed package would say in its metadata.
info=$site/cresset_checkout-0.dist-info
mkdir -p "$info"
printf 'Metadata-Version: 2.1\nName: cresset-checkout\nVersion: 0\n' >"$info/METADATA"
sed -n '/^\[project.entry-points.torch_dynamo_backends\]/,/^$/{s/^\[project.entry-points.\(.*\)\]/[\1]/;s/"//g;p}' \
  pyproject.toml >"$info/entry_points.txt"
rm -f .venv/cresset-setup-demo "$stamp"
echo "$fingerprint" | tee .venv/cresset-setup-demo >"$stamp"

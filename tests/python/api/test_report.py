"""cresset.report: one HTML file about a run; programs and kernels in torch's profiler and perf's map."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from html.parser import HTMLParser

import pytest
import torch

import cresset


class Page(HTMLParser):
    VOID = ("meta", "br", "polyline")

    def __init__(self, text):
        super().__init__()
        self.open, self.words, self.titles, self.links = [], [], [], []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.links += [v for k, v in attributes if k in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)
        if self.open and self.open[-1] in ("h1", "h2", "h3", "summary"):
            self.titles.append(data)

    @property
    def text(self):
        return "\n".join(self.words)


def function(x, w):
    y = torch.softmax(torch.relu(x) @ w, -1)
    if y.sum() > 0:
        y = y * 2 + 1
    return y


X, W = torch.randn(64, 8), torch.randn(8, 50)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "run.html"
    compiled = cresset.compile(function)
    compiled(X, W)
    with cresset.report(path):
        for _ in range(3):
            compiled(X, W)
        compiled(X.double(), W.double())
    return path.read_text()


def test_one_file_with_everything(text):
    page = Page(text)
    assert page.links == [] and "<script" not in text and "@import" not in text
    for title in ("Summary", "Graph breaks", "Recompiles", "Programs", "Kernels", "Memory", "function"):
        assert title in page.titles, title
    assert "aten::mm" in page.text and "test_report.py:" in page.text
    assert "a number read from tensor data" in page.text and "argument x: dtype Float -> Double" in page.text


def test_kernels_have_source_and_timing(text):
    page = Page(text)
    kernels = [t for t in page.titles if t.startswith("Kernel ")]
    assert any("exp" in t and "test_report.py:" in t and "launches, " in t for t in kernels), kernels
    assert "reduce f32 max" in page.text and "dispatch" not in page.text


def test_memory_over_time(text):
    assert "<polyline points=" in text and "are in use at once" in text


def test_nothing_stays(tmp_path):
    with pytest.raises(KeyError), cresset.report(tmp_path / "run.html"):
        raise KeyError
    assert (tmp_path / "run.html").exists() and "CRESSET_PROFILE_KERNELS" not in os.environ
    assert cresset._C.keep_texts(False) is False
    with pytest.raises(FileNotFoundError, match="there is no folder"), cresset.report(tmp_path / "no" / "run.html"):
        pass
    assert cresset._C.keep_texts(False) is False


def test_beside_another_profiler(tmp_path):
    """torch has one profiler at a time."""
    with (
        torch.profiler.profile(),
        pytest.raises(RuntimeError, match="one at a time"),
        cresset.report(tmp_path / "run.html"),
    ):
        pass
    assert cresset._C.keep_texts(False) is False and "CRESSET_PROFILE_KERNELS" not in os.environ


def test_text_of_the_program_is_escaped(tmp_path):
    compiled = cresset.compile(lambda x: x + 1, name="<b>f</b>")
    with cresset.report(tmp_path / "run.html"):
        compiled(X)
    text = (tmp_path / "run.html").read_text()
    assert "<b>" not in text
    Page(text)


BROWSER = next((b for b in ("chromium", "chromium-browser", "google-chrome") if shutil.which(b)), None)


@pytest.mark.skipif(BROWSER is None, reason="no browser")
def test_a_browser_shows_it(text, tmp_path):
    (tmp_path / "run.html").write_text(text)
    picture = tmp_path / "run.png"
    command = [
        BROWSER,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--screenshot={picture}",
        "--window-size=1200,2000",
    ]
    done = subprocess.run([*command, f"file://{tmp_path}/run.html"], capture_output=True, text=True, timeout=120)
    assert picture.stat().st_size > 20_000, done.stderr


# ---- Profilers


def test_programs_are_seen_by_torchs_profiler(tmp_path):
    model = torch.nn.Linear(8, 4)
    compiled = cresset.compile(lambda x: model(x).sin(), name="layer")
    compiled(X).sum().backward()
    with torch.profiler.profile(record_shapes=True) as profile:
        compiled(X).sum().backward()
    events = {event.name: event for event in profile.events()}
    assert [64, 8] in events["cresset: layer"].input_shapes
    assert "cresset: backward pass" in events
    profile.export_chrome_trace(str(tmp_path / "trace.json"))
    names = {row.get("name") for row in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]}
    assert {"cresset: layer", "cresset: backward pass"} <= names


KERNELS = """
import os, torch, cresset
def f(x, w):
    return torch.softmax(torch.relu(x) @ w, -1) * 2
compiled = cresset.compile(f)
x, w = torch.randn(64, 8), torch.randn(8, 50)
compiled(x, w)
with torch.profiler.profile(record_shapes=True) as profile:
    compiled(x, w)
for event in profile.events():
    if event.name.startswith("cresset: ") and " at " in event.name:
        print(event.name, event.input_shapes)
print(open(f"/tmp/perf-{os.getpid()}.map").read())
os.unlink(f"/tmp/perf-{os.getpid()}.map")
"""


def test_kernels_are_seen_where_asked_for(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(KERNELS)
    environment = {**os.environ, "CRESSET_PROFILE_KERNELS": "1"}
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, env=environment, timeout=300)
    lines = done.stdout.splitlines()
    assert "cresset: relu at program.py:4 in f [[64, 8], [64, 8]]" in lines, done.stdout + done.stderr[-2000:]
    softmax = "cresset: greatest, sub, exp, sum, div, mul at program.py:4 in f"
    assert any(line.startswith(softmax + " [[64, 50]") for line in lines), done.stdout
    rows = [line.split(" ", 2) for line in lines if " cresset: " in line]
    names = {row[2] for row in rows}
    assert {"cresset: relu at program.py:4 in f", softmax} <= names
    assert all(int(address, 16) > 0 and int(size, 16) > 0 for address, size, _ in rows)


@pytest.mark.skipif(shutil.which("gdb") is None, reason="no gdb")
def test_gdb_names_kernels(tmp_path):
    file = tmp_path / "program.py"
    stops = "import signal\nos.kill(os.getpid(), signal.SIGTRAP)\n"
    file.write_text(KERNELS.partition("with torch.profiler")[0] + stops)
    asked = [a for c in ("set debuginfod enabled off", "run", "info functions at program.py") for a in ("-ex", c)]
    environment = {**os.environ, "CRESSET_PROFILE_KERNELS": "1"}
    command = ["gdb", "-nx", "-batch", *asked, "--args", sys.executable, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    names = {line.split(maxsplit=1)[1] for line in done.stdout.splitlines() if line.startswith("0x") and " at " in line}
    wanted = {"relu at program.py:4 in f", "greatest, sub, exp, sum, div, mul at program.py:4 in f"}
    assert {f"cresset: {name}" for name in wanted} <= names, done.stdout[-2000:] + done.stderr[-2000:]

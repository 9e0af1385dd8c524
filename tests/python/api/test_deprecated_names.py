"""Old public names work as aliases, each with one DeprecationWarning (variables: one line of the log) in a process."""

import os
import subprocess
import sys
import warnings

import pytest
import torch

import cresset
from cresset._api import deprecated


@pytest.fixture(autouse=True)
def nothing_warned(monkeypatch):
    monkeypatch.setattr(deprecated, "_warned", set())


def deprecations(action, times=3):
    """The results of an action, and its DeprecationWarnings."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        results = [action() for _ in range(times)]
    return results, [str(w.message) for w in seen if w.category is DeprecationWarning and "cresset" in str(w.message)]


def one_more(x):
    return x + 1


VALUES = {
    "entry_limit": 3,
    "freeze": True,
    "guard_filter": lambda entries: [True] * len(entries),
    "symbolic_numbers": True,
}


@pytest.mark.parametrize("old", deprecated.OPTIONS)
def test_an_option_has_its_old_name(old):
    new, value = deprecated.OPTIONS[old], VALUES[old]
    compiled, told = deprecations(lambda: cresset.compile(one_more, options={old: value}))
    assert told == [f"cresset: option {old!r} is deprecated: use {new!r}"]
    assert [c._cresset_settings[new] for c in compiled] == [value] * 3
    assert compiled[0](torch.ones(2)).tolist() == [2.0, 2.0]
    assert deprecations(lambda: cresset.compile(one_more, options={new: value}))[1] == []


@pytest.mark.parametrize("old", deprecated.OPTIONS)
def test_explain_takes_an_option_by_its_old_name(old):
    shown, told = deprecations(lambda: cresset.explain(one_more, **{old: VALUES[old]})(torch.ones(2)), times=1)
    assert len(told) == 1 and shown[0].segments[0]["operators"] == 1


@pytest.mark.parametrize("old", deprecated.STATS)
def test_a_key_of_stats_has_its_old_name(old):
    new = deprecated.STATS[old]
    values, told = deprecations(lambda: (cresset.stats()[old], cresset.stats().get(old)))
    assert values == [(cresset.stats()[new],) * 2] * 3
    assert told == [f"cresset: stats()[{old!r}] is deprecated: use stats()[{new!r}]"]
    assert old not in cresset.stats() and deprecations(lambda: cresset.stats()[new])[1] == []


def test_a_missing_key_of_stats_is_a_key_error():
    with pytest.raises(KeyError, match="piece_count"):
        cresset.stats()["piece_count"]
    assert cresset.stats().get("piece_count", 7) == 7


def test_an_explanation_has_variants():
    explanation = cresset.explain(one_more)(torch.ones(2))
    (first, *_), told = deprecations(lambda: explanation.variants)
    assert first is explanation.segments and told == [
        "cresset: Explanation.variants is deprecated: use Explanation.segments"
    ]


def test_a_segment_has_facts():
    (segment,) = cresset.explain(one_more)(torch.ones(2)).segments
    (first, *_), told = deprecations(lambda: segment["facts"])
    assert first is segment["state_guards"] and len(told) == 1 and "state_guards" in told[0]


def test_shapes_have_variants():
    report = cresset.shapes(one_more)(torch.ones(2))
    (first, *_), told = deprecations(lambda: report.variants)
    assert first is report.cache_entries and told == [
        "cresset: Shapes.variants is deprecated: use Shapes.cache_entries"
    ]


@pytest.mark.parametrize(
    "old, new, value",
    [("CRESSET_NO_RACE", "CRESSET_NO_AUTOTUNE", "1"), ("CRESSET_ENTRY_LIMIT", "CRESSET_CACHE_ENTRY_LIMIT", "2")],
)
def test_a_variable_has_its_old_name(tmp_path, old, new, value):
    program = """
import torch, cresset
f = cresset.compile(lambda x, n: x * n, dynamic=False)
print([f(torch.ones(i), i).sum().item() for i in (1, 2, 3, 4)], len(cresset._C.cache_entries(f)))
"""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CRESSET_")}
    environment |= {"CRESSET_CACHE_DIR": str(tmp_path)}
    shown = [
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program],
            env=environment | {name: value},
            capture_output=True,
            text=True,
            timeout=120,
        )
        for name in (old, new)
    ]
    assert [s.returncode for s in shown] == [0, 0], shown[0].stderr
    assert shown[0].stdout == shown[1].stdout
    line = f"{old} is deprecated: use {new}"
    assert shown[0].stderr.count(line) == 1 and line not in shown[1].stderr

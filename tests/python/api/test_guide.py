"""The guide names every public name, option and environment variable, and its links lead somewhere."""

import re
from pathlib import Path

import pytest

import cresset
from cresset._api.settings import OPTIONS

ROOT = Path(__file__).resolve().parents[3]
GUIDE = (ROOT / "docs/guide/api.md").read_text()
PAGES = sorted([*(ROOT / "docs").glob("*.md"), *(ROOT / "docs/guide").glob("*.md"), ROOT / "README.md"])


@pytest.mark.parametrize("name", [n for n in cresset.__all__ if not n.startswith("_")])
def test_every_public_name_is_in_the_guide(name):
    assert re.search(rf"`{name}[`(]", GUIDE), f"docs/guide/api.md does not name cresset.{name}"


@pytest.mark.parametrize("option", [*OPTIONS, "guard_filter_fn", "cache_entry_limit"])
def test_every_option_is_in_the_guide(option):
    assert f"`{option}`" in GUIDE


def test_every_environment_variable_is_in_the_guide():
    rows = re.findall(r"CRESSET_OPTION\((\w+),", (ROOT / "src/cresset/base/options.def").read_text())
    assert rows
    assert [name for name in rows if f"`CRESSET_{name}`" not in GUIDE] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)#]+)\)", text)
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


def test_places_in_the_glossary_exist():
    rows = re.findall(r"^\|.*\| ([^|]*) \|$", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)
    places = [place for row in rows for place in re.findall(r"`([^`]+)`", row)]
    assert len(places) > 30
    assert [place for place in places if not (ROOT / place).exists()] == []

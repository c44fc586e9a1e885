"""The documentation as a site: each page is in one path, and every link leads somewhere."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from mkdocs.exceptions import Abort

from kit.packages import PROJECT
from release import site


def in_nav(entries: list[object]) -> Iterator[str]:
    for each in entries:
        match each:
            case str():
                yield each
            case dict():
                for section in each.values():
                    yield from in_nav(section)


def test_each_page_is_in_one_path() -> None:
    nav = yaml.safe_load(site.SETTINGS.read_text())["nav"]
    assert sorted(in_nav(nav)) == sorted(map(str, site.pages(PROJECT)))


def test_pages_are_short() -> None:
    """Besides those that are looked up in, not read."""
    tables = {"alerts", "configuration", "gardenlet-configuration", "kubectl-mr", "threats"}
    pages = (page for page in (PROJECT / "docs").glob("*.md") if page.stem not in tables)
    assert {page.name: words for page in pages if (words := len(page.read_text().split())) >= 1500} == {}


def test_the_site_has_the_version_and_no_dead_link(tmp_path: Path) -> None:
    site.write(PROJECT, tmp_path, version="v1.2.3")
    assert "v1.2.3" in (tmp_path / "index.html").read_text()
    assert (tmp_path / "docs" / "tour" / "index.html").is_file()


def test_a_dead_link_is_an_error(tmp_path: Path) -> None:
    for page in site.pages(PROJECT):
        (tmp_path / page).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / page).write_text("")
    for folder in ("docs/images", "benchmarks/images"):
        (tmp_path / folder).mkdir()
    (tmp_path / "README.md").write_text("[a](docs/none.md)")
    with pytest.raises(Abort):
        site.write(tmp_path, tmp_path / "site", version="v1.2.3")

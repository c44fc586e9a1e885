"""The documentation as a site, by MkDocs: `python -m release.site DIRECTORY`.

The pages are copied with their folders, so that links between them stay as they are in the repository. Links to other
files of the repository have no page, and are left as text.
"""

import logging
import re
import shutil
import sys
import tempfile
from pathlib import Path

import yaml
from mkdocs.commands.build import build
from mkdocs.config import load_config

from gardener.distribution import version as installed_version

PROJECT = Path(__file__).resolve().parents[1]
SETTINGS = Path(__file__).with_name("site.yml")
_LINK = re.compile(r"\[([^\]]*)\]\(([^)#:\s]+)(#[^)\s]*)?\)")


def pages(project: Path) -> list[Path]:
    """All pages of the site, relative to the project."""
    found = (each for pattern in ("*.md", "docs/*.md", "benchmarks/*.md") for each in project.glob(pattern))
    return sorted(each.relative_to(project) for each in found)


def write(project: Path, directory: Path, *, version: str) -> None:
    """Write the site of a checkout.

    Raises:
        mkdocs.exceptions.Abort: a link leads nowhere, or a page is in no path; the log names it.
    """
    settings = yaml.safe_load(SETTINGS.read_text())
    with tempfile.TemporaryDirectory() as scratch:
        sources = Path(scratch) / settings["docs_dir"]
        for page in pages(project):
            target = sources / page
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(_without_links_to_files((project / page).read_text(), project / page))
        for folder in ("docs/images", "benchmarks/images"):
            shutil.copytree(project / folder, sources / folder)
        config = load_config(
            config_file=str(SETTINGS),
            docs_dir=str(sources),
            site_dir=str(directory.resolve()),
            site_name=f"{settings['site_name']} {version}",
            strict=True,
        )
        build(config)


def _without_links_to_files(text: str, page: Path) -> str:
    def replaced(link: re.Match[str]) -> str:
        is_page = Path(link[2]).suffix in {".md", ".png"}
        return link[1] if not is_page and (page.parent / link[2]).exists() else link[0]

    return _LINK.sub(replaced, text)


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    write(PROJECT, Path(sys.argv[1]), version=installed_version())

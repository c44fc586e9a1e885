"""Pages made from templates, which extend `page.html`.

Jinja escapes everything but the markup of a template, and `printable` invisible characters.

Style, script and icon are served by ourselves, so that browsers send no requests to other sites.
"""

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import web
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from kube.clock import format_time, parse_time, short_duration
from kube.visible_text import TEXT, printable
from process.pages import answers

_HERE = Path(__file__).parent
_LONGEST = 16_384
"""Maximum number of characters shown of a message."""


def _read(name: str, kind: str) -> tuple[str, str, str]:
    """Path, content and type. The digest in the path changes with the content, so it can be cached without limit."""
    file = _HERE / "static" / name
    content = file.read_text(encoding="utf-8")
    digest = hashlib.sha256(content.encode()).hexdigest()[:12]
    return f"/{file.stem}-{digest}{file.suffix}", content, kind


_FILES = {
    "style": _read("style.css", "text/css"),
    "script": _read("script.js", "text/javascript"),
    "icon": _read("icon.svg", "image/svg+xml"),
}

STATIC = {path: (content, kind) for path, content, kind in _FILES.values()}
"""Path -> content and its type."""


def _shown(value: Any) -> Any:
    """Text that an expression of a template shows, before it is escaped."""
    if isinstance(value, Markup):
        return value
    return "" if value is None else printable(str(value), keep=TEXT)


def _shortened(text: str | None, most: int = _LONGEST) -> str:
    text = text or ""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _moment_of(at: str | float | None) -> datetime | None:
    """Return the time; None if there is none.

    Args: at: as Kubernetes writes it, or Unix time in seconds.
    """
    if isinstance(at, int | float):
        return datetime.fromtimestamp(at, UTC)
    try:
        return parse_time(at or "")
    except ValueError:
        return None


def _age(when: datetime, now: datetime) -> str:
    return short_duration(max((now - when).total_seconds(), 0))


def answer_first(request: web.BaseRequest, path: str, *, on_loopback: bool) -> web.Response | None:
    """Return a refusal, or the static file at `path`; None if a page is requested."""
    if refused := answers.refusal(request, on_loopback=on_loopback):
        return refused
    return answers.kept(*STATIC[path]) if path in STATIC else None


def environment(*folders: Path, server: str, files: str = "") -> Environment:
    """Environment of the templates in folders, which find the paths of static files in `static`.

    Args:
        folders: of the templates; `page.html` and `parts.html` are always among them.
        server: name of the program for users.
        files: location of the static files, relative to the `root` of a page.
    """
    made = Environment(
        loader=FileSystemLoader([*folders, _HERE / "templates"]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {"shortened": _shortened, "timestamp": format_time}
    made.globals |= {"static": {name: f"{files}{path}" for name, (path, _, _) in _FILES.items()}}
    made.globals |= {"server": server, "root": "", "age": _age, "moment_of": _moment_of}
    return made

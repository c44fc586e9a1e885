"""Pages out of templates: Jinja escapes whatever is not markup of a template, and `printable` what can't be seen.

`templates/layout.html` has what all pages have in common, `pieces.html` what they are made of; `static/` has style,
script and icon, served by ourselves, so that nothing is asked of anybody else.
"""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from agent.resource_manager.common.recent_changes import Action
from agent.resource_manager.status_page.lister import Lister
from agent.resource_manager.status_page.listing import Page
from config.resource_manager import COMPONENT
from gardener.conditions import RESOURCES_PROGRESSING
from gardener.managed_resource.references import key_of_reference
from gardener.overview.objects import Health
from gardener.overview.states import ResourceState
from kube.clock import format_time, parse_time, short_duration
from kube.objects import Key, Object
from kube.visible_text import TEXT, printable

_HERE = Path(__file__).parent
_LONGEST = 16_384
"""Characters of a message that are shown."""

Look = tuple[str, str]
"""A symbol and a class of the style."""

_STATES: Mapping[ResourceState, Look] = {
    ResourceState.READY: ("✓", "good"),
    ResourceState.PROGRESSING: ("↻", "busy"),
    ResourceState.UNHEALTHY: ("!", "bad"),
    ResourceState.FAILED: ("✕", "bad"),
    ResourceState.SUSPENDED: ("‖", "warn"),
    ResourceState.DELETING: ("−", "warn"),
    ResourceState.PENDING: ("?", "dim"),
}
_HEALTH: Mapping[Health, Look] = {
    Health.HEALTHY: ("✓", "good"),
    Health.COMPLETED: ("✓", "good"),
    Health.PROGRESSING: ("↻", "busy"),
    Health.UNHEALTHY: ("!", "bad"),
    Health.MISSING: ("✕", "bad"),
    Health.DELETING: ("−", "warn"),
    Health.UNKNOWN: ("?", "dim"),
}
_ACTIONS: Mapping[Action, Look] = {
    Action.CREATED: ("+", "good"),
    Action.CHANGED: ("↻", "busy"),
    Action.REPAIRED: ("!", "warn"),
    Action.MADE_AGAIN: ("!", "warn"),
    Action.TAKEN_OVER: ("!", "warn"),
    Action.DELETED: ("−", "dim"),
}
_STATUSES: Mapping[str, Look] = {"True": ("✓", "good"), "False": ("✕", "bad")}


def _condition_look(kind: str, status: str) -> Look:
    """That nothing is progressing is neither good nor bad."""
    if kind == RESOURCES_PROGRESSING and status == "False":
        return "–", "dim"
    return _STATUSES.get(status if kind != RESOURCES_PROGRESSING else "", ("↻", "busy"))


# --- static files


def _read(name: str, kind: str) -> tuple[str, str, str]:
    """Path, content and type. There is a digest in the path: it may be kept for good, and is new with its content."""
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


# --- templates


def _shown(value: Any) -> Any:
    """What an expression of a template shows, before it is escaped."""
    if isinstance(value, Markup):
        return value
    return "" if value is None else printable(str(value), keep=TEXT)


def _shortened(text: str | None, most: int = _LONGEST) -> str:
    text = text or ""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _path_of(name: Key) -> str:
    return f"/managedresources/{quote(name.namespace, safe='')}/{quote(name.name, safe='')}"


def _path_of_object(owner: Key, reference: Object) -> str:
    return f"{_path_of(owner)}/objects/{quote(key_of_reference(reference), safe='')}"


def _moment_of(at: str | float | None) -> datetime | None:
    """Args: at: as Kubernetes writes it, or seconds since 1970. None if it is none."""
    if isinstance(at, int | float):
        return datetime.fromtimestamp(at, UTC)
    try:
        return parse_time(at or "")
    except ValueError:
        return None


def _age(when: datetime, now: datetime) -> str:
    return short_duration(max((now - when).total_seconds(), 0))


def span_of(page: Page[Any], noun: str) -> str:
    """`201 to 400 of 1,000 changes`."""
    if page.last == 1:
        return f"{page.total:,} {noun}" + ("" if page.total == 1 else "s")
    return f"{page.first_item:,} to {page.first_item + len(page.items) - 1:,} of {page.total:,} {noun}s"


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {"shortened": _shortened, "timestamp": format_time}
    made.globals |= {
        "age": _age,
        "condition_look": _condition_look,
        "moment_of": _moment_of,
        "path_of": _path_of,
        "path_of_object": _path_of_object,
        "component": COMPONENT.name,
        "static": {name: path for name, (path, _, _) in _FILES.items()},
        "state_looks": _STATES,
        "health_looks": _HEALTH,
        "action_looks": _ACTIONS,
    }
    return made


environment = _environment()


def render(template: str, lister: Lister, *, now: datetime, title: str, section: str = "", **shown: Any) -> str:
    """A whole page. Args: section: the entry of the navigation that it belongs to; shown: what its template wants."""
    page = environment.get_template(template)
    return page.render(lister=lister, now=now, title=title, section=section, **shown)

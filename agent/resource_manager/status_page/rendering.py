"""Rendering of the status page: `templates/layout.html` has the common layout, `pieces.html` reusable parts."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment

from agent.resource_manager.common.recent_changes import Action
from agent.resource_manager.status_page.lister import Lister
from config.resource_manager import COMPONENT
from gardener.conditions import RESOURCES_PROGRESSING
from gardener.managed_resource.references import key_of_reference
from gardener.overview.objects import Health
from gardener.overview.states import LOOKS
from kube.objects import Key, Object
from process.pages import templates

Look = tuple[str, str]
"""A symbol and a CSS class."""

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
    """Return the look of a condition; Progressing with status False is neither good nor bad."""
    if kind == RESOURCES_PROGRESSING and status == "False":
        return "–", "dim"
    return _STATUSES.get(status if kind != RESOURCES_PROGRESSING else "", ("↻", "busy"))


# --- templates


def _path_of(name: Key) -> str:
    return f"/managedresources/{quote(name.namespace, safe='')}/{quote(name.name, safe='')}"


def _path_of_object(owner: Key, reference: Object) -> str:
    return f"{_path_of(owner)}/objects/{quote(key_of_reference(reference), safe='')}"


def _environment() -> Environment:
    made = templates.environment(Path(__file__).parent / "templates", server="Resource manager")
    made.globals |= {
        "condition_look": _condition_look,
        "path_of": _path_of,
        "path_of_object": _path_of_object,
        "component": COMPONENT.name,
        "state_looks": LOOKS,
        "health_looks": _HEALTH,
        "action_looks": _ACTIONS,
    }
    return made


environment = _environment()


def render(template: str, lister: Lister, *, now: datetime, title: str, section: str = "", **shown: Any) -> str:
    """Render a whole page.

    Args: section: its entry of the navigation; shown: variables of its template.
    """
    page = environment.get_template(template)
    return page.render(lister=lister, now=now, title=title, section=section, **shown)

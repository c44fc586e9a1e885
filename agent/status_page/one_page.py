"""The page of one ManagedResource."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from agent.api import secret_names
from agent.overview.hints import hints
from agent.overview.objects import Health, Live, Verdict, listed_in
from agent.overview.states import State, is_observed, message_of, state_of
from agent.responsibility import DEFAULT_CLASS, class_of
from agent.status_page.changes_page import changes_table
from agent.status_page.frame import (
    Place,
    column,
    condition_badge,
    document,
    health_badge,
    moment,
    shortened,
    state_badge,
    table,
)
from agent.status_page.knowledge import Knowledge, SeenObject
from agent.status_page.markup import Child, Markup, element, joined
from kube.objects import Key, Object, finalizers, is_truthy, key, metadata

_OBJECTS = 1000
"""Shown at most, and so many Secrets."""
_CHANGES = 50


def one_page(knowledge: Knowledge, managed_resource: Object, *, now: datetime) -> Markup:
    name = key(managed_resource)
    seen = knowledge.objects_of(managed_resource, limit=_OBJECTS)
    above = element(
        "div",
        element("h1", element("span", f"{name.namespace}/", class_="quiet"), name.name),
        state_badge(state_of(managed_resource)),
        class_="top",
    )
    changes = list(knowledge.changes.newest_first(owner=name))
    live = joined(
        _facts(knowledge, managed_resource, now),
        _advice(managed_resource, seen),
        _conditions(managed_resource, now),
        _tree(knowledge, managed_resource, seen),
        changes_table(changes[:_CHANGES], f"What was done lately, {len(changes)} in memory", now, with_owner=False)
        if knowledge.leads
        else None,
    )
    return document(Place(f"{name.namespace}/{name.name}", ""), knowledge, now=now, above=above, live=live)


def _facts(knowledge: Knowledge, managed_resource: Object, now: datetime) -> Markup:
    meta, status = metadata(managed_resource), managed_resource.get("status") or {}
    spec = managed_resource.get("spec") or {}
    generation = f"{meta.get('generation') or 0}"
    if not is_observed(managed_resource):
        generation += f", applied is {status.get('observedGeneration') or 0}"
    class_name = class_of(managed_resource) or DEFAULT_CLASS
    facts: list[tuple[str, Child]] = [
        ("Class", class_name if knowledge.is_ours(managed_resource) else f"{class_name} (of another agent)"),
        ("Created", joined(moment(meta.get("creationTimestamp"), now), " ago")),
        ("Generation", generation),
        ("Objects", f"{len(listed_in(managed_resource)):,}"),
        ("Finalizers", ", ".join(finalizers(managed_resource)) or "none"),
    ]
    if meta.get("deletionTimestamp"):
        facts.insert(2, ("Deletion asked for", joined(moment(meta["deletionTimestamp"], now), " ago")))
    switches = [name for name in _SWITCHES if is_truthy(str(spec.get(name)))]
    if switches:
        facts.append(("Switched on", ", ".join(switches)))
    message = message_of(managed_resource)
    is_new = state_of(managed_resource) in {State.SUSPENDED, State.PENDING}
    pairs = [
        element("div", element("dt", name), element("dd", value), class_="long" if name == "Finalizers" else None)
        for name, value in facts
    ]
    return element(
        "section",
        element("p", shortened(message)) if message and is_new else None,
        element("dl", *pairs, class_="facts"),
        class_="sheet padded",
        aria_label="Facts",
    )


_SWITCHES = ("keepObjects", "forceOverwriteLabels", "forceOverwriteAnnotations", "deletePersistentVolumeClaims")


def _advice(managed_resource: Object, seen: Sequence[SeenObject]) -> Markup | None:
    # What is missing here is not in another cluster, as it may be for who asks with a kubeconfig.
    there = [Live(each.reference, None, each.verdict) for each in seen if _is_there(each.verdict) and each.verdict]
    advice = hints(managed_resource, there)
    if not advice:
        return None
    items = [element("li", each) for each in advice]
    return element(
        "section",
        element("h2", "What to do", id="advice"),
        element("ul", *items),
        class_="sheet padded advice",
        aria_labelledby="advice",
    )


def _is_there(verdict: Verdict | None) -> bool:
    return verdict is not None and verdict.health is not Health.MISSING


def _conditions(managed_resource: Object, now: datetime) -> Markup:
    conditions: Sequence[Object] = (managed_resource.get("status") or {}).get("conditions") or []
    conditions = sorted(conditions, key=lambda found: found.get("type") or "")
    rows = [
        element(
            "tr",
            element("th", found.get("type"), scope="row"),
            element("td", condition_badge(found.get("type") or "", found.get("status") or "")),
            element("td", moment(found.get("lastTransitionTime"), now)),
            element("td", moment(found.get("lastUpdateTime"), now)),
            element("td", found.get("reason")),
            element("td", shortened(found.get("message") or ""), class_="words full"),
        )
        for found in conditions
    ]
    names = ("Condition", "Status", "Since", "Updated", "Reason", "Message")
    caption = "Conditions" if rows else "There are no conditions yet."
    return table(caption, [column(name) for name in names], rows, label="Conditions")


# --- the tree


def _tree(knowledge: Knowledge, managed_resource: Object, seen: Sequence[SeenObject]) -> Markup:
    namespace = key(managed_resource).namespace
    knows_secrets = knowledge.knows_secrets(managed_resource)
    by_secret: dict[str, list[SeenObject]] = {}
    for each in seen:
        by_secret.setdefault(each.secret, []).append(each)
    branches = []
    for position, name in enumerate(list(dict.fromkeys(secret_names(managed_resource)))[:_OBJECTS]):
        own = by_secret.pop(name, [])
        missing = None if knowledge.has_secret(Key(namespace, name)) else health_badge(Health.MISSING)
        label = joined(element("span", "Secret ", class_="kind"), name, " ", missing)
        branches.append(_branch(f"secret-{position}", label, own, counted=knows_secrets))
    if left := [each for some in by_secret.values() for each in some]:
        others = "In no Secret any more" if knows_secrets else "Objects"
        branches.append(_branch("others", others, left, counted=True))
    total = len(listed_in(managed_resource))
    return element(
        "section",
        element("h2", "Secrets and objects", id="tree"),
        element("ul", *branches, class_="tree"),
        element("p", f"{total - len(seen):,} more are not shown.") if total > len(seen) else None,
        element("p", _what_is_shown(knowledge, managed_resource), class_="quiet"),
        class_="sheet padded",
        aria_labelledby="tree",
    )


def _what_is_shown(knowledge: Knowledge, managed_resource: Object) -> str:
    if not knowledge.is_ours(managed_resource):
        return "It is of another class, so how its objects fare is not known here."
    if not knowledge.leads:
        return "How objects fare, and which Secret they come from, the leader knows."
    return (
        "As the watches of the agent tell. It counts the pods of Deployments; what else objects have made is not "
        "watched, and shown by kubectl mr tree."
    )


def _branch(identity: str, label: Child, objects: Sequence[SeenObject], *, counted: bool) -> Markup:
    if not objects:
        return element("li", label)
    count = element("span", f" {len(objects):,}", class_="quiet") if counted else None
    return element(
        "li",
        element("details", element("summary", label, count), _leaves(objects), id=identity, open=True),
    )


def _leaves(objects: Iterable[SeenObject]) -> Markup:
    return element("ul", *(_leaf(each) for each in objects))


def _leaf(seen: SeenObject) -> Markup:
    reference, verdict = seen.reference, seen.verdict
    namespace = reference.get("namespace")
    pods = f"{seen.pods} pod" + ("" if seen.pods == 1 else "s")
    return element(
        "li",
        element("span", f"{reference.get('kind') or ''} ", class_="kind", title=reference.get("apiVersion")),
        f"{namespace}/" if namespace else None,
        f"{reference.get('name') or ''} ",
        health_badge(verdict.health) if verdict is not None else None,
        f" {shortened(verdict.message, 1000)}" if verdict is not None and verdict.message else None,
        element("ul", element("li", pods)) if seen.pods is not None else None,
    )

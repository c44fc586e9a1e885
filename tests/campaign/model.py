"""What users want, as plain data: sections of named entries. An edit replaces one entry, or takes it away.

    managed        ManagedResources: their class, the objects they hold, each with a version, and how these are packed
    services       Services with the annotations that network policies follow from
    tokens         Secrets that ask for tokens
    referrers      workloads and the immutable ConfigMaps and Secrets that they refer to
    collectables   all such ConfigMaps and Secrets that were ever made
    nodes          Nodes with the taint that waits for critical components

`Author` invents edits that make sense for what there is. It is pure: the same dice, the same edits.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

SECTIONS = ("managed", "services", "tokens", "referrers", "collectables", "nodes")
Model = dict[str, dict[str, Any]]

SETTLED = ("apps-0", "apps-1")
"""Namespaces of the target cluster that stay."""
FLEETING = "fleeting"
"""One that faults delete and recreate."""
CLASSES = ("", "second")
"""Of ManagedResources; each has agents of its own."""
KINDS = ("ConfigMap", "Secret", "Service", "Role", "ServiceAccount", "Deployment", "Widget")
MOST = {"managed": 8, "services": 8, "tokens": 6, "referrers": 5, "nodes": 4}
_MOST_OBJECTS = 12
"""Of one ManagedResource."""


@dataclass(frozen=True, slots=True)
class Edit:
    section: str
    name: str
    value: Any = None
    """None: it goes."""


def empty() -> Model:
    return {section: {} for section in SECTIONS}


def apply(model: Model, edit: Edit) -> Model:
    """A new model."""
    section = {name: entry for name, entry in model[edit.section].items() if name != edit.name}
    if edit.value is not None:
        section[edit.name] = copy.deepcopy(edit.value)
    return {**model, edit.section: section}


def apply_all(model: Model, edits: Iterator[Edit] | list[Edit]) -> Model:
    for edit in edits:
        model = apply(model, edit)
    return model


def withdrawal(model: Model) -> list[Edit]:
    """The edits after which nothing is wanted. What was made to be collected is left to the collector."""
    return [Edit(section, name) for section in SECTIONS if section != "collectables" for name in model[section]]


class Author:
    """Invents edits; numbers make names that were never used before."""

    def __init__(self, dice: Random) -> None:
        self._dice = dice
        self._number = 0

    def initial_edits(self) -> list[Edit]:
        """What there is before any fault: some of each."""
        model, edits = empty(), list[Edit]()
        for section, count in (("managed", 4), ("services", 3), ("tokens", 3), ("referrers", 2), ("nodes", 2)):
            for _ in range(count):
                new = self._add(section, model)
                model = apply_all(model, new)
                edits += new
        return edits

    def edits(self, model: Model) -> list[Edit]:
        """What a user does at once: one edit, or two that belong together."""
        section = self._dice.choices(
            ("managed", "services", "tokens", "referrers", "nodes"), weights=(6, 2, 1, 2, 1), k=1
        )[0]
        present = sorted(model[section])
        if not present or (len(present) < MOST[section] and self._dice.random() < 0.3):
            return self._add(section, model)
        name = self._dice.choice(present)
        if len(present) > 1 and self._dice.random() < 0.2:
            return [Edit(section, name)]
        return self._change(section, name, model)

    # --- new entries

    def _new(self, stem: str) -> str:
        self._number += 1
        return f"{stem}-{self._number}"

    def _add(self, section: str, model: Model) -> list[Edit]:
        match section:
            case "managed":
                objects = dict(self._object() for _ in range(self._dice.randint(2, 8)))
                present = [entry["class"] for entry in model[section].values()]
                entry = {"class": min(CLASSES, key=present.count), **self._packed(objects)}
                return [Edit(section, self._new("mr"), entry)]
            case "services":
                return [Edit(section, f"{self._namespace()}/{self._new('s')}", self._service())]
            case "tokens":
                entry = {"account": self._new("account"), "elsewhere": self._dice.random() < 0.3}
                return [Edit(section, self._new("token"), entry)]
            case "referrers":
                return self._refer(f"{self._dice.choice(SETTLED)}/{self._new('r')}", model, [])
            case _:
                return [Edit(section, self._new("n"), {"waits": self._dice.random() < 0.4})]

    def _namespace(self) -> str:
        return self._dice.choice((*SETTLED, *SETTLED, FLEETING))

    def _object(self) -> tuple[str, int]:
        kind = self._dice.choice(KINDS)
        return f"{kind}/{self._namespace()}/{self._new('o')}", 1

    def _packed(self, objects: dict[str, int]) -> dict[str, Any]:
        return {
            "objects": objects,
            "packing": self._dice.choice(("plain", "brotli")),
            "secrets": self._dice.choice((1, 1, 2)),
        }

    def _service(self) -> dict[str, Any]:
        return {
            "port": self._dice.choice((80, 443, 8080)),
            "clients": sorted(self._dice.sample(SETTLED, self._dice.randint(0, 2))),
            "alias": self._dice.random() < 0.3,
            "world": self._dice.random() < 0.3,
        }

    def _refer(self, referrer: str, model: Model, kept: list[str]) -> list[Edit]:
        namespace = referrer.partition("/")[0]
        made = [
            f"{self._dice.choice(('configmap', 'secret'))}/{namespace}/{self._new('c')}"
            for _ in range(self._dice.randint(1, 3))
        ]
        kind = (model["referrers"].get(referrer) or {}).get("kind") or self._dice.choice(("Deployment", "CronJob"))
        value = {"kind": kind, "refers": sorted([*kept, *made])}
        # Who refers is written before what is referred to, so that a slow write is no reason to collect anything.
        return [Edit("referrers", referrer, value), *(Edit("collectables", name, {}) for name in made)]

    # --- changed ones

    def _change(self, section: str, name: str, model: Model) -> list[Edit]:
        entry = copy.deepcopy(model[section][name])
        match section:
            case "managed":
                return self._change_managed(name, entry, model)
            case "services":
                return [Edit(section, name, self._service())]
            case "tokens":
                return [Edit(section, name), *self._add(section, model)]  # another account needs another Secret
            case "referrers":
                return self._refer(name, model, [each for each in entry["refers"] if self._dice.random() < 0.4])
            case _:
                return [Edit(section, name, {"waits": False})]

    def _change_managed(self, name: str, entry: dict[str, Any], model: Model) -> list[Edit]:
        objects: dict[str, int] = entry["objects"]
        others = sorted(model["managed"].keys() - {name})
        how = self._dice.choice(("versions", "versions", "swap", "move", "move", "move", "pack"))
        if how == "move" and others and len(objects) > 1:
            of_other_class = [other for other in others if model["managed"][other]["class"] != entry["class"]]
            other = self._dice.choice([*others, *of_other_class])
            receiver = copy.deepcopy(model["managed"][other])
            moved = self._dice.choice(sorted(objects))
            receiver["objects"][moved] = objects.pop(moved)
            edits = [Edit("managed", name, entry), Edit("managed", other, receiver)]
            self._dice.shuffle(edits)
            return edits
        if how == "swap":
            for gone in self._dice.sample(sorted(objects), len(objects) // 3):
                del objects[gone]
            new = dict(self._object() for _ in range(self._dice.randint(1, 3)))
            objects.update(dict(list(new.items())[: max(_MOST_OBJECTS - len(objects), 0)]))
        elif how == "pack":
            return [Edit("managed", name, {**entry, **self._packed(objects)})]
        else:
            for changed in self._dice.sample(sorted(objects), (len(objects) + 1) // 2):
                objects[changed] += 1
        return [Edit("managed", name, entry)]

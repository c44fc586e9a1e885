"""Normal forms: objects without what differs from run to run, so that observations can be compared.

Left out are uids, versions, times, managed fields and what other controllers add. Addresses and ports that the API
server has allocated become numbers in the order of their appearance, so a change of one still shows; an object that was
recreated is told by `incarnation`. What an API server adds in some versions of Kubernetes and not in others is left out
of both sides when they are compared.
"""

import base64
import copy
import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from conformance.scenario_data import Observations, Scenario
from kube.objects import Object

_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_COUNT = re.compile(r"\(x\d+ over \w+\)")
_AGE = re.compile(r"\b(\d+[smhdy])+ ago")
_PENDING = re.compile(r"errors occurred: \[(deletion of .*)\]", re.DOTALL)

_VOLATILE = {
    *("creationTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields", "resourceVersion", "selfLink"),
    "uid",
}
_OF_OTHER_CONTROLLERS = {
    "deployment.kubernetes.io/revision",
    "deprecated.daemonset.template.generation",
    "node.alpha.kubernetes.io/ttl",
    "volumes.kubernetes.io/controller-managed-attach-detach",
}
_UNSETTLED_REFERENCES = ("resources", "secretsDataChecksum")
"""While applying fails it is open whether these are stored before or after."""
_OF_SOME_VERSIONS = {
    "creationTimestamp": None,  # in templates, of older ones
    "manualSelector": False,
    "podReplacementPolicy": "TerminatingOrFailed",
}
"""Fields that not every API server adds, with the value that it adds."""


class Normal:
    """The normal forms of one scenario's objects."""

    def __init__(self, *, namespace: str, checksum_varies: bool) -> None:
        self._namespace = namespace
        self._checksum_varies = checksum_varies
        self._allocated: dict[tuple[str, Any], str] = {}
        self._uids: dict[tuple[str, str, str], list[str]] = {}

    def of(self, live: Object | None, *, final: bool = False) -> Any:
        """Args: final: this is what the observation tells; only such looks count incarnations."""
        if live is None:
            return "absent"
        obj = copy.deepcopy(live)
        incarnation = self._incarnation(obj) if final else 1
        status = obj.pop("status", None)
        obj["metadata"] = {
            name: True if name == "deletionTimestamp" else value
            for name, value in obj["metadata"].items()
            if name not in _VOLATILE
        }
        match obj["kind"]:
            case "ManagedResource" if status is not None:
                obj["status"] = self._status(status)
            case "Secret":
                data = (obj.get("data") or {}).items()
                obj["data"] = {name: base64.b64decode(text).decode(errors="replace") for name, text in data}
            case "CustomResourceDefinition":
                obj["spec"].pop("conversion", None)
            case "Namespace":
                obj["spec"] = {}
            case "Service":
                self._number_allocations(obj["spec"])
            case "Node":
                obj = _taints(obj)
        normal: Object = self._walk(obj)
        return normal if incarnation == 1 else {**normal, "incarnation": incarnation}

    def _incarnation(self, obj: Object) -> int:
        if obj["kind"] == "ManagedResource":
            return 1
        meta = obj["metadata"]
        known = self._uids.setdefault((obj["kind"], meta.get("namespace") or "", meta["name"]), [])
        if meta["uid"] not in known:
            known.append(meta["uid"])
        return known.index(meta["uid"]) + 1

    def _status(self, status: Object) -> Object:
        told = {name: status[name] for name in (*_UNSETTLED_REFERENCES, "observedGeneration") if name in status}
        conditions = [
            {field: found.get(field) for field in ("type", "status", "reason", "message")}
            for found in status.get("conditions") or []
        ]
        if any(found["reason"] == "ApplyFailed" for found in conditions):
            for name in _UNSETTLED_REFERENCES:
                told.pop(name, None)
        elif self._checksum_varies and "secretsDataChecksum" in told:
            told["secretsDataChecksum"] = f"<{len(told['secretsDataChecksum'])} digits>"
        return {**told, "conditions": sorted(conditions, key=lambda found: found["type"])}

    def _number_allocations(self, spec: Object) -> None:
        if spec.get("clusterIP") not in {None, "", "None"}:
            spec["clusterIP"] = self._number("ip", spec["clusterIP"])
            spec["clusterIPs"] = ["<allocated>"]
        for holder in (*spec.get("ports", ()), spec):
            for name in ("nodePort", "healthCheckNodePort"):
                if holder.get(name):
                    holder[name] = self._number("port", holder[name])

    def _number(self, what: str, value: Any) -> str:
        number = 1 + sum(kind == what for kind, _ in self._allocated)
        return self._allocated.setdefault((what, value), f"<allocated {what} {number}>")

    def _walk(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {
                self.text(name): self._walk(inner)
                for name, inner in value.items()
                if name not in _OF_OTHER_CONTROLLERS and not (inner == {} and name in {"labels", "annotations"})
            }
        if isinstance(value, list):
            return [self._walk(inner) for inner in value]
        return self.text(value) if isinstance(value, str) else value

    def text(self, text: str) -> str:
        text = _TIME.sub("<time>", _UID.sub("<uid>", text)).replace(self._namespace, "$NS")
        text = _AGE.sub("<age> ago", _COUNT.sub("(x<n> over <age>)", text))
        if pending := _PENDING.search(text):  # the original lists these as they happen to end
            parts = sorted(re.split(r", (?=deletion of )", pending[1]))
            text = text.replace(pending[1], ", ".join(parts))
        return text


def _taints(node: Object) -> Object:
    """Of a Node only its taints are looked at, without those that the cluster itself adds."""
    taints = [taint for taint in node["spec"].get("taints") or [] if not taint["key"].startswith("node.kubernetes.io/")]
    meta = {"name": node["metadata"]["name"]}
    return {"apiVersion": node["apiVersion"], "kind": node["kind"], "metadata": meta, "taints": taints}


def is_settled(normal: Any) -> bool:
    """False while a ManagedResource reports that something is under way or wrong; it may report something else soon."""
    if not isinstance(normal, dict) or normal.get("kind") != "ManagedResource":
        return True
    status = normal.get("status") or {}
    conditions = status.get("conditions") or []
    return bool(
        conditions
        and status.get("observedGeneration") is not None
        and all(found["status"] == str(found["type"] != "ResourcesProgressing") for found in conditions)
    )


def without_wording(value: Any) -> Any:
    """Without texts that are for people: messages of conditions, descriptions."""
    if isinstance(value, dict):
        is_condition = {"reason", "status"} <= value.keys()
        return {
            name: without_wording(inner)
            for name, inner in value.items()
            if not name.endswith("gardener.cloud/description") and not (is_condition and name == "message")
        }
    return [without_wording(inner) for inner in value] if isinstance(value, list) else value


def of_any_version(value: Any) -> Any:
    """Without what only API servers of some versions add."""
    if isinstance(value, dict):
        return {
            name: of_any_version(inner)
            for name, inner in value.items()
            if name not in _OF_SOME_VERSIONS or inner != _OF_SOME_VERSIONS[name]
        }
    return [of_any_version(inner) for inner in value] if isinstance(value, list) else value


def contains(whole: Any, part: Any) -> bool:
    """Whether everything in `part` is in `whole`; items of lists in any order. {$not: x}: anything but x."""
    if isinstance(part, dict) and part.keys() == {"$not"}:
        return not contains(whole, part["$not"])
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(contains(whole.get(name), inner) for name, inner in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return all(any(contains(candidate, inner) for candidate in whole) for inner in part)
    return bool(part == whole)


@dataclass(frozen=True, slots=True)
class Judge:
    """Tells observations from recorded ones; where the original behaves badly, from what would be right.

    Args:
        seen_as: what is made of observations before they are looked at.
        compared_as: what is made of both before they are compared with each other.
        wanted: by id, what users expect where the original does otherwise and the recording does not report so.
    """

    seen_as: Callable[[Any], Any] = lambda seen: seen
    compared_as: Callable[[Any], Any] = lambda value: value
    wanted: Mapping[str, Observations] = field(default_factory=dict)

    def accepts(self, scenario: Scenario, seen: Observations) -> bool:
        """Whether the observations so far are as they are to be in the end."""
        return not self.difference(scenario, seen, is_final=False)

    def difference(self, scenario: Scenario, seen: Observations, *, is_final: bool = True) -> str:
        """From the release that comes nearest, or from what would be right; empty if there is none."""
        found = of_any_version(self.seen_as(seen))
        wanted = self.wanted.get(scenario.id) or (scenario.want if scenario.peer_defect else None)
        expected = [*scenario.expect.values()] if wanted is None else [wanted]
        if not is_final:
            expected = [{name: each[name] for name in seen if name in each} for each in expected]
        expected = of_any_version(expected)
        if wanted is not None:
            return "" if contains(found, expected[0]) else _diff(expected[0], found)
        found, expected = self.compared_as(found), [self.compared_as(each) for each in expected]
        return "" if found in expected else min((_diff(each, found) for each in expected), key=len)


def _diff(wanted: Any, seen: Any) -> str:
    first, second = (yaml.safe_dump(value, width=1000).splitlines() for value in (wanted, seen))
    return "\n".join(difflib.unified_diff(first, second, "wanted", "seen", n=2, lineterm="")) or "they differ"

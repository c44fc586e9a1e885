"""Recorded scenarios: what was done to a cluster in which the original ran, and what it looked like afterwards.

Each line of a file such as `managed_resources.jsonl.gz` is a scenario: its steps, and for each observation the
objects in normal form (`scenario_normal`) as two releases of the original left them, `seed` and `newest`. Equal to
either is right. Where the original itself behaves badly there is `peer_defect`, and `want` tells the part of the
observations that would be right.

Steps are one of
    {put: [object]}                              create it, or replace what is there
    {patch: ref, body, type, sub}
    {delete: [ref]}
    {sleep: seconds}
    {observe: name, of: [ref], stable, bound}    when nothing has changed for `stable` seconds, at most `bound`

with ref = 'apps/v1 Deployment [namespace/]name', in observations also {list: [apiVersion, kind, namespace, selector]}. `x-data` of a Secret holds what its data is made of (`encoded`). $NS,
$NS2 and $NS3 are the scenario's own namespaces.
"""

import base64
import copy
import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import brotli
import msgspec
import yaml

from kube.objects import Object

Observations = dict[str, dict[str, Any]]
"""By the name of the observation the objects in normal form, by ref."""


class Scenario(msgspec.Struct, frozen=True):
    id: str
    area: str
    steps: list[Object]
    expect: dict[str, Observations] = {}
    peer_defect: str = ""
    want: Observations = {}

    def steps_in(self, namespace: str) -> list[Object]:
        steps: list[Object] = json.loads(json.dumps(self.steps).replace("$NS", namespace))
        return steps

    def namespaces(self, first: str) -> list[str]:
        text = json.dumps(self.steps)
        return [first, *(first + number for number in "23" if f"$NS{number}" in text)]

    @property
    def has_variable_data(self) -> bool:
        """Whether the data of its Secrets, and so their checksum, differs from run to run."""
        return any("$NS" in json.dumps(obj.get("x-data")) for step in self.steps for obj in step.get("put", ()))

    @property
    def seconds(self) -> float:
        """About how long it takes."""
        return float(sum(step.get("stable", 5) + step.get("sleep", 0) for step in self.steps))


def load(*names: str) -> dict[str, Scenario]:
    """The scenarios of these files, by their ids."""
    files = (gzip.decompress(Path(__file__).with_name(f"{name}.jsonl.gz").read_bytes()) for name in names)
    scenarios = (msgspec.json.decode(line, type=Scenario) for file in files for line in file.splitlines())
    return {scenario.id: scenario for scenario in scenarios}


@dataclass(frozen=True, slots=True)
class Ref:
    api_version: str
    kind: str
    namespace: str
    name: str

    @classmethod
    def parse(cls, text: str, *, namespace: str) -> "Ref":
        api_version, kind, name = text.split(" ")
        if "/" in name:
            namespace, name = name.split("/")
        return cls(api_version, kind, namespace, name)

    @classmethod
    def of(cls, obj: Object) -> "Ref":
        meta = obj["metadata"]
        return cls(obj["apiVersion"], obj["kind"], meta.get("namespace") or "", meta["name"])


def prepared(recorded: Object, namespace: str) -> Object:
    """An object as a step puts it: with its data, and in this namespace unless it names one; all are namespaced."""
    obj = copy.deepcopy(recorded)
    if (data := obj.pop("x-data", None)) is not None:
        obj["data"] = {key: encoded(key, value) for key, value in data.items()}
    obj["metadata"].setdefault("namespace", namespace)
    return obj


class _Dumper(yaml.SafeDumper):
    """Checksums were recorded of just this layout; short strings are quoted since 'y' and 'on' mean something."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(
    str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if len(text) < 4 else "")
)


def encoded(key: str, value: Any) -> str:
    """The base64 text of one key: {base64: ...} as it is, else a text or objects, as JSON, YAML or Brotli by the key."""
    if isinstance(value, dict):
        return str(value["base64"])
    if isinstance(value, str):
        text = value
    elif ".json" in key:
        text = "".join(f"{json.dumps(obj)}\n" for obj in value)
    else:
        text = yaml.dump_all(value, Dumper=_Dumper, sort_keys=False)
    content = brotli.compress(text.encode()) if key.endswith(".br") else text.encode()
    return base64.b64encode(content).decode()

"""What a ManagedResource asks for: its Secrets decoded, in the order in which it is applied.

A plan is made once for each version of the Secrets and of the labels to inject. Manifests are held as compressed
JSON, since most passes need no more of them than a digest.
"""

import asyncio
import base64
import binascii
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent.managed_resource import keys
from agent.managed_resource.decode import COMPRESSED_SUFFIX, DecodeError, DecodeResult, decode_secrets
from agent.managed_resource.messages import restricted_text
from agent.managed_resource.order import in_stages
from agent.managed_resource.problems import problem_of, superseded
from agent.managed_resource.references import (
    in_its_namespace,
    key_of,
    reference_of,
    resource_string,
    secrets_checksum,
)
from agent.managed_resource.restrictions import Refusal, no_refusal
from agent.managed_resource.stamps import InjectionError, inject_labels, injected_labels
from agent.responsibility import is_ignored
from kube.bodies import compact, packed, unpacked
from kube.discovery import Discovery
from kube.errors import KubeError
from kube.objects import Key, Object, annotations, group_of, key, metadata
from kube.resources import Resource

LARGE = 16 << 10
"""Bytes of a manifest from which on it is handled in turn with others of that size; it is not compressed either."""
_OFF_THE_LOOP = 16 * 1024
"""Bytes from which on the work is done in a thread, lest requests on the same event loop wait for it."""
_DEFINITION = "CustomResourceDefinition"
_UNFOLDING = 16
"""How many bytes one compressed byte is likely to become; nobody knows before."""


@dataclass(frozen=True, slots=True)
class Basis:
    """What a plan was made of; an equal basis gives an equal plan, if all kinds were served."""

    injected_labels: tuple[tuple[str, str], ...]
    secrets: tuple[tuple[str, str, int], ...]
    """Name, uid and resourceVersion, in order."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """An object to apply."""

    name: str
    """Its object key."""
    text: str
    """Its resource string."""
    key: Key
    resource: Resource | None
    problem: str
    """Why it can't be applied; then the resource may be missing."""
    reference: Object
    manifest: bytes
    """Packed, if it is not large."""
    digest: bytes
    is_ignored: bool
    secret: str
    """The name of the Secret that it comes from."""

    def object(self) -> Object:
        return unpacked(self.manifest)


@dataclass(frozen=True, slots=True)
class Plan:
    basis: Basis
    stages: tuple[tuple[Wanted, ...], ...]
    refused: Mapping[str, str]
    """Objects that may not be written, by object key, with the text of the error; they are in no stage."""
    references: tuple[Object, ...]
    """As decoded, duplicates included, those without a name left out; sorted they are `status.resources`."""
    released: tuple[Object, ...]
    """References of objects in mode Ignore."""
    checksum: str
    decode_errors: tuple[str, ...]
    is_complete: bool
    """Whether all kinds were served; if not, the plan has to be made again to see whether they are now."""

    @property
    def awaited(self) -> int:
        """How many objects have a kind that is not served yet, but defined by another one of its objects."""
        defined = {w.key.name.partition(".")[2] for w in self.wanted() if w.reference.get("kind") == _DEFINITION}
        return sum(
            w.resource is None and group_of(w.reference.get("apiVersion") or "") in defined for w in self.wanted()
        )

    def wanted(self) -> list[Wanted]:
        return [wanted for stage in self.stages for wanted in stage]

    @property
    def resources(self) -> set[Resource]:
        """The kinds of its objects, as far as they were served."""
        return {wanted.resource for wanted in self.wanted() if wanted.resource is not None}


Data = Sequence[tuple[Key, Mapping[str, bytes]]]
Kinds = dict[tuple[str, str], Resource | KubeError]
"""By apiVersion and kind, or why it is not known."""


def data_of(secrets: Sequence[Object]) -> Data:
    """The data of Secrets. What is no base64 can't come from an API server."""
    try:
        return [
            (key(secret), {name: base64.b64decode(value) for name, value in (secret.get("data") or {}).items()})
            for secret in secrets
        ]
    except binascii.Error as error:
        raise KubeError(f"the API server sent a Secret whose data is no base64: {error}") from error


async def make_plan(
    *,
    basis: Basis,
    data: Data,
    discovery: Discovery,
    managed_by: str,
    only_workloads: bool,
    refusal: Refusal = no_refusal,
) -> Plan:
    """Raises nothing for bad content: that is in the plan's errors and problems.

    With `only_workloads` labels are put on the pod templates of known workloads only.
    """
    labels = injected_labels(dict(basis.injected_labels), managed_by=managed_by)
    if _size(data) < _OFF_THE_LOOP:
        decoded = decode_secrets(data)
        found = await _discover(decoded, discovery)
        return _plan(basis, data, decoded, found, labels=labels, only_workloads=only_workloads, refusal=refusal)
    decoded = await asyncio.to_thread(decode_secrets, data)
    found = await _discover(decoded, discovery)
    return await asyncio.to_thread(
        _plan, basis, data, decoded, found, labels=labels, only_workloads=only_workloads, refusal=refusal
    )


def _size(data: Data) -> int:
    """About how many bytes there are to be decoded."""
    return sum(
        len(value) * (_UNFOLDING if name.endswith(COMPRESSED_SUFFIX) else 1)
        for _, values in data
        for name, value in values.items()
    )


def _plan(
    basis: Basis,
    data: Data,
    decoded: DecodeResult,
    found: Kinds,
    *,
    labels: Mapping[str, str],
    only_workloads: bool,
    refusal: Refusal,
) -> Plan:
    contents = dict(data)

    objects: list[Object] = []
    secrets: list[str] = []
    named: list[Object] = []
    released: list[Object] = []
    fed: list[bytes] = []
    for item in decoded.objects:
        resource = found[_kind(item.object)]
        namespaced = resource.namespaced if isinstance(resource, Resource) else None
        obj = in_its_namespace(item.object, namespaced=namespaced)
        reference = reference_of(obj, injected_labels=labels)
        if annotations(obj).get(keys.MODE) == keys.MODE_IGNORE:
            released.append(reference)
            continue
        objects.append(obj)
        secrets.append(item.secret.name)
        named.append(reference)
        fed.append(contents[item.secret][item.data_key])
    passed_over = superseded(objects)
    wanted = [
        _wanted(
            obj,
            named[position],
            secrets[position],
            found[_kind(obj)],
            labels=labels,
            only_workloads=only_workloads,
        )
        for position, obj in enumerate(objects)
        if position not in passed_over
    ]
    refused = {
        each.name: restricted_text(each.text, reason)
        for each in wanted
        if each.resource is not None and (reason := refusal(each.resource, each.key))
    }
    permitted = [each for each in wanted if each.name not in refused]
    return Plan(
        basis=basis,
        stages=tuple(tuple(stage) for stage in in_stages(permitted, _sort_key)),
        refused=refused,
        references=tuple(reference for reference in named if reference.get("name")),
        released=tuple(released),
        checksum=secrets_checksum(fed),
        decode_errors=tuple(_texts(decoded.errors)),
        is_complete=all(isinstance(resource, Resource) for resource in found.values()),
    )


def _texts(errors: Sequence[DecodeError]) -> list[str]:
    return [str(error) for error in errors]


def _sort_key(wanted: Wanted) -> Object:
    return {"kind": wanted.reference.get("kind"), "metadata": {"name": wanted.key.name}}


def _kind(obj: Object) -> tuple[str, str]:
    return obj.get("apiVersion") or "", obj.get("kind") or ""


async def _discover(decoded: DecodeResult, discovery: Discovery) -> Kinds:
    found: Kinds = {}
    for api_version, kind in {_kind(item.object) for item in decoded.objects}:
        try:
            found[api_version, kind] = await discovery.find(api_version, kind)
        except KubeError as error:
            found[api_version, kind] = error
    return found


def _wanted(
    obj: Object,
    reference: Object,
    secret: str,
    resource: Resource | KubeError,
    *,
    labels: Mapping[str, str],
    only_workloads: bool,
) -> Wanted:
    problem = ""
    text = resource_string(obj)
    ignored = is_ignored(obj)
    if known := problem_of(obj):
        problem = f'error during apply of object "{text}": {known.message}'
    elif isinstance(resource, KubeError):
        problem = f'error during apply of object "{text}": {resource}'
    if not ignored:
        try:
            obj = inject_labels(obj, labels, only_workloads=only_workloads)
        except InjectionError as error:
            problem = f'error injecting labels into object "{text}": {error}'
    manifest = compact(obj)
    meta = metadata(obj)
    return Wanted(
        name=key_of(obj),
        text=text,
        key=Key(meta.get("namespace") or "", meta.get("name") or ""),
        resource=resource if isinstance(resource, Resource) else None,
        problem=problem,
        reference=reference,
        manifest=manifest if len(manifest) >= LARGE else packed(manifest),
        digest=hashlib.blake2b(manifest, digest_size=16).digest(),
        is_ignored=ignored,
        secret=secret,
    )

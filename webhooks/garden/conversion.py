"""Conversion webhook of ControllerDeployments, the only kind with two versions.

v1beta1 has a `type` and a `providerConfig` that is of the type's own kind. v1 has a field for the one type that
Gardener knows, `helm`; other types are stored in annotations, so that a round trip loses nothing.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import orjson

from gardener.api.garden import CONTROLLER_DEPLOYMENTS
from kube.objects import Object, annotations, mapping, mappings, text
from webhooks.bounds import TooManyValues, demand_few_values
from webhooks.garden.kinds.controller_deployment import PROVIDER_CONFIG, TYPE
from webhooks.offload import offloaded
from webhooks.review import dumped

PATH = "/webhooks/garden/convert"
API_VERSION, KIND = "apiextensions.k8s.io/v1", "ConversionReview"
HELM = "helm"
_V1, _V1BETA1 = f"{CONTROLLER_DEPLOYMENTS.group}/v1", f"{CONTROLLER_DEPLOYMENTS.group}/v1beta1"
_OWN_FIELDS = frozenset(("helm", "type", "providerConfig"))


class NotConvertible(ValueError):
    """An object cannot be converted; the text has its version and kind, or the reason."""


async def answer(body: bytes, _content_type: str) -> bytes:
    """Answer a ConversionReview with all objects converted, or with the reason of the failure."""
    return await offloaded(partial(_answer, body))


def _answer(body: bytes) -> bytes:
    try:
        demand_few_values(body)
        request = mapping(mapping(orjson.loads(body)).get("request"))
    except (TooManyValues, orjson.JSONDecodeError) as error:
        return _answered("", {"result": {"status": "Failure", "message": f"unable to decode {KIND}: {error}"}})
    wanted = text(request.get("desiredAPIVersion"))
    try:
        converted = [convert(obj, wanted) for obj in mappings(request.get("objects"))]
    except NotConvertible as error:
        return _answered(text(request.get("uid")), {"result": {"status": "Failure", "message": str(error)}})
    return _answered(text(request.get("uid")), {"convertedObjects": converted, "result": {"status": "Success"}})


def _answered(uid: str, response: Object) -> bytes:
    return dumped({"apiVersion": API_VERSION, "kind": KIND, "response": {"uid": uid, **response}})


def convert(obj: Object, api_version: str) -> Object:
    """Return the object in another version.

    Raises:
        NotConvertible: the kind or version is unknown, or an annotation is not valid JSON.
    """
    known = obj.get("kind") == CONTROLLER_DEPLOYMENTS.kind and obj.get("apiVersion") in _CONVERSIONS
    if not known or api_version not in _CONVERSIONS:
        raise NotConvertible(f"cannot convert {obj.get('apiVersion')}, Kind={obj.get('kind')} to {api_version}")
    if obj["apiVersion"] == api_version:
        return obj
    common = {name: value for name, value in obj.items() if name not in _OWN_FIELDS}
    return _CONVERSIONS[api_version]({**common, "apiVersion": api_version}, obj)


def _to_v1(common: Object, obj: Object) -> Object:
    config = obj.get("providerConfig")
    if obj.get("type") == HELM:
        return {**common, "helm": _renamed(mapping(config), chart="rawChart")}
    kept = {TYPE: text(obj.get("type"))} if obj.get("type") else {}
    if config is not None:
        kept[PROVIDER_CONFIG] = dumped(config).decode()
    return _with_annotations(common, {**annotations(obj), **kept})


def _to_v1beta1(common: Object, obj: Object) -> Object:
    if (helm := obj.get("helm")) is not None:
        return {**common, "type": HELM, "providerConfig": _renamed(mapping(helm), rawChart="chart")}
    kept = annotations(obj)
    others = {name: value for name, value in kept.items() if name not in {TYPE, PROVIDER_CONFIG}}
    converted = _with_annotations(common, others) | {"type": kept.get(TYPE, "")}
    if written := kept.get(PROVIDER_CONFIG):
        converted["providerConfig"] = _json(written)
    return converted


_CONVERSIONS: dict[Any, Callable[[Object, Object], Object]] = {_V1: _to_v1, _V1BETA1: _to_v1beta1}


def _renamed(config: Object, **names: str) -> Object:
    kept = (*names, "values", "ociRepository")
    return {names.get(name, name): config[name] for name in kept if config.get(name) is not None}


def _with_annotations(obj: Object, wanted: dict[str, str]) -> Object:
    meta = {name: value for name, value in mapping(obj.get("metadata")).items() if name != "annotations"}
    return {**obj, "metadata": {**meta, "annotations": wanted} if wanted else meta}


def _json(written: str) -> Any:
    try:
        return orjson.loads(written)
    except orjson.JSONDecodeError as error:
        raise NotConvertible(f"annotation {PROVIDER_CONFIG} is not valid JSON: {error}") from None

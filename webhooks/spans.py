"""What the span of an admission request says. Nothing of the object itself: it may be a Secret."""

from binascii import a2b_base64

import orjson

from kube.objects import Object
from kube.tracing import Attributes, Value
from webhooks.admission import Request


def admission(webhook: str, request: Request, response: Object) -> Attributes:
    """The attributes of a request and its answer."""
    attributes: dict[str, Value] = {
        "admission.webhook": webhook,
        "admission.uid": request.uid,
        "admission.operation": request.operation,
        "admission.kind": request.kind.kind,
        "admission.group": request.kind.group,
        "admission.version": request.kind.version,
        "k8s.namespace.name": request.namespace,
        "k8s.object.name": request.name,
        "admission.dry_run": request.dry_run,
        "admission.allowed": response["allowed"],
        "admission.patch_operations": _operations(response),
    }
    code = response["status"].get("code")
    if isinstance(code, int):
        attributes["admission.code"] = code
    return attributes


def _operations(response: Object) -> int:
    patch = response.get("patch")
    return len(orjson.loads(a2b_base64(patch))) if patch else 0

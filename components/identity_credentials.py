"""Credentials of a Shoot from a WorkloadIdentity: a Secret with two writers.

The flow writes the purpose of the token; the requestor of tokens writes the token, and its renewal time. Other writers
may add fields. Therefore the flow only patches its own fields; of credentials of another kind nothing stays.
"""

import base64
from collections.abc import Mapping

import orjson

from components.parts import made
from components.shoot_infrastructure import SECRET
from gardener import keys
from gardener.api.garden import SHOOTS
from kube.objects import Object, annotations, key, labels, string_map, text, uid
from kube.paths import at
from kube.resources import SECRETS

TOKEN, _CONFIG = "token", "config"


def secret(namespace: str, identity: Object, *, shoot: Object) -> Object:
    """Fields of the Secret that the flow owns. Args: identity: the WorkloadIdentity."""
    name, of_shoot = key(identity), key(shoot)
    context = {**SHOOTS.type_meta, "namespace": of_shoot.namespace, "name": of_shoot.name, "uid": uid(shoot)}
    config = at(identity, "spec", "targetSystem", "providerConfig")
    return made(
        SECRETS,
        SECRET,
        namespace=namespace,
        labels={
            keys.NAMESPACE_PURPOSE: SECRET,
            keys.SECURITY_PURPOSE: keys.PURPOSE_WORKLOAD_IDENTITY_TOKEN_REQUESTOR,
            keys.WORKLOAD_IDENTITY_PROVIDER: text(at(identity, "spec", "targetSystem", "type")),
        },
        annotations={
            keys.WORKLOAD_IDENTITY_NAME: name.name,
            keys.WORKLOAD_IDENTITY_NAMESPACE: name.namespace,
            keys.WORKLOAD_IDENTITY_CONTEXT_OBJECT: orjson.dumps(context).decode(),
        },
        type="Opaque",
        data={} if config is None else {_CONFIG: base64.b64encode(orjson.dumps(config)).decode()},
    )


def patch(wanted: Object, live: Object) -> Object | None:
    """A merge patch for the live Secret; None if it is up to date."""
    notes: Object = {keys.GARDENLET_COMPONENT: None, keys.GARDENLET_DIGEST: None, **annotations(wanted)}
    if not annotations(wanted).items() <= annotations(live).items():
        notes[keys.WORKLOAD_IDENTITY_RENEW_TIMESTAMP] = None  # its token is for another purpose
    is_same_kind = keys.SECURITY_PURPOSE in labels(live)
    gone = {_CONFIG} if is_same_kind else {*string_map(live.get("data"))}
    changes = {
        "labels": _changes(labels(live), {keys.GARDENLET_MANAGED: None, **labels(wanted)}),
        "annotations": _changes(annotations(live), notes),
        "data": _changes(string_map(live.get("data")), {**dict.fromkeys(gone), **wanted["data"]}),
    }
    if not any(changes.values()):
        return None
    data = changes.pop("data")
    return {"metadata": {"uid": uid(live), **changes}, **({"data": data} if data else {})}


def _changes(present: Mapping[str, str], wanted: Object) -> Object:
    return {name: value for name, value in wanted.items() if present.get(name) != value}


def lacks_token(live: Object | None) -> str:
    """Reason why the credentials can't be used yet; empty if they can."""
    return "" if string_map((live or {}).get("data")).get(TOKEN) else "it has no token yet"

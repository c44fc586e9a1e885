"""Configuration of the agents on nodes, in the Shoot: a Secret for each pool with its OperatingSystemConfig."""

import base64
import hashlib
from collections.abc import Collection, Iterable, Sequence

import yaml

from components.control_plane import access_secret, in_shoot_by_parts
from components.manifest import manifest
from components.namespaces import KUBE_SYSTEM
from components.parts import made
from components.worker_pools.pools import NODE_AGENT, POOL, Pool
from gardener import keys
from gardener.api.extensions import OPERATING_SYSTEM_CONFIGS
from kube.objects import Object, annotations, key, labels, mapping, spec
from kube.resources import SECRETS
from kube.yaml import Dumper

NAME = f"shoot-{NODE_AGENT}"
"""Name of the ManagedResource."""
CHECKSUM = "checksum/data-script"
"""Annotation of the Secret of a pool."""
APPLIED = "checksum/cloud-config-data"
"""Annotation of Nodes: the checksum of the configuration that the agent has applied."""
_CONTENT, _ROLE = "osc.yaml", "operating-system-config"
_RIGHTS = "rbac"
"""Name of a part, in addition to those of pools."""
_TOKEN_LIFE = "720h"
_OF_GONE_POOLS = 10


def objects(
    namespace: str, configs: Sequence[tuple[Pool, Object]], of_old_nodes: Sequence[Object] = ()
) -> list[Object]:
    """Args:
    namespace: of the Shoot, in the seed.
    configs: of pools, with the status from their extensions.
    of_old_nodes: Secrets in the Shoot by former keys of pools, see `is_secret`, which stay unchanged.
    """
    parts: dict[str, list[Object]] = {pool.name: [_secret(pool, config)] for pool, config in configs}
    for each in of_old_nodes:
        parts.setdefault(labels(each)[POOL], []).append(_as_it_is(each))
    names = [*(pool.key for pool, _ in configs), *(key(each).name for each in of_old_nodes)]
    parts.setdefault(_RIGHTS, []).extend(manifest(__file__, "node_agent_rights.yaml", secrets=[NODE_AGENT, *names]))
    access = access_secret(NODE_AGENT, namespace, lifetime=_TOKEN_LIFE)
    target = {keys.TARGET_SECRET_NAME: NODE_AGENT, keys.TARGET_SECRET_NAMESPACE: KUBE_SYSTEM}
    access["metadata"]["annotations"] |= target
    return [access, *in_shoot_by_parts(NAME, parts, namespace=namespace)]


def former(named: Iterable[str], present: Collection[str]) -> list[str]:
    """Names of Secrets that nodes have by former keys of pools, limited to the number that pools may have left behind.

    The limit exists since users of the Shoot can label its nodes with any number of names.
    """
    return sorted({*named} - {*present})[: 2 * len(present) + _OF_GONE_POOLS]


def is_secret(obj: Object) -> bool:
    """Whether a Secret is one of the agents': users control the labels of nodes, which might name any Secret."""
    return labels(obj).get(keys.ROLE) == _ROLE and bool(labels(obj).get(POOL))


def content_of(config: Object) -> bytes:
    """Content of an agent's Secret: an OperatingSystemConfig with the additions of its extension."""
    status = mapping(config.get("status"))
    added = {name: status[name] for name in ("extensionUnits", "extensionFiles") if status.get(name)}
    whole = {**OPERATING_SYSTEM_CONFIGS.type_meta, "spec": spec(config), **({"status": added} if added else {})}
    written: str = yaml.dump(whole, Dumper=Dumper, sort_keys=True, width=1 << 20)
    return written.encode()


def checksum_of(config: Object) -> str:
    return hashlib.sha256(content_of(config)).hexdigest()


def _secret(pool: Pool, config: Object) -> Object:
    data = base64.b64encode(content_of(config)).decode()
    return _made(pool.key, pool=pool.name, checksum=checksum_of(config), data={_CONTENT: data})


def _as_it_is(live: Object) -> Object:
    checksum = annotations(live).get(CHECKSUM, "")
    return _made(key(live).name, pool=labels(live)[POOL], checksum=checksum, data=mapping(live.get("data")))


def _made(name: str, *, pool: str, checksum: str, data: Object) -> Object:
    return made(
        SECRETS,
        name,
        namespace=KUBE_SYSTEM,
        labels={keys.ROLE: _ROLE, POOL: pool},
        annotations={CHECKSUM: checksum},
        data=data,
    )

"""The BackupEntry of a Shoot, in the garden: the location of its etcd's backups."""

from components.parts import made
from gardener import keys
from gardener.api.garden import BACKUP_ENTRIES, SHOOTS
from kube.objects import Object, metadata, spec, text
from kube.paths import at


def name(shoot: Object) -> str:
    return f"{text(at(shoot, 'status', 'technicalID'))}--{text(at(shoot, 'status', 'uid'))}"


def source_name(shoot: Object) -> str:
    """Name of the entry for backups in the bucket of another Seed."""
    return f"source-{name(shoot)}"


def source(shoot: Object, *, bucket: str, seed: str) -> Object:
    """Args: see `entry`."""
    made_ = entry(shoot, bucket=bucket, seed=seed)
    made_["metadata"]["name"] = source_name(shoot)
    return made_


def entry(shoot: Object, *, bucket: str, seed: str) -> Object:
    """Args: bucket: the BackupBucket; the uid of the Seed. seed: name of the Seed."""
    meta = metadata(shoot)
    owner = {
        **SHOOTS.type_meta,
        "name": text(meta.get("name")),
        "uid": text(meta.get("uid")),
        "controller": True,
        "blockOwnerDeletion": False,
    }
    purpose = text(spec(shoot).get("purpose"))
    made_ = made(
        BACKUP_ENTRIES,
        name(shoot),
        namespace=text(meta.get("namespace")),
        annotations={keys.SHOOT_PURPOSE: purpose} if purpose else None,
        spec={"bucketName": bucket, "seedName": seed},
    )
    made_["metadata"]["ownerReferences"] = [owner]
    return made_

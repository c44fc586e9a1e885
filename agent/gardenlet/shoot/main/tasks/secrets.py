"""Names and content of the Secrets that were generated in an operation."""

import csv
import io
from datetime import datetime

from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.rules import rotation
from components.kube_apiserver import Key
from components.secrets import tables
from components.secrets.configs import (
    ENCRYPTION_KEY,
    ENCRYPTION_SECRET,
    STATIC_TOKENS,
)
from components.secrets.shoot_rotation import rotations
from components.secrets.stored import Stored
from gardener.garden.shoots import workers
from kube.objects import Object, spec

HEALTH_USER = "health-check"


def rotation_times(shoot: Object) -> dict[str, datetime]:
    """Times of the last requested rotations of a Shoot, by config."""
    has_static_kubeconfig = rotation.has_static_kubeconfig(shoot)
    configs = tables.rotated(has_workers=bool(workers(spec(shoot))), has_static_kubeconfig=has_static_kubeconfig)
    return rotations(shoot, has_static_kubeconfig=has_static_kubeconfig).requested(configs)


def name_of(operation: ShootOperation, config: str) -> str:
    """Name of the current Secret of a config.

    Raises:
        SecretsError: it was not generated before.
    """
    return operation.keys.get(config).current.name


def health_token(operation: ShootOperation) -> str:
    """Token of the user for health checks of the API server."""
    content = operation.keys.get(_TOKENS).current.data[STATIC_TOKENS].decode()
    return next(row[0] for row in csv.reader(io.StringIO(content)) if row[1] == HEALTH_USER)


_TOKENS = tables.static_tokens(has_cluster_admin=False).name


def encryption_key(stored: Stored) -> Key:
    return Key(stored.data[ENCRYPTION_KEY].decode(), stored.data[ENCRYPTION_SECRET].decode())

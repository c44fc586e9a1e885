"""extension-validation: refuse extension resources, and Etcds, that break the rules of their kind.

There is one webhook per kind, since the API server gets the kinds by webhook. The fields are those of the kind's
description in `gardener.api.extensions`, the modules here have the rules that a schema cannot express, or that have to
be reported in the words of the original; `kind` builds a webhook from them.
"""

from webhooks.handlers.extension_validation.dns_record import DNS_RECORD
from webhooks.handlers.extension_validation.etcd import ETCD
from webhooks.handlers.extension_validation.kind import Kind
from webhooks.handlers.extension_validation.network import NETWORK
from webhooks.handlers.extension_validation.operating_system_config import OPERATING_SYSTEM_CONFIG
from webhooks.handlers.extension_validation.plain_kinds import (
    BACKUP_BUCKET,
    BACKUP_ENTRY,
    BASTION,
    CONTAINER_RUNTIME,
    CONTROL_PLANE,
    EXTENSION,
    INFRASTRUCTURE,
)
from webhooks.handlers.extension_validation.self_hosted_shoot_exposure import SELF_HOSTED_SHOOT_EXPOSURE
from webhooks.handlers.extension_validation.worker import WORKER

KINDS: tuple[Kind, ...] = (
    BACKUP_BUCKET,
    BACKUP_ENTRY,
    BASTION,
    CONTAINER_RUNTIME,
    CONTROL_PLANE,
    DNS_RECORD,
    ETCD,
    EXTENSION,
    INFRASTRUCTURE,
    NETWORK,
    OPERATING_SYSTEM_CONFIG,
    SELF_HOSTED_SHOOT_EXPOSURE,
    WORKER,
)
"""Kinds in the order of the entries of the webhook configuration."""

WEBHOOKS = tuple(kind.webhook() for kind in KINDS)

"""Rights of a gardenlet without a certificate, by its bootstrap token or ServiceAccount: those of a ClusterRole."""

from gardener.rights.gardenlet import FOR_GARDENLETS
from gardener.rights.model import ALL, Right, Table
from kube.resources import CERTIFICATE_SIGNING_REQUESTS

TABLE = Table(
    (
        Right(CERTIFICATE_SIGNING_REQUESTS, frozenset({"create", "get"}), ALL),
        Right(CERTIFICATE_SIGNING_REQUESTS, frozenset({"create"}), ALL, subresource=FOR_GARDENLETS),
    )
)

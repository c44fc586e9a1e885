"""What operators see of a gardenlet beside its controllers."""

from prometheus_client import Gauge

gardenlet_cluster_reachable = Gauge(
    "gardenlet_cluster_reachable",
    "1 if the last heartbeat reached the API server of this cluster (garden or seed), 0 if not.",
    ("cluster",),
)
gardenlet_certificate_start_timestamp_seconds = Gauge(
    "gardenlet_certificate_start_timestamp_seconds",
    "When the client certificate for the garden became valid, in Unix time; 0: there is none.",
)
gardenlet_certificate_expiration_timestamp_seconds = Gauge(
    "gardenlet_certificate_expiration_timestamp_seconds",
    "When the client certificate for the garden ends, in Unix time; 0: there is none.",
)

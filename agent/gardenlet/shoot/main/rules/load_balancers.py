"""Address of a load balancer, from the status of its Service."""

from kube.objects import Object, integer, text
from kube.paths import mappings_at


def published(service: Object | None, port: int) -> tuple[str, int]:
    """Address and port at which a load balancer serves a port of its Service; no address: there is none yet.

    If the load balancer lists other ports than its Service, they are in the same order.
    """
    entry, *_ = [*mappings_at(service or {}, "status", "loadBalancer", "ingress"), {}]
    address = text(entry.get("ip")) or text(entry.get("hostname"))
    listed = [integer(each.get("port")) for each in mappings_at(entry, "ports")]
    own = [each.get("port") for each in mappings_at(service or {}, "spec", "ports")]
    return address, port if port in listed else dict(zip(own, listed, strict=False)).get(port, port)

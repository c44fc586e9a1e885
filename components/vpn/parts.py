"""Common parts of both ends of the tunnel."""

from collections.abc import Mapping

from kube.objects import Object

SERVER = "vpn-seed-server"
TUNNEL = 1194
"""Port of the tunnel."""
TLS_AUTH = "/srv/secrets/tlsauth"
OWNER_ONLY = 0o400
DEVICE = {"name": "dev-net-tun", "hostPath": {"path": "/dev/net/tun", "type": "CharDevice"}}
DEVICE_MOUNT = {"name": "dev-net-tun", "mountPath": "/dev/net/tun"}


def projected(secret: str, files: Mapping[str, str]) -> Object:
    """A source of a volume. Args: files: key of the Secret -> name of the file."""
    return {"secret": {"name": secret, "items": [{"key": field, "path": path} for field, path in files.items()]}}

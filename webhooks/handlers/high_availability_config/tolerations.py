"""How long pods stay on a Node that fails, where the API server's default is not right."""

from config.schema_webhooks import HighAvailabilityConfig
from kube.objects import Object

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"

_NO_EXECUTE = "NoExecute"


def with_defaults(existing: list[Object] | None, settings: HighAvailabilityConfig) -> list[Object] | None:
    """A toleration of everything is no decision about these two, and they are added beside it."""
    defaults = {
        NOT_READY: settings.default_not_ready_toleration_seconds,
        UNREACHABLE: settings.default_unreachable_toleration_seconds,
    }
    missing = [
        {"key": key, "operator": "Exists", "effect": _NO_EXECUTE, "tolerationSeconds": seconds}
        for key, seconds in defaults.items()
        if seconds is not None and not _is_tolerated(existing or (), key)
    ]
    return [*(existing or ()), *missing] if missing else existing


def _is_tolerated(tolerations: list[Object] | tuple[()], key: str) -> bool:
    return any(
        toleration.get("key") == key and (toleration.get("effect") or _NO_EXECUTE) == _NO_EXECUTE
        for toleration in tolerations
    )

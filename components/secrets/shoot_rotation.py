"""Rotations in the status of a Shoot: time of each config's rotation, and the use of its old Secret.

Phases are not a closed set: an unknown one counts as preparing, in which everything works with both.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from components.secrets.configs import (
    Authority,
    BasicAuth,
    Config,
    EncryptionKey,
    RSAKey,
    StaticTokens,
)
from components.secrets.rotation import Old
from gardener.garden import rotations as of_shoots
from kube.clock import time_or_none
from kube.objects import mapping, text

_OVER = ("", of_shoots.COMPLETED)


@dataclass(frozen=True, slots=True)
class Rotations:
    """`status.credentials.rotation` of a Shoot."""

    status: Mapping[str, Any]
    has_static_kubeconfig: bool
    """Whether the Shoot has a kubeconfig with a static token, whose rotation users request."""

    def requested(self, configs: Iterable[Config]) -> dict[str, datetime]:
        """Times of requested rotations, for `SecretsManager.open`."""
        times = {config.name: self._initiated(self._of(config)) for config in configs}
        return {name: moment for name, moment in times.items() if moment}

    def old(self, config: Config, *, servers_by_current: Collection[str] = ()) -> Old:
        """Use of the old Secret, for `SecretsManager.generate`.

        Args:
            config: the generated config.
            servers_by_current: names of CAs whose servers all use certificates of the current one.
        """
        rotation = self._of(config)
        if rotation in ("", of_shoots.SSH):
            return Old.IN_USE
        match text(mapping(self.status.get(rotation)).get("phase")):
            case phase if phase in _OVER:
                # Even if the clean-up is not complete: trust that was removed is not restored.
                return Old.IGNORED
            case phase if phase == of_shoots.COMPLETING:
                is_first = rotation == of_shoots.AUTHORITIES and config.name not in servers_by_current
                return Old.VERIFIES if is_first else Old.IGNORED
            case _:
                return Old.IN_USE

    def _of(self, config: Config) -> str:
        """Rotation that changes a config; empty if none."""
        match config:
            case Authority():
                return of_shoots.AUTHORITIES
            case StaticTokens():
                return of_shoots.KUBECONFIG if self.has_static_kubeconfig else of_shoots.AUTHORITIES
            case RSAKey(has_bundle=True):
                return of_shoots.SERVICE_ACCOUNT_KEY
            case RSAKey():
                return of_shoots.SSH
            case EncryptionKey():
                return of_shoots.ENCRYPTION_KEY
            case BasicAuth():
                return of_shoots.OBSERVABILITY
            case _:
                return ""

    def _initiated(self, rotation: str) -> datetime | None:
        return time_or_none(mapping(self.status.get(rotation)).get("lastInitiationTime"))


def rotations(shoot: Mapping[str, Any], *, has_static_kubeconfig: bool) -> Rotations:
    credentials = mapping(mapping(shoot.get("status")).get("credentials"))
    return Rotations(mapping(credentials.get("rotation")), has_static_kubeconfig)

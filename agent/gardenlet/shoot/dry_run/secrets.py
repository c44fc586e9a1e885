"""Secrets manager for dry runs: it generates no keys.

A Secret that would take a second to generate has a name that marks it as new, and placeholders as content: components
need no more.
"""

from collections.abc import Mapping

from agent.gardenlet.common.secrets_manager import SecretsManager
from components.secrets.configs import (
    CA_CERTIFICATE,
    CA_KEY,
    CERTIFICATE,
    KEY,
    RSA_KEY,
    RSA_PUBLIC_KEY,
    Authority,
    Config,
    Given,
    RSAKey,
    SignedCertificate,
)
from components.secrets.stored import Stored, secret
from kube.resources import SECRETS

_TO_BE_MADE = b"to be made"


class NoNewSecrets(SecretsManager):
    """Secrets manager for dry runs; its client must record writes."""

    async def _created(
        self,
        config: Config,
        name: str,
        labels: Mapping[str, str],
        signer: Stored | None,  # noqa: ARG002 - nothing is signed
    ) -> Stored:
        fields = _fields_of_keys(config)
        if fields:
            name, data = f"{config.name}-new", dict.fromkeys(fields, _TO_BE_MADE)
        else:
            data = dict(config.make(Given(name, None, self._clock())).data)
        await self._client.create(SECRETS, secret(self._namespace, name, labels, data))
        made = Stored(name=name, labels=labels, data=data)
        self._found[name] = made
        return made


def _fields_of_keys(config: Config) -> tuple[str, ...]:
    """Data fields of a Secret that is slow to generate; empty for others."""
    match config:
        case Authority():
            return CA_CERTIFICATE, CA_KEY
        case SignedCertificate():
            return CERTIFICATE, KEY
        case RSAKey():
            return RSA_KEY, RSA_PUBLIC_KEY
    return ()

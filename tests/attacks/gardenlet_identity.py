"""A gardenlet that tries to become another one, or one without a Seed.

    python -m tests.attacks.gardenlet_identity

Each attack is a few requests to the API server of a garden on loopback, of this program's own. A request for a certificate
counts as refused if it is not approved within some seconds, in which others are. To attack another checkout, run a copy
of this file there.
"""

import base64
import hashlib
import secrets
import sys
import time
from collections.abc import Callable
from dataclasses import replace

from agent.controller_manager.certificate_signing_request import USAGES
from devcluster.cluster import Cluster
from devcluster.garden.box import GardenBox
from gardener.api.garden import SHOOTS
from gardener.keys import SEED_USER_PREFIX, SEEDS_GROUP
from kit.garden import Garden
from kit.garden_shoots import ShootPlace
from kit.signing.requests import CLIENT, csr_object, signing_request
from kube.errors import ApiError, Forbidden
from kube.objects import condition
from kube.resources import CERTIFICATE_SIGNING_REQUESTS, SECRETS

_BOOTSTRAPPERS = "system:bootstrappers:gardenlet"
_HOLDER = "system:bootstrap:abcdef"
"""Of a bootstrap token, impersonated."""
_APPROVAL = replace(CERTIFICATE_SIGNING_REQUESTS, plural="certificatesigningrequests/seedclient")
_APPROVAL_SECONDS = 5.0


class Gardenlet:
    """The gardenlet of a Seed, and the name of another Seed."""

    def __init__(self, garden: Garden) -> None:
        self.garden = garden
        self.seed, self.victim = (ShootPlace(garden).seed() for _ in range(2))
        self.own = garden.as_gardenlet(self.seed)
        for each in (CERTIFICATE_SIGNING_REQUESTS, _APPROVAL):
            garden.allow(_HOLDER, "create", each)

    def write_token(self, groups: str, *, kind: str = "bootstrap.kubernetes.io/token") -> None:
        identity = hashlib.sha256(f"{self.seed}garden--{self.seed}".encode()).hexdigest()[:6]
        data = {"token-id": identity, "token-secret": secrets.token_hex(8), "auth-extra-groups": groups}
        data |= {f"usage-bootstrap-{usage}": "true" for usage in ("authentication", "signing")}
        account = {"annotations": {"kubernetes.io/service-account.name": "generic-garbage-collector"}}
        name, place = f"bootstrap-token-{identity}", "kube-system"
        encoded = {field: base64.b64encode(value.encode()).decode() for field, value in data.items()}
        self.own.create(SECRETS, name, namespace=place, type=kind, data=encoded, metadata=account, dry_run=True)

    def request(self, seed: str, group: str = "system:authenticated") -> None:
        """Of a certificate, with a token that has this group. Raises Forbidden: it is not approved."""
        name = f"csr-{secrets.token_hex(4)}"
        body = signing_request(f"{SEED_USER_PREFIX}{seed}", organizations=[SEEDS_GROUP])
        csr = csr_object(body, signer=CLIENT, usages=sorted(USAGES))
        self.garden.as_user(_HOLDER, group).create(CERTIFICATE_SIGNING_REQUESTS, name, spec=csr["spec"])
        end = time.monotonic() + _APPROVAL_SECONDS
        while time.monotonic() < end:
            if condition(self.garden.get(CERTIFICATE_SIGNING_REQUESTS, name), "Approved"):
                return
            time.sleep(0.2)
        raise Forbidden(403, message="it is not approved")

    def list_shoots(self, user: str) -> None:
        self.garden.as_user(user, SEEDS_GROUP).get(SHOOTS, "")


def _token(groups: str) -> Callable[[Gardenlet], None]:
    return lambda gardenlet: gardenlet.write_token(groups.format(seed=gardenlet.seed, victim=gardenlet.victim))


def _request(seed: str, group: str = "system:authenticated") -> Callable[[Gardenlet], None]:
    def attack(gardenlet: Gardenlet) -> None:
        names = {"seed": gardenlet.seed, "victim": gardenlet.victim}
        gardenlet.request(seed.format(**names), group.format(**names))

    return attack


def _list(user: str) -> Callable[[Gardenlet], None]:
    return lambda gardenlet: gardenlet.list_shoots(user)


_FOR = f"{_BOOTSTRAPPERS}:seed:"
_ATTACKS: dict[str, Callable[[Gardenlet], None]] = {
    "a bootstrap token for any new Seed": _token(_BOOTSTRAPPERS),
    "a bootstrap token for another Seed": _token(f"{_BOOTSTRAPPERS},{_FOR}{{victim}}"),
    "a bootstrap token for another Seed, by itself": _token(f"{_BOOTSTRAPPERS},{_FOR}{{victim}}:by:{{seed}}"),
    "the token of a controller of Kubernetes": lambda gardenlet: gardenlet.write_token(
        _BOOTSTRAPPERS, kind="kubernetes.io/service-account-token"
    ),
    "a certificate of an existing Seed": _request("{victim}"),
    "a certificate of another Seed than the token's": _request("new", f"{_FOR}{{seed}}:by:{{seed}}"),
    "a certificate by a token of a gardenlet that is not responsible": _request(
        "{victim}", f"{_FOR}{{victim}}:by:{{seed}}"
    ),
    "a certificate without the name of a Seed": _request(""),
    "a certificate of a Seed whose name is no DNS label": _request("a_b"),
    "Shoots, without a name": _list(SEED_USER_PREFIX),
    "Shoots, with a name that is no DNS label": _list(f"{SEED_USER_PREFIX}A_B"),
    "Shoots, with the name of an administrator": _list("system:admin"),
}


def main() -> int:
    with Cluster() as cluster:
        box = GardenBox(cluster)
        box.install()
        box.start_controllers()
        gardenlet = Gardenlet(Garden(cluster))
        print("| Attack | Outcome |\n|---|---|", flush=True)
        gardenlet.request(f"new-{secrets.token_hex(3)}")
        for name, attack in _ATTACKS.items():
            try:
                attack(gardenlet)
            except ApiError as error:
                outcome = "refused" if error.status in {400, 403} else f"error: {error}"
            else:
                outcome = "done"
            print(f"| {name} | {outcome} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

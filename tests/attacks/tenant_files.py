"""What a member of a Project tries with the files of a Shoot's API server: to run a command there, or read a file.

    python -m tests.attacks.tenant_files

Garden and webhooks are real. Each file is tried three times: named by a new Shoot, by a change of its object while a
Shoot uses it, and where admission did not see it, before the gardenlet writes it. A file of each kind is good.
"""

import base64
import json
import sys
from collections.abc import Mapping
from functools import partial

import yaml

from devcluster.cluster import Cluster
from gardener.tenant_files import UnusableFile
from gardener.tenant_files.references import KUBECONFIG, POLICY, USERS, Purpose, rewritten
from kit.eventually import eventually
from kit.garden import Garden, installed
from kit.garden_shoots import ShootPlace
from kube.errors import ApiError
from kube.objects import Object
from kube.resources import SECRETS

_EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/sh", "args": ["-c", "id"]}
_KIND = {"apiVersion": "v1", "kind": "Config"}
_POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: []\n"
_USERS = "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: AuthenticationConfiguration\n"


def kubeconfig(user: Object, **more: object) -> bytes:
    return json.dumps({**_KIND, "users": [{"name": "x", "user": user}], **more}).encode()


_CALM = {"name": "y", "user": {"token": "t"}}
_GOOD: Mapping[Purpose, bytes] = {
    KUBECONFIG: kubeconfig({"token": "t"}),
    POLICY: _POLICY.encode(),
    USERS: _USERS.encode(),
}
_ATTACKS: tuple[tuple[str, Purpose, bytes], ...] = (
    ("a command", KUBECONFIG, kubeconfig({"exec": _EXEC})),
    ("in capitals", KUBECONFIG, kubeconfig({"EXEC": _EXEC})),
    ("as YAML", KUBECONFIG, yaml.safe_dump(json.loads(kubeconfig({"exec": _EXEC}))).encode()),
    ("with a mark of byte order", KUBECONFIG, b"\xef\xbb\xbf" + kubeconfig({"exec": _EXEC})),
    ("in UTF-16", KUBECONFIG, kubeconfig({"exec": _EXEC}).decode().encode("utf-16")),
    ("by a merge key", KUBECONFIG, b"apiVersion: v1\nkind: Config\nusers: [{name: x, user: {<<: {exec: {command: id}}}}]"),
    ("of another user", KUBECONFIG, kubeconfig({}, users=[_CALM, {"name": "x", "user": {"exec": _EXEC}}])),
    ("by a key that stands twice", KUBECONFIG, b'{"users": [{"name": "x", "user": {"exec": {"command": "id"}}}], "users": [{"name": "x"}],' + kubeconfig({"token": "t"})[1:]),
    ("with an escaped key", KUBECONFIG, kubeconfig({"exec": _EXEC}).replace(b'"exec"', b'"\\u0065xec"')),
    ("by an anchor", KUBECONFIG, b"apiVersion: v1\nkind: Config\nusers: [{name: x, user: &a {exec: {command: id}}}, {name: y, user: *a}]"),
    ("with carriage returns", KUBECONFIG, b"apiVersion: v1\r\nkind: Config\r\nusers: [{name: x, user: {exec: {command: id}}}]"),
    ("a key that Go folds", KUBECONFIG, kubeconfig({"to\u212aenFile": "/etc/passwd"})),
    ("a server behind a proxy", KUBECONFIG, kubeconfig({}, clusters=[{"name": "x", "cluster": {"server": "https://a", "proxy-url": "http://b"}}])),
    ("in a second document", KUBECONFIG, kubeconfig({"token": "t"}) + b"\n---\n" + kubeconfig({"exec": _EXEC})),
    ("a plugin for credentials", KUBECONFIG, kubeconfig({"auth-provider": {"name": "gcp"}})),
    ("a file as token", KUBECONFIG, kubeconfig({"tokenFile": "/etc/passwd"})),
    ("a file as key", KUBECONFIG, kubeconfig({"client-key": "/etc/passwd", "client-certificate": "/etc/passwd"})),
    ("no version", KUBECONFIG, json.dumps({"users": []}).encode()),
    ("garbage", KUBECONFIG, bytes(range(256))),
    ("depth", KUBECONFIG, b"[" * 50_000),
    ("a bomb of aliases", KUBECONFIG, b"".join(b"a%d: &a%d [%s]\n" % (n, n, b"*a%d," % (n - 1) * 9 * bool(n)) for n in range(9))),
    ("a field of no policy", POLICY, f"{_POLICY}path: /etc/passwd\n".encode()),
    ("an issuer without TLS", USERS, f"{_USERS}jwt: [{{issuer: {{url: 'http://169.254.169.254/'}}}}]".encode()),
    ("a file as authority", USERS, f"{_USERS}jwt: [{{issuer: {{url: 'https://a', certificateAuthority: /etc/passwd}}}}]".encode()),
)  # fmt: skip


def holder(purpose: Purpose, content: bytes) -> Object:
    """Fields of the object that holds a file."""
    if purpose.resource == SECRETS:
        return {"data": {purpose.key: base64.b64encode(content).decode()}}
    return {"data": {purpose.key: content.decode()}}


def named_by(purpose: Purpose, name: str) -> Object:
    """`spec.kubernetes.kubeAPIServer` of a Shoot that uses the object."""
    if purpose == KUBECONFIG:
        return {"admissionPlugins": [{"name": "ImagePolicyWebhook", "kubeconfigSecretName": name}]}
    if purpose == POLICY:
        return {"auditConfig": {"auditPolicy": {"configMapRef": {"name": name}}}}
    return {"structuredAuthentication": {"configMapName": name}}


class Tenant:
    """With a Shoot that uses a good file of each kind."""

    def __init__(self, garden: Garden) -> None:
        self.place = ShootPlace(garden)
        self.place.seed()
        for number, (purpose, content) in enumerate(_GOOD.items()):
            self.place.create(purpose.resource, f"used-{number}", **holder(purpose, content))
            self.shoot(f"u{number}", named_by(purpose, f"used-{number}"))
        self.used = {purpose: f"used-{number}" for number, purpose in enumerate(_GOOD)}
        bad = holder(KUBECONFIG, b"garbage")
        eventually(lambda: not self.change(KUBECONFIG, bad), "admission to see the Shoots")

    def shoot(self, name: str, server: Object) -> Object:
        return self.place.shoot(name, kubernetes={"version": "1.30.1", "kubeAPIServer": server})

    def change(self, purpose: Purpose, fields: Object) -> bool:
        """Whether it is accepted."""
        patch = partial(self.place.patch, purpose.resource, self.used[purpose])
        return accepted(partial(patch, fields))


def accepted(attempt: partial[Object]) -> bool:
    try:
        attempt()
    except ApiError as error:
        assert error.status in {400, 403, 413, 422}, error
        return False
    return True


def written(purpose: Purpose, fields: Object) -> bool:
    try:
        rewritten(purpose, fields)
    except UnusableFile:
        return False
    return True


def main() -> int:
    failed = 0
    with Cluster() as cluster:
        tenant = Tenant(installed(cluster))
        print("| File | New Shoot | Changed later | Written by the gardenlet |\n|---|---|---|---|")
        for number, (what, purpose, content) in enumerate(_ATTACKS):
            fields, name = holder(purpose, content), f"f{number}"
            tenant.place.create(purpose.resource, name, **fields)
            results = (
                accepted(partial(tenant.shoot, name, named_by(purpose, name))),
                tenant.change(purpose, fields),
                written(purpose, fields),
            )
            failed += sum(results)
            print(f"| {what} | {' | '.join('ACCEPTED' if each else 'refused' for each in results)} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

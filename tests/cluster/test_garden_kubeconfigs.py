"""`kubectl gardener kubeconfig` on a real API server, which is that of the Shoot, too: it trusts the same authority."""

import asyncio
import os
import shlex
import shutil
import stat
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from gardener.api.garden import CORE_GROUP, INTERNAL_SECRETS, MANAGED_SEEDS, SHOOTS
from kit.eventually import eventually
from kit.garden import Garden
from kit.garden_shoots import ShootPlace
from kit.objects import encoded, role_binding
from kit.objects import user as of_user
from kit.world import connected
from kube.clock import parse_time
from kube.errors import ApiError, Forbidden
from kube.objects import Object
from kube.paths import at
from kube.resources import CLUSTER_ROLES, CONFIG_MAPS, ROLE_BINDINGS, SECRETS, SELF_SUBJECT_REVIEWS, Resource
from kubectl.garden.__main__ import app
from localprocesses.pki import Authority

pytestmark = pytest.mark.timeout(600)

ADMIN, VIEWER = (
    Resource(CORE_GROUP, "v1beta1", "Shoot", f"shoots/{role}kubeconfig", namespaced=True)
    for role in ("admin", "viewer")
)


@pytest.fixture
def place(garden: Garden) -> Iterator[ShootPlace]:
    """With the Shoot `s`, of whose control plane the garden's own API server is all."""
    place = ShootPlace(garden)
    place.shoot("s", seedName=place.seed())
    serve(place, "s")
    yield place
    place.remove()


def serve(place: ShootPlace, name: str) -> None:
    """Publish the control plane of a Shoot as its gardenlet does: the API server of the garden."""
    cluster = place.garden.cluster
    addresses = [{"name": "external", "url": cluster.url}, {"name": "service-account-issuer", "url": "https://x"}]
    place.patch(SHOOTS, name, {"status": {"advertisedAddresses": addresses}}, status=True)
    pair = cluster.authority.key_pair()
    data = encoded({"ca.crt": pair.certificate, "ca.key": pair.key})
    place.create(INTERNAL_SECRETS, f"{name}.ca-client", data=data)
    place.create(CONFIG_MAPS, f"{name}.ca-cluster", data={"ca.crt": cluster.ca})


def run(place: ShootPlace, *arguments: str) -> Result:
    environment = {"KUBECONFIG": str(place.garden.cluster.kubeconfig), "NO_COLOR": "1"}
    command = ["kubeconfig", *arguments, "-n", place.namespace]
    return CliRunner().invoke(app, command, prog_name="kubectl gardener", env=environment)


def allowed(place: ShootPlace, user: str, *resources: Resource) -> None:
    """For reading each, and creating those that no server serves."""
    for resource in resources:
        place.garden.allow(user, "create" if "/" in resource.plural else "get", resource)


async def whoami(kubeconfig: str, directory: Path) -> Object:
    path = directory / "kubeconfig"
    path.write_text(kubeconfig)
    path.chmod(0o600)
    async with connected(path) as client:
        review = {**SELF_SUBJECT_REVIEWS.type_meta, "metadata": {}}
        found: Object = at(await client.create(SELF_SUBJECT_REVIEWS, review), "status", "userInfo")
        return found


@pytest.mark.parametrize(
    ("flags", "right", "group"),
    [(("--admin",), ADMIN, "system:masters"), ((), VIEWER, "gardener.cloud:system:viewers")],
    ids=["admin", "viewer"],
)
def test_the_api_server_of_the_shoot_accepts_it(
    place: ShootPlace, tmp_path: Path, flags: tuple[str, ...], right: Resource, group: str
) -> None:
    user = f"user-{place.name}"
    allowed(place, user, SHOOTS, right)
    made = eventually(lambda: _made(run(place, "s", "--as", user, "--expiration", "20m", *flags)), "the rights")
    who = asyncio.run(whoami(made.stdout, tmp_path))
    assert who["username"] == user
    assert set(who["groups"]) == {group, "system:authenticated"}
    expires = parse_time(made.stderr.strip().rpartition(" ")[2])
    assert timedelta(minutes=15) < expires - datetime.now(UTC) <= timedelta(minutes=20)
    assert "client-key-data" not in made.stderr


def _made(result: Result) -> Result | None:
    """None: RBAC has not heard of the roles yet."""
    return result if result.exit_code == 0 else None


def test_who_has_one_right_has_not_the_other(place: ShootPlace) -> None:
    user = f"user-{place.name}"
    allowed(place, user, SHOOTS, INTERNAL_SECRETS, CONFIG_MAPS, VIEWER)
    eventually(lambda: _made(run(place, "s", "--as", user)), "the rights")
    refused = run(place, "s", "--as", user, "--admin")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert f'user "{user}" cannot create shoots/adminkubeconfig of "{place.namespace}/s"' in refused.stderr


def test_a_member_of_a_project_gets_a_kubeconfig_and_can_not_read_what_it_is_made_of(place: ShootPlace) -> None:
    user = f"member-{place.name}"
    given = role_binding(
        user, of_user(user), of=CLUSTER_ROLES, to="gardener.cloud:system:project-member", namespace=place.namespace
    )
    place.create(ROLE_BINDINGS, user, **{name: given[name] for name in ("roleRef", "subjects")})
    eventually(lambda: _made(run(place, "s", "--as", user)), "the role")
    with pytest.raises(Forbidden):
        place.garden.as_user(user).get(INTERNAL_SECRETS, "s.ca-client", namespace=place.namespace)


def test_the_owner_of_a_shoot_is_unknown_to_the_garden_and_to_seeds(place: ShootPlace, tmp_path: Path) -> None:
    """Each cluster has an authority of its own; that of the Shoot makes an administrator in the Shoot alone."""
    pair = Authority.create("shoot").key_pair()
    place.remove_one(INTERNAL_SECRETS, "s.ca-client")
    place.create(INTERNAL_SECRETS, "s.ca-client", data=encoded({"ca.crt": pair.certificate, "ca.key": pair.key}))
    with pytest.raises(ApiError, match="Unauthorized"):
        asyncio.run(whoami(run(place, "s").stdout, tmp_path))


def test_the_audit_log_shows_who_has_queried_and_nothing_is_stored(place: ShootPlace) -> None:
    audit = place.garden.cluster.audit()
    try:
        assert run(place, "s").exit_code == 0
        calls = [call for call in audit.calls(user_agent="kubectl-gardener") if call.resource]
    finally:
        audit.close()
    assert {(call.resource, call.name) for call in calls if call.verb == "create"} == {("shoots/viewerkubeconfig", "s")}
    assert {call.verb for call in calls} == {"create", "get"}


def test_the_certificates_of_the_api_server_may_be_in_a_secret(place: ShootPlace, tmp_path: Path) -> None:
    place.delete(CONFIG_MAPS, "s.ca-cluster")
    refused = run(place, "s")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "the CA of its API server is unknown" in refused.stderr
    place.create(SECRETS, "s.ca-cluster", data=encoded({"ca.crt": place.garden.cluster.ca.encode()}))
    who = asyncio.run(whoami(_demanded(run(place, "s", "--admin")), tmp_path))
    assert "system:masters" in who["groups"]


def _demanded(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return result.stdout


def test_an_authority_that_is_missing_is_reported(place: ShootPlace) -> None:
    place.delete(INTERNAL_SECRETS, "s.ca-client")
    refused = run(place, "s")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert f"no kubeconfig for shoot {place.namespace}/s: could not get client CA secret: it does not" in refused.stderr
    assert "the gardenlet writes it to InternalSecret SHOOT.ca-client" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("other",), "Shoot {namespace}/other not found"),
        (("s", "--expiration", "soon"), 'invalid duration "soon"'),
    ],
)
def test_what_is_wrong_is_reported(place: ShootPlace, arguments: tuple[str, ...], message: str) -> None:
    refused = run(place, *arguments)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert message.format(namespace=place.namespace) in refused.stderr


def test_a_shoot_that_sleeps_is_reported_with_the_command_that_wakes_it(place: ShootPlace) -> None:
    place.patch(SHOOTS, "s", {"spec": {"hibernation": {"enabled": True}}})
    assert "the Shoot goes to sleep now" in run(place, "s").stderr
    place.patch(SHOOTS, "s", {"status": {"hibernated": True}}, status=True)
    asleep = run(place, "s")
    remedy = f"wake it up: kubectl gardener wake s -n {place.namespace}"
    assert f"the Shoot is hibernated: its API server does not run; {remedy}\n" in asleep.stderr
    assert asleep.exit_code == 0
    place.patch(SHOOTS, "s", {"spec": {"hibernation": {"enabled": False}}})
    place.patch(SHOOTS, "s", {"status": {"hibernated": False}}, status=True)
    assert "wake it up" not in run(place, "s").stderr


def test_a_shoot_that_has_no_control_plane_yet_is_reported(place: ShootPlace) -> None:
    place.shoot("young", seedName=place.name)
    refused = run(place, "young")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert (
        f"no kubeconfig for shoot {place.namespace}/young: no suitable advertised address for kube-apiserver found"
        in refused.stderr
    )


# --- targets


def targeted(place: ShootPlace, environment: dict[str, str], *arguments: str) -> dict[str, str]:
    """The environment of a shell after it has evaluated the answer."""
    result = CliRunner().invoke(app, ["target", *arguments], prog_name="kubectl gardener", env=environment)
    assert result.exit_code == 0, result.output
    name, value = shlex.split(result.stdout)[1].split("=", 1)
    assert name == "KUBECONFIG"
    return {**environment, name: value}


def output_of(environment: dict[str, str], *arguments: str) -> str:
    result = CliRunner().invoke(app, arguments, prog_name="kubectl gardener", env=environment)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def shell(place: ShootPlace, tmp_path: Path) -> dict[str, str]:
    return {
        "KUBECONFIG": str(place.garden.cluster.kubeconfig),
        "XDG_RUNTIME_DIR": str(tmp_path),
        "NO_COLOR": "1",
    }


def test_a_project_is_targeted_without_a_copy_of_credentials(
    place: ShootPlace, shell: dict[str, str], tmp_path: Path
) -> None:
    there = targeted(place, shell, "--project", place.name)
    assert f"project: {place.name}" in output_of(there, "target")
    assert output_of(there, "why", "shoot", "s").splitlines()[0] == f"Shoot {place.namespace}/s"
    if shutil.which("kubectl"):
        files = there["KUBECONFIG"]
        listed = subprocess.run(
            ["kubectl", "get", "shoots", "-o", "name"],
            env={**os.environ, "KUBECONFIG": files},
            capture_output=True,
            text=True,
            check=True,
        )
        assert listed.stdout == "shoot.core.gardener.cloud/s\n"
    (file,) = (tmp_path / "kubectl-gardener").iterdir()
    assert not {"users", "clusters"} & yaml.safe_load(file.read_text()).keys()
    back = targeted(place, there, "--garden")
    assert "project" not in output_of(back, "target")


def test_a_shoot_is_targeted_with_credentials_for_its_user_alone(
    place: ShootPlace, shell: dict[str, str], tmp_path: Path
) -> None:
    there = targeted(place, shell, "--project", place.name, "--shoot", "s")
    file = Path(there["KUBECONFIG"])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    groups = asyncio.run(whoami(file.read_text(), tmp_path))["groups"]
    assert "gardener.cloud:system:viewers" in groups
    assert "shoot: s" in output_of(there, "target")
    assert output_of(there, "list", "-n", place.namespace, "-o", "name") == f"{place.namespace}/s\n"
    again = targeted(place, there, "--shoot", "s")  # in the same Project
    assert Path(again["KUBECONFIG"]).parent == file.parent
    file.parent.chmod(0o755)
    refused = CliRunner().invoke(app, ["target", "--shoot", "s"], env=there)
    assert refused.exit_code == 1
    assert "is not a directory of yours alone" in refused.stderr


def test_a_seed_is_targeted_by_the_shoot_that_it_runs_on(
    place: ShootPlace, shell: dict[str, str], tmp_path: Path
) -> None:
    refused = CliRunner().invoke(app, ["target", "--seed", place.name], env=shell)
    assert refused.exit_code == 1
    assert f"the cluster of Seed {place.name} is unknown" in refused.stderr
    own = ShootPlace(place.garden, is_garden=True)
    kubernetes = {"version": "1.30.1", "verticalPodAutoscaler": {"enabled": True}}
    dns = {"domain": f"{own.name}.example.com", "providers": [{"type": "unmanaged", "primary": True}]}
    own.shoot(own.name, kubernetes=kubernetes, dns=dns)
    serve(own, own.name)
    provider = {"provider": {"type": own.name, "secretRef": {"name": "dns", "namespace": "garden"}}}
    seed = {"spec": {"ingress": {"controller": {"kind": "nginx"}}, "dns": provider}}
    config = {"apiVersion": "gardenlet.config.gardener.cloud/v1alpha1", "kind": "GardenletConfiguration"}
    gardenlet = {"config": {**config, "seedConfig": seed}}
    own.create(MANAGED_SEEDS, own.name, spec={"shoot": {"name": own.name}, "gardenlet": gardenlet})
    own.seed()
    there = targeted(own, shell, "--seed", own.name)
    assert f"seed: {own.name}" in output_of(there, "target")
    groups = asyncio.run(whoami(Path(there["KUBECONFIG"]).read_text(), tmp_path))["groups"]
    assert "gardener.cloud:system:viewers" in groups
    own.remove()

"""Shoots: admission accepts what maintenance writes, whatever the cloud profile offers by then."""

from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gardener.garden.maintenance.plan import Plan, Restarts, plan
from gardener.garden.versions import parse_version
from kit.webhooks.shoots import PROFILE, create, operation, submitted, update, with_fields, worker
from kube.objects import Object

PAST = "2026-01-01T00:00:00Z"
SWAP = {"failSwapOn": False, "featureGates": {"NodeSwap": True}, "memorySwap": {"swapBehavior": "UnlimitedSwap"}}
BEFORE = ("1.29.1", "1.32.1", "1.34.1")
"""Of the control plane."""

KUBERNETES = st.lists(
    st.tuples(st.integers(-3, 1), st.integers(0, 3), st.booleans()),
    min_size=3,
    max_size=10,
    unique_by=lambda each: each[:2],
)
"""Minor versions above that of the control plane, patch versions, and whether they have expired."""
IMAGES = st.lists(
    st.tuples(
        st.sampled_from(("1.0.0", "1.0.1", "1.1.0", "2.0.0", "3.0.0")),
        st.sampled_from(("*", "< 1.30", "< 1.33", "< 1.35", ">= 1.30", ">= 1.33", ">= 1.35")),
        st.booleans(),
    ),
    max_size=5,
    unique_by=lambda each: each[0],
)


def entry(version: str, *, expired: bool, **fields: Any) -> Object:
    return {"version": version, **({"expirationDate": PAST} if expired else {}), **fields}


def profile(kubernetes: list[Object], images: list[Object], strategy: str) -> Object:
    image = {"name": "linux", "updateStrategy": strategy, "versions": images}
    return with_fields(PROFILE, spec__kubernetes={"versions": kubernetes}, spec__machineImages=[image])


@settings(max_examples=50, deadline=None)
@given(
    before=st.sampled_from(BEFORE),
    behind=st.integers(0, 3),
    kubernetes=KUBERNETES,
    images=IMAGES,
    strategy=st.sampled_from(("patch", "minor", "major")),
    is_expired=st.sampled_from((True, True, False)),
    auto=st.tuples(st.booleans(), st.booleans()),
)
def test_what_maintenance_writes_is_accepted(
    before: str,
    behind: int,
    kubernetes: list[tuple[int, int, bool]],
    images: list[tuple[str, str, bool]],
    strategy: str,
    is_expired: bool,
    auto: tuple[bool, bool],
) -> None:
    control_plane = parse_version(before)
    assert control_plane is not None
    own = f"1.{control_plane.minor - behind}.1"
    old = create(
        submitted(
            kubernetes={
                "version": before,
                "kubelet": SWAP if control_plane.minor < 30 else {},
                "clusterAutoscaler": {},
            },
            maintenance__autoUpdate={"kubernetesVersion": auto[0], "machineImageVersion": auto[1]},
            provider__workers=[
                worker("a", machine__image={"name": "linux", "version": "1.0.0"}),
                worker("b", machine__image={"name": "linux", "version": "1.0.0"}, kubernetes={"version": own}),
            ],
        ),
        profile([{"version": each} for each in {before, own, "1.36.9"}], [{"version": "1.0.0"}], "major"),
    )
    assert old.status is None, old.message
    offered = profile(
        [
            entry(before, expired=is_expired),
            *(
                entry(f"1.{control_plane.minor + more}.{patch}", expired=expired)
                for more, patch, expired in kubernetes
                if (more, patch) != (0, 1)
            ),
        ],
        [entry(version, expired=expired, kubeletVersionConstraint=suits) for version, suits, expired in images],
        strategy,
    )
    shoot = {**old.object, "status": operation()}
    drawn = plan(shoot, offered["spec"], now=datetime.now(UTC), restarts=Restarts())
    written = update(shoot, offered, **_changes(drawn))
    assert written.status is None, written.message


def _changes(drawn: Plan) -> dict[str, Any]:
    fields = {
        name: drawn.maintained["spec"].get(name) for name in ("addons", "cloudProfileName", "kubernetes", "provider")
    }
    return {**fields, "meta__annotations": drawn.maintained["metadata"]["annotations"]}

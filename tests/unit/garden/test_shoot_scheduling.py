"""Shoots: Seeds and domains, deletion, references with rights, quotas, operations."""

from collections.abc import Callable
from typing import Any

import pytest

from gardener.api import garden as resources
from kit.webhooks.shoots import (
    BINDING,
    NAMESPACE,
    PROFILE,
    PROJECT,
    SECRET,
    SEED,
    create,
    of,
    operation,
    requested,
    stored,
    submitted,
    update,
    with_fields,
    worker,
    workerless,
)
from kube import resources as kubernetes
from kube.objects import Object
from kube.paths import with_value

OPERATION, MAINTENANCE = "gardener.cloud/operation", "maintenance.gardener.cloud/operation"
TASKS, EXPIRATION = "shoot.gardener.cloud/tasks", "shoot.gardener.cloud/expiration-timestamp"
CONFIRMED, CONFIRMED_BY = "confirmation.gardener.cloud/deletion", "deletion.gardener.cloud/confirmed-by"
FORCE = "confirmation.gardener.cloud/force-deletion"
DELETING = "2026-01-01T00:00:00Z"
Made = Callable[..., Object]


def seed(**fields: Any) -> Object:
    return with_fields(SEED, **fields)


# --- the Seed


@pytest.mark.parametrize(
    ("at_seed", "fields", "reported"),
    [
        ({"spec__taints": [{"key": "no"}]}, {}, "taints are not tolerated"),
        ({"spec__taints": [{"key": "w", "value": "v"}]}, {"tolerations": [{"key": "w"}]}, "taints are not tolerated"),
        ({"spec__taints": [{"key": "w"}]}, {"tolerations": [{"key": "w"}]}, ""),
        ({"metadata__annotations": {"seedmanagement.gardener.cloud/cordoned": "true"}}, {}, "that is cordoned"),
        ({"metadata__deletionTimestamp": DELETING}, {},
         "cannot schedule shoot 'a' on seed 'seed' that is already marked for deletion"),
        ({"spec__provider__zones": ["a", "b"]},
         {"controlPlane": {"highAvailability": {"failureTolerance": {"type": "zone"}}}},
         "on seed 'seed' with only 2 zones, at least 3 zones are required"),
        ({"spec__networks__nodes": "10.250.0.0/16"}, {"networking__nodes": "10.250.0.0/17"}, "must not overlap"),
        ({}, {"networking__nodes": "192.168.0.0/16"}, "must not overlap with the range of the VPN"),
        ({"spec__networks__shootDefaults": None}, {}, "spec.networking.pods: Required value: pods is required"),
        ({"status__allocatable": {"shoots": "0"}}, {}, "already has the maximum number of shoots scheduled on it (0)"),
        ({"status__allocatable": {"shoots": "500m"}}, {}, ""),
    ],
)  # fmt: skip
def test_a_seed_takes_a_shoot_that_fits(at_seed: dict[str, Any], fields: dict[str, Any], reported: str) -> None:
    outcome = create(submitted(seedName="seed", **fields), seed(**at_seed))
    assert outcome.code == (403 if reported else 200), outcome.message
    assert reported in outcome.message


def test_a_seed_must_match_the_selector_of_the_profile() -> None:
    selecting = with_fields(PROFILE, spec__seedSelector={"matchLabels": {"on": "mars"}, "providerTypes": ["x"]})
    refused = create(submitted(seedName="seed"), selecting)
    because = "cannot schedule shoot 'a' on seed 'seed' because"
    assert f"{because} the cloud profile seed selector is not matching the labels of the seed" in refused.message
    types = "none of the provider types in the cloud profile seed selector is matching the provider type of the seed"
    assert f"{because} {types}" in refused.message


def test_a_seed_takes_no_more_shoots_than_it_has_room_for() -> None:
    small = seed(status__allocatable={"shoots": "1"})
    other = stored(submitted("other", seedName="seed"))
    assert "maximum number of shoots" in create(submitted(seedName="seed"), small, other).message
    assert update(other, small, other, purpose="testing").status is None
    elsewhere = seed(metadata__name="elsewhere")
    leaving = stored(submitted("leaving", seedName="elsewhere"), elsewhere, status={"seedName": "seed"})
    assert "maximum number of shoots" in create(submitted(seedName="seed"), small, leaving).message


@pytest.mark.parametrize("made", [workerless, submitted])
@pytest.mark.parametrize("last", ["Reconcile", "Migrate"])
def test_a_shoot_that_comes_back_to_its_seed_is_there_already(made: Made, last: str) -> None:
    """Also if the Seed takes no others, has no backups, or goes, and if the Shoot is to go as well."""
    full = {
        "metadata__annotations": {"seedmanagement.gardener.cloud/cordoned": "true"},
        "spec__taints": [{"key": "no"}],
    }
    small, elsewhere = seed(status__allocatable={"shoots": "1"}, **full), seed(metadata__name="elsewhere")
    status = {"seedName": "seed", **operation(last, "Error")}
    leaving = stored(made(seedName="elsewhere"), elsewhere, status=status)
    going = with_fields(leaving, metadata__deletionTimestamp=DELETING)
    for each in (leaving, going):
        assert update(each, small, elsewhere, each, seedName="seed").status is None
    assert update(going, small, elsewhere, going, seedName="other").code == 422
    assert update(going, small, elsewhere, going, seedName="seed", purpose="testing").code == 422


def rotating(phase: str) -> Object:
    return {"credentials": {"rotation": {"certificateAuthorities": {"phase": phase}}}}


@pytest.mark.parametrize(
    ("made", "last", "reported"),
    [
        (submitted, operation("Reconcile"), ""),
        (submitted, operation("Reconcile") | rotating("Preparing"), "(certificateAuthorities: Preparing); wait until"),
        (submitted, operation("Restore", "Error") | rotating("Completing"), ""),
        (submitted, operation("Reconcile") | rotating("Prepared"), ""),
        (submitted, operation("Restore", "Error"), ""),
        (workerless, operation("Create", "Failed"), "a Shoot can't move before it has been created"),
        (workerless, operation("Create"), ""),
        (workerless, operation("Reconcile", "Error"), ""),
    ],
)
def test_no_move_begins_that_cannot_be_completed(made: Made, last: Object, reported: str) -> None:
    backup = {"provider": "local", "secretRef": {"name": "b", "namespace": "garden"}}
    both = seed(spec__backup=backup), seed(metadata__name="other", spec__backup=backup)
    old = stored(made(seedName="seed"), *both, status={"seedName": "seed", "technicalID": "shoot--p--s", **last})
    refused = update(old, *both, seedName="other")
    assert (reported in (refused.message or "")) if reported else refused.status is None


def test_who_may_not_bind_may_not_choose_the_seed() -> None:
    refused = requested(denied=["update shoots/binding"]).create(submitted(seedName="seed"))
    assert refused.code == 403
    assert 'user "ann" is not allowed to set .spec.seedName for "shoots"' in refused.message
    old = stored(submitted(seedName="seed"))
    assert (
        requested(denied=["update shoots/binding"]).update(old, with_fields(old, spec__purpose="testing")).status
        is None
    )


def test_a_seed_is_not_left_for_nothing() -> None:
    refused = update(stored(submitted(seedName="seed")), seedName=None)
    assert "spec.seedName is already set to 'seed' and cannot be changed to 'nil'" in refused.message


def test_moving_needs_backups_and_changes_nothing_else() -> None:
    secret = {"name": "b", "namespace": "garden"}
    backup = {"provider": "local", "secretRef": secret}
    both = seed(spec__backup=backup), seed(metadata__name="other", spec__backup=backup)
    old = stored(submitted(seedName="seed"))
    assert update(old, *both, seedName="other").status is None
    assert "nothing else in spec may change" in update(old, *both, seedName="other", purpose="testing").message
    assert (
        'cannot change seed name because backup is not configured for seed "other"'
        in update(old, both[0], seed(metadata__name="other"), seedName="other").message
    )


@pytest.mark.parametrize(
    "more",
    [
        {"purpose": "testing"},
        {"tolerations": []},
        {"networking__nodes": "10.0.0.0/16"},
        {"networking__nodes": None},
    ],
)
def test_who_chooses_the_first_seed_changes_nothing_else(more: Object) -> None:
    old = stored(submitted(tolerations=[{"key": "w"}], networking__nodes="10.250.0.0/16"))
    refused = update(old, seed(), seedName="seed", **more)
    assert (refused.code, "nothing else in spec may change together with" in refused.message) == (403, True)
    # What the Seed proposes, and the domain, are filled in.
    assert update(old, seed(), seedName="seed").status is None


@pytest.mark.parametrize(
    ("status", "reported"),
    [
        (operation("Migrate", "Processing"), "during Migrate operation that is in state Processing"),
        (operation("Restore", "Error"), "during Restore operation that is in state Error"),
        (operation("Restore"), ""),
        ({"seedName": "other"}, "has been rescheduled to a new seed"),
    ],
)
def test_while_a_control_plane_moves_its_spec_is_frozen(status: Object, reported: str) -> None:
    old = stored(submitted(seedName="seed", meta__annotations={CONFIRMED: "true"}), status=status)
    changed, deleted = update(old, purpose="testing"), requested().delete(old)
    assert reported in changed.message
    # It is deleted after its move.
    assert (changed.code, deleted.code) == (403 if reported else 200, 200)
    assert update(old, meta__labels={"a": "b"}).status is None


def test_defaults_that_are_new_do_not_keep_others_from_writing_while_the_spec_is_frozen() -> None:
    old = stored(submitted(seedName="seed"), status={"seedName": "other"})
    del old["spec"]["kubernetes"]["kubeProxy"]
    labelled = update(old, meta__labels={"a": "b"})
    assert (labelled.status, labelled.spec) == (None, old["spec"])
    moved = with_fields(old, status__seedName="seed")
    assert "kubeProxy" in update(moved, meta__labels={"a": "b"}).spec["kubernetes"]


def test_what_has_no_version_gets_no_empty_one() -> None:
    old = with_fields(stored(), spec__cloudProfile__name="gone", spec__cloudProfileName="gone")
    del old["spec"]["kubernetes"]["version"]
    assert "version" not in update(old, meta__labels={"a": "b"}).spec["kubernetes"]


def test_on_a_seed_in_deletion_a_shoot_can_only_be_deleted() -> None:
    going = seed(metadata__deletionTimestamp=DELETING)
    old = stored(submitted(seedName="seed"))
    assert update(old, going, purpose="testing").code == 403
    assert update(old, going, meta__annotations={"a": "b"}).code == 403
    notes = {**old["metadata"]["annotations"], CONFIRMED: "true"}
    assert update(old, going, meta__annotations=notes).status is None


def test_a_project_in_deletion_gets_no_shoots() -> None:
    going = with_fields(PROJECT, metadata__deletionTimestamp=DELETING)
    assert "already marked for deletion" in create(submitted(), going).message


# --- domains


OWN = {"domain": "my.org", "providers": [{"type": "local", "secretName": "cred"}]}


@pytest.mark.parametrize(
    ("dns", "reported"),
    [
        (OWN, ""),
        ({"domain": "a.dev.ex.org"}, ""),
        ({"domain": "b.dev.ex.org"}, "does not match expected scheme"),
        ({"domain": "a.dev.ex.org", "providers": [{"type": "local", "secretName": "cred", "primary": True}]},
         "primary dns provider must not be set when default domain is used"),
        ({"providers": [{"type": "unmanaged"}]}, ""),
        ({**OWN, "providers": [*OWN["providers"], {"type": "local"}]}, "must specify a secretName"),
        ({**OWN, "providers": [{"type": "local", "secretName": "none"}]}, 'secrets "none" not found'),
    ],
)  # fmt: skip
def test_domains_on_a_seed(dns: Object, reported: str) -> None:
    outcome = create(submitted(seedName="seed", dns=dns))
    assert reported in outcome.message
    assert (outcome.status is None) is not bool(reported)


def test_a_domain_that_is_not_served_has_no_primary_provider() -> None:
    dns = {"domain": "my.org", "providers": [{"type": "unmanaged"}]}
    assert stored(submitted(seedName="seed", dns=dns))["spec"]["dns"] == dns


def test_the_first_provider_of_an_own_domain_is_primary_and_stays_so() -> None:
    old = stored(submitted(seedName="seed", dns=OWN))
    assert old["spec"]["dns"]["providers"] == [{"type": "local", "secretName": "cred", "primary": True}]
    assert update(old, dns__providers=OWN["providers"]).spec["dns"] == old["spec"]["dns"]
    assert update(old, dns__providers=[]).fields == {"spec.dns.providers"}
    other = [{"type": "other", "secretName": "cred", "primary": True}]
    assert update(old, dns__providers=other).fields == {"spec.dns.providers", "spec.dns.providers[0].type"}


def served_domain(domain: str) -> Object:
    return {"domain": domain, "providers": [{"type": "local", "secretName": "cred", "primary": True}]}


@pytest.mark.parametrize(
    ("theirs", "mine", "taken"),
    [
        ("my.org", "my.org", True),
        ("x.my.org", "my.org", True),
        ("my.org", "x.my.org", True),
        ("amy.org", "my.org", False),
    ],
)
def test_a_domain_belongs_to_one_shoot(theirs: str, mine: str, *, taken: bool) -> None:
    served = stored(submitted(dns=served_domain(theirs)), status=operation("Create"))
    other = with_fields(served, metadata__namespace="garden-other")
    outcome = requested(other).create(submitted("b", dns=served_domain(mine)))
    same_name = requested(other).create(submitted(dns=served_domain(mine)))
    assert (outcome.code, same_name.code) == ((403, 403) if taken else (200, 200)), outcome.message
    assert (
        requested(with_fields(served, status=None)).create(submitted("b", dns=served_domain(mine))).code == outcome.code
    )


@pytest.mark.parametrize(
    ("mine", "last", "provider", "taken"),
    [
        ("x.my.org", operation("Create", "Processing"), "local", False),
        ("x.my.org", operation("Create", "Failed"), "local", False),
        ("x.my.org", None, "local", False),
        ("x.my.org", operation("Create"), "unmanaged", False),
        ("x.my.org", operation("Reconcile", "Failed"), "local", True),
        ("org.my.org", None, "local", False),
        ("my.org", None, "local", True),
    ],
)
def test_a_domain_that_is_not_served_keeps_no_other_project_from_those_around_it(
    mine: str, last: Object | None, provider: str, *, taken: bool
) -> None:
    dns = {"domain": "my.org", "providers": [{"type": provider}]}
    other = with_fields(stored(submitted(dns=dns)), metadata__namespace="garden-other", status=last)
    outcome = requested(other).create(submitted("b", dns=served_domain(mine)))
    assert outcome.code == (403 if taken else 200), outcome.message


INTERNAL = of(
    kubernetes.SECRETS,
    "internal",
    namespace="garden",
    meta={
        "labels": {"gardener.cloud/role": "internal-domain"},
        "annotations": {"dns.gardener.cloud/provider": "local", "dns.gardener.cloud/domain": "in.gardens.net"},
    },
)


@pytest.mark.parametrize(
    ("domain", "reported"),
    [
        ("com", "public suffix"),
        ("co.uk", "public suffix"),
        ("github.io", "public suffix"),
        ("local", "public suffix"),
        ("ex.org", "contains a default domain of the garden"),
        ("gardens.net", "contains a default domain of the garden"),
        ("in.gardens.net", "contains a default domain of the garden"),
        ("a.in.gardens.net", "below the internal domain"),
        ("my.gardens.net", ""),
        ("my.co.uk", ""),
        ("a.local", ""),
    ],
)
def test_a_domain_of_all_belongs_to_no_shoot(domain: str, reported: str) -> None:
    outcome = requested(INTERNAL).create(submitted(dns=served_domain(domain)))
    assert outcome.fields == ({"spec.dns.domain"} if reported else set())
    assert reported in outcome.message


# --- references and rights


def test_who_gives_an_object_to_extensions_may_read_it() -> None:
    reference = {"name": "r", "resourceRef": {"kind": "Secret", "apiVersion": "v1", "name": "none"}}
    refused = requested(denied=["get secrets"]).create(submitted(resources=[reference]))
    assert refused.code == 403
    assert "shoot cannot reference a resource you are not allowed to read" in refused.message
    assert "not found" not in refused.message


def credentials_binding(name: str, secret: str) -> Object:
    reference = {"apiVersion": "v1", "kind": "Secret", "name": secret, "namespace": NAMESPACE}
    return of(
        resources.CREDENTIALS_BINDINGS, name, namespace=NAMESPACE, credentialsRef=reference, provider={"type": "local"}
    )


def test_a_secret_binding_is_replaced_by_a_credentials_binding_of_the_same_secret() -> None:
    bindings = credentials_binding("same", "cred"), credentials_binding("other", "cred2")
    old = stored()
    assert update(old, *bindings, secretBindingName=None, credentialsBindingName="same").status is None
    refused = update(old, *bindings, secretBindingName=None, credentialsBindingName="other")
    assert refused.fields == {"spec.credentialsBindingName"}


def test_who_changes_credentials_may_read_both() -> None:
    bindings = credentials_binding("one", "cred"), credentials_binding("two", "cred2")
    old = stored(submitted(secretBindingName=None, credentialsBindingName="one"), *bindings)
    new = with_fields(old, spec__credentialsBindingName="two")
    assert requested(*bindings).update(old, new).status is None
    assert requested(*bindings, denied=["get secrets"]).update(old, new).code == 403


def test_a_profile_is_replaced_only_by_one_whose_parent_it_is() -> None:
    def profile(name: str, parent: str) -> Object:
        return of(
            resources.NAMESPACED_CLOUD_PROFILES,
            name,
            namespace=NAMESPACE,
            spec={"parent": {"kind": "CloudProfile", "name": parent}},
            status={"cloudProfileSpec": PROFILE["spec"]},
        )

    profiles = profile("child", "local"), profile("foreign", "other")
    reference = {"kind": "NamespacedCloudProfile", "name": "child"}
    old = stored()
    assert update(old, *profiles, cloudProfile=reference, cloudProfileName=None).status is None
    refused = update(old, *profiles, cloudProfile={**reference, "name": "foreign"}, cloudProfileName=None)
    assert refused.fields == {"spec.cloudProfile"}


@pytest.mark.parametrize(("parent", "is_accepted"), [("local", True), ("none", False)])
def test_a_profile_offers_at_once_what_its_status_is_going_to_report(parent: str, is_accepted: bool) -> None:
    huge = {"name": "huge", "cpu": "64", "gpu": "0", "memory": "256Gi"}
    profile = of(
        resources.NAMESPACED_CLOUD_PROFILES,
        "own",
        namespace=NAMESPACE,
        spec={"parent": {"kind": "CloudProfile", "name": parent}, "machineTypes": [huge]},
    )
    reference = {"kind": "NamespacedCloudProfile", "name": "own"}
    pools = [worker(), worker("x", machine__type="huge")]
    created = create(submitted(cloudProfile=reference, provider__workers=pools), profile)
    assert (created.status is None) is is_accepted


@pytest.mark.parametrize("path", [("gardenlet", "config", "seedConfig"), ("seedTemplate",)])
def test_a_shoot_that_is_a_seed_stays_what_the_seed_needs(path: tuple[str, ...]) -> None:
    spec = with_value({"shoot": {"name": "a"}}, (*path, "spec", "provider", "zones"), ["a", "b"])
    managed = of(resources.MANAGED_SEEDS, "s", namespace=NAMESPACE, spec=spec)
    vpa: dict[str, Any] = {"kubernetes__verticalPodAutoscaler": {"enabled": True}}
    pools = [worker(zones=["a", "b"])]
    old = stored(submitted(provider__workers=pools, meta__annotations={CONFIRMED: "true"}, **vpa))
    assert update(old, managed, purpose="testing").status is None
    for fields in (
        {"kubernetes__verticalPodAutoscaler": None},
        {"networking__nodes": "10.0.0.0/16"},
        {"addons": {"nginxIngress": {"enabled": True}}},
        {"provider__workers": [worker(zones=["a"])]},
        {"hibernation": {"enabled": True}},
        {"hibernation": {"schedules": [{"start": "0 20 * * *"}]}},
    ):
        assert update(old, managed, **fields).code == 403, fields
    assert "since it is seed s; delete" in update(old, managed, hibernation={"enabled": True}).message
    assert update(old, hibernation={"enabled": True}).status is None
    unfit = stored(submitted(provider__workers=pools))
    assert update(unfit, managed, meta__labels={"a": "b"}).status is None
    assert update(unfit, managed, purpose="testing").status is None
    assert "still referenced by a managed seed" in requested(managed).delete(old).message
    assert requested().delete(old).status is None


# --- deletion


def test_a_deletion_is_confirmed_and_who_did_it_cannot_be_forged() -> None:
    old = stored()
    assert requested().delete(old).code == 403
    notes = {**old["metadata"]["annotations"], CONFIRMED: "true"}
    confirmed = requested(user="ann").update(old, with_fields(old, metadata__annotations=notes)).object
    assert confirmed["metadata"]["annotations"][CONFIRMED_BY] == "ann"
    forged = with_fields(confirmed, metadata__annotations={**notes, CONFIRMED_BY: "carl"})
    assert requested().update(confirmed, forged).object["metadata"]["annotations"][CONFIRMED_BY] == "ann"
    dual = with_fields(PROJECT, spec__dualApprovalForDeletion=[{"resource": "shoots", "selector": {}}])
    assert requested(dual, user="ann").delete(confirmed).code == 403
    assert requested(dual, user="bob").delete(confirmed).status is None


def test_the_finalizer_goes_when_the_cluster_is_gone() -> None:
    finalizers: dict[str, Any] = {"meta__finalizers": ["gardener"]}
    old = stored(status=operation("Delete", "Processing", technicalID="t"), **finalizers)
    assert update(old, meta__finalizers=[]).code == 403
    done = stored(status=operation("Delete", technicalID="t"), **finalizers)
    assert update(done, meta__finalizers=[]).status is None


# --- quotas


def quota(**spec: Any) -> Object:
    scope = {"apiVersion": "v1", "kind": "Secret"}
    return of(resources.QUOTAS, "q", namespace=NAMESPACE, spec={"scope": scope, "metrics": {}, **spec})


LIMITED = with_fields(BINDING, quotas=[{"name": "q", "namespace": NAMESPACE}])


def test_all_shoots_of_a_binding_share_its_quota() -> None:
    garden = LIMITED, quota(metrics={"cpu": "10", "loadbalancer": "2"})
    other = stored(submitted("other", provider__workers=[worker(maximum=4)]))
    assert create(submitted(provider__workers=[worker(maximum=1)]), *garden, other).status is None
    refused = create(submitted(provider__workers=[worker(maximum=2)]), *garden, other)
    assert (refused.code, refused.message.partition("forbidden: ")[2]) == (
        403,
        (
            "quota limits exceeded. Unable to allocate further cpu - with this Shoot, the Shoots of Quota garden-dev/q "
            "would need cpu 12 of 10; request less, delete others, or have its spec.metrics raised"
        ),
    )


def test_a_quota_is_looked_at_when_a_shoot_grows() -> None:
    old = stored(provider__workers=[worker(machine__image={"name": "linux", "version": "2.0.0"})])
    garden = LIMITED, quota(metrics={"cpu": "3"})
    assert update(old, *garden, purpose="testing").status is None
    grown = [worker(machine__image={"name": "linux", "version": "2.0.0"}, maximum=3)]
    assert update(old, *garden, provider__workers=grown).code == 403


def test_a_quota_that_the_caches_do_not_know_yet_limits_shoots() -> None:
    late = quota(metrics={"cpu": "1"})
    late["metadata"]["resourceVersion"] = "1000"
    admission = requested(LIMITED)
    admission.reviews.stored = [*admission.reviews.stored, late]
    refused = admission.create(submitted(provider__workers=[worker(maximum=2)]))
    assert "quota limits exceeded. Unable to allocate further cpu " in refused.message


def test_volumes_count_by_their_class() -> None:
    volume = {"type": "std", "size": "20Gi"}
    garden = LIMITED, quota(metrics={"storage.standard": "39Gi", "storage.premium": "0"})
    refused = create(submitted(provider__workers=[worker(volume=volume)]), *garden)
    assert "further storage.standard " in refused.message
    assert "storage.standard 40Gi of 39Gi" in refused.message


@pytest.mark.parametrize(
    ("until", "code"), [("2020-01-01T00:00:00Z", 200), ("2999-01-01T00:00:00Z", 403), ("soon", 422)]
)
def test_the_end_of_a_shoot_is_put_off_by_its_quotas_days_at_most(until: str, code: int) -> None:
    old = stored()
    notes = {**old["metadata"]["annotations"], EXPIRATION: until}
    assert update(old, LIMITED, quota(clusterLifetimeDays=7), meta__annotations=notes).code == code
    new = submitted(meta__annotations={EXPIRATION: until})
    assert create(new, LIMITED, quota(clusterLifetimeDays=7)).code == code


def test_the_end_of_a_shoot_is_limited_by_the_credentials_that_it_gets() -> None:
    bindings = [
        of(resources.CREDENTIALS_BINDINGS, name, namespace=NAMESPACE, provider={"type": "local"}, quotas=quotas,
           credentialsRef={"apiVersion": "v1", "kind": "Secret", "name": "s", "namespace": NAMESPACE})
        for name, quotas in (("free", []), ("limited", [{"name": "q", "namespace": NAMESPACE}]))
    ]  # fmt: skip
    unlimited: dict[str, Any] = {"secretBindingName": None, "credentialsBindingName": "free"}
    old = stored(submitted(**unlimited), *bindings, meta__annotations={EXPIRATION: "2999-01-01T00:00:00Z"})
    moved = update(old, *bindings, quota(clusterLifetimeDays=7), credentialsBindingName="limited")
    assert "requested shoot expiration time is too long" in moved.message


# --- operations


def annotated(old: Object, **names: str) -> Any:
    return update(old, meta__annotations={**old["metadata"]["annotations"], **names})


@pytest.mark.parametrize(
    ("status", "asked_for", "is_removed", "sequence"),
    [
        (None, "reconcile", False, 0),
        (operation(), "reconcile", True, 1),
        (operation(state="Failed"), "reconcile", False, 0),
        (operation(state="Failed"), "retry", True, 1),
        (operation(), "retry", False, 0),
        (operation(), "maintain", False, 0),
        (operation(), "rotate-ca-start", False, 1),
        (operation(), "rotate-observability-credentials", False, 1),
        (operation(), "rotate-ssh-keypair", False, 1),
    ],
)
def test_operations_count_and_go(status: Object | None, asked_for: str, *, is_removed: bool, sequence: int) -> None:
    changed = annotated(stored(status=status), **{OPERATION: asked_for})
    assert changed.status is None, changed.message
    assert (OPERATION not in changed.object["metadata"]["annotations"]) is is_removed
    assert changed.object.get("operation", {}).get("sequence", 0) == sequence
    again = update(changed.object, meta__labels={"a": "b"}).object
    assert again.get("operation") == changed.object.get("operation")


def test_a_rotation_of_ssh_keys_where_there_are_none_is_dropped() -> None:
    old = stored(submitted(provider__workersSettings={"sshAccess": {"enabled": False}}), status=operation())
    changed = annotated(old, **{OPERATION: "rotate-ssh-keypair"})
    assert OPERATION not in changed.object["metadata"]["annotations"]
    assert "operation" not in changed.object


def test_with_a_confined_rollout_only_hibernation_counts_at_once() -> None:
    old = stored(submitted(maintenance={"confineSpecUpdateRollout": True}), status=operation(state="Failed"))
    changed = update(old, purpose="testing")
    assert "operation" not in changed.object
    notes = changed.object["metadata"]["annotations"]
    assert notes["maintenance.shoot.gardener.cloud/needs-retry-operation"] == "true"
    assert update(old, hibernation={"enabled": True}).object["operation"] == {"sequence": 1}


PHASES = ("certificateAuthorities", "serviceAccountKey", "etcdEncryptionKey")


def rotation(phase: str, *what: str) -> Object:
    return {"credentials": {"rotation": {each: {"phase": phase} for each in what or PHASES}}}


WAITS = {"phase": "WaitingForWorkersRollout", "pendingWorkersRollouts": [{"name": "a"}]}
WAITING = operation(credentials={"rotation": {PHASES[0]: WAITS}})


@pytest.mark.parametrize(
    ("status", "asked_for", "possible"),
    [
        (None, "rotate-ca-start", False),
        (operation("Create", "Processing"), "rotate-ca-start", False),
        (operation("Create"), "rotate-ca-start", True),
        (operation(**rotation("Prepared")), "rotate-ca-start", False),
        (operation(**rotation("Completed")), "rotate-credentials-start", True),
        (operation(**rotation("Prepared")), "rotate-credentials-complete", True),
        (operation(**rotation("Prepared", PHASES[0])), "rotate-credentials-complete", False),
        (operation(**rotation("Prepared", PHASES[0])), "rotate-ca-complete", True),
        (operation(), "rotate-serviceaccount-key-complete", False),
        (operation(hibernated=True), "rotate-etcd-encryption-key-start", False),
        (operation(hibernated=True), "rotate-ca-start", True),
        (operation(**rotation("Completed")), "rotate-ca-start-without-workers-rollout", True),
        (
            operation(**rotation("WaitingForWorkersRollout", PHASES[0])),
            "rotate-ca-start-without-workers-rollout",
            False,
        ),
        (operation(**rotation("WaitingForWorkersRollout", PHASES[0])), "rotate-credentials-complete", False),
        (operation(), "rotate-etcd-encryption-key-start-without-workers-rollout", False),
        (operation(), "rotate-rollout-workers=a", False),
        (operation(), "rotate-rollout-workers=", False),
        (WAITING, "rotate-rollout-workers=a", True),
        (WAITING, "rotate-rollout-workers=a,b", False),
        (operation(), "explode", False),
    ],
)
@pytest.mark.parametrize("name", [OPERATION, MAINTENANCE])
def test_operations_that_are_possible(name: str, status: Object | None, asked_for: str, *, possible: bool) -> None:
    outcome = annotated(stored(status=status), **{name: asked_for})
    assert outcome.fields == (set() if possible else {f"metadata.annotations[{name}]"})


def test_what_is_done_at_once_is_not_planned_besides() -> None:
    outcome = annotated(stored(status=operation()), **{OPERATION: "rotate-ca-start", MAINTENANCE: "rotate-ca-start"})
    assert outcome.fields == {"metadata.annotations"}


def test_a_cluster_does_not_go_to_sleep_before_a_rotation_that_is_planned() -> None:
    path = f"metadata.annotations[{MAINTENANCE}]"
    planned = stored(status=operation(), meta__annotations={MAINTENANCE: "rotate-etcd-encryption-key-start"})
    assert update(planned, hibernation={"enabled": True}).fields == {path, "spec.hibernation.enabled"}
    asleep = stored(status=operation(), hibernation={"enabled": True})
    outcome = annotated(asleep, **{MAINTENANCE: "rotate-etcd-encryption-key-start"})
    assert outcome.fields == {path, "spec.hibernation.enabled"}


@pytest.mark.parametrize(
    ("fields", "tasks"),
    [
        ({"purpose": "testing"}, ""),
        ({"provider__infrastructureConfig": {"a": "b"}}, "deployInfrastructure"),
        ({"provider__workersSettings": {"sshAccess": {"enabled": False}}}, "deployInfrastructure"),
        ({"dns": {"providers": [{"type": "unmanaged"}]}},
         "deployDNSRecordInternal,deployDNSRecordExternal,deployDNSRecordIngress"),
        ({"hibernation": {"enabled": False}},
         "deployInfrastructure,deployDNSRecordInternal,deployDNSRecordExternal,deployDNSRecordIngress"),
    ],
)  # fmt: skip
def test_tasks_follow_from_what_changes(fields: dict[str, Any], tasks: str) -> None:
    old = stored(submitted(hibernation={"enabled": True}), meta__annotations={})
    assert update(old, **fields).object["metadata"]["annotations"].get(TASKS, "") == tasks


def test_a_deletion_is_forced_only_where_it_is_stuck() -> None:
    stuck = operation("Delete", "Error", lastErrors=[{"description": "d", "codes": ["ERR_INFRA_UNAUTHORIZED"]}])
    path = {f"metadata.annotations[{FORCE}]"}
    assert annotated(stored(status=stuck), **{FORCE: "true"}).fields == path
    going = stored(status=operation("Delete"), meta__deletionTimestamp=DELETING)
    assert annotated(going, **{FORCE: "true"}).fields == path
    going = stored(status=stuck, meta__deletionTimestamp=DELETING)
    forced = annotated(going, **{FORCE: "true"})
    assert forced.status is None
    assert forced.object["operation"] == {"sequence": 1}
    assert annotated(forced.object, **{FORCE: "false"}).fields == path
    assert create(submitted(meta__annotations={FORCE: "true"})).fields == path


def test_objects_that_are_referenced_are_found() -> None:
    reference = {"name": "r", "resourceRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "c"}}
    config_map = of(kubernetes.CONFIG_MAPS, "c", namespace=NAMESPACE)
    assert create(submitted(resources=[reference]), config_map, SECRET).status is None

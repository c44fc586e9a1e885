"""What a ManagedResource may write, and as whom, by the configuration."""

from typing import Any

import pytest

from agent.resource_manager.managed_resource.rules.permissions import Identity, identity_of, may_depend, restriction_of
from config.resource_manager.restrictions import (
    DependencyRule,
    Impersonation,
    KindLists,
    Kinds,
    NamespaceRule,
    Restrictions,
)
from gardener import keys
from gardener.managed_resource.plan import unrestricted
from kit import objects
from kube.errors import Forbidden, Invalid
from kube.objects import Key, Object
from kube.resources import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, SECRETS, Resource

DEPLOYMENTS = Resource("apps", "v1", "Deployment", "deployments", namespaced=True)
OLD_DEPLOYMENTS = Resource("extensions", "v1beta1", "Deployment", "deployments", namespaced=True)
EVERYTHING = Kinds(api_groups=("*",), kinds=("*",))
OBJECT = Key("ns", "x")


def kinds(group: str, *names: str) -> Kinds:
    return Kinds(api_groups=(group,), kinds=names)


def lists(*, allow: tuple[Kinds, ...] = (), deny: tuple[Kinds, ...] = ()) -> KindLists:
    return KindLists(allow=allow, deny=deny)


def rule(*to: str, of: tuple[str, ...] = (), own: bool = False) -> NamespaceRule:
    return NamespaceRule(from_=of, to=to, to_own=own)


def test_nothing_is_refused_if_nothing_is_configured() -> None:
    assert restriction_of(Restrictions(), "ns") is unrestricted
    assert unrestricted(NAMESPACES, Key("", "kube-system")) == ""
    assert identity_of(objects.managed_resource("ns/mr"), Impersonation()) == Identity()


@pytest.mark.parametrize(
    ("listed", "resource", "refused_by"),
    [
        (lists(allow=(kinds("", "ConfigMap"),)), CONFIG_MAPS, ""),
        (lists(allow=(kinds("", "ConfigMap"),)), SECRETS, "allow"),
        (lists(allow=(kinds("", "*"),)), SECRETS, ""),
        (lists(allow=(kinds("", "*"),)), DEPLOYMENTS, "allow"),
        (lists(allow=(kinds("*", "Deployment"),)), OLD_DEPLOYMENTS, ""),
        (lists(allow=(kinds("apps", "Deployment"),)), OLD_DEPLOYMENTS, "allow"),
        (lists(allow=(EVERYTHING,), deny=(kinds("", "Secret"),)), SECRETS, "deny"),
        (lists(allow=(kinds("", "Secret"),), deny=(EVERYTHING,)), SECRETS, "deny"),
        (lists(deny=(kinds("", "Secret"),)), CONFIG_MAPS, ""),
        (lists(deny=(kinds("", "Secret", "ConfigMap"),)), CONFIG_MAPS, "deny"),
    ],
)
def test_kinds_are_allowed_and_denied_by_group_and_name(listed: KindLists, resource: Resource, refused_by: str) -> None:
    text = restriction_of(Restrictions(namespaced_kinds=listed), "ns")(resource, OBJECT)
    assert bool(text) == bool(refused_by)
    if refused_by:
        assert resource.kind in text
        assert f"controllers.managedResource.restrictions.namespacedKinds.{refused_by}" in text


def test_kinds_in_namespaces_and_outside_have_lists_of_their_own() -> None:
    restriction = restriction_of(Restrictions(cluster_scoped_kinds=lists(deny=(EVERYTHING,))), "ns")
    assert restriction(CONFIG_MAPS, OBJECT) == ""
    assert "clusterScopedKinds.deny" in restriction(CUSTOM_RESOURCE_DEFINITIONS, Key("", "x"))
    restriction = restriction_of(Restrictions(namespaced_kinds=lists(allow=(kinds("", "ConfigMap"),))), "ns")
    assert restriction(CUSTOM_RESOURCE_DEFINITIONS, Key("", "x")) == ""


@pytest.mark.parametrize(
    ("rules", "own", "wanted", "allowed"),
    [
        ((rule(own=True),), "a", "a", True),
        ((rule(own=True),), "a", "b", False),
        ((rule("b"),), "a", "b", True),
        ((rule("b"),), "a", "a", False),
        ((rule("b", own=True),), "a", "a", True),
        ((rule("kube-*"),), "a", "kube-system", True),
        ((rule("kube-*"),), "a", "my-kube-system", False),
        ((rule("*"),), "a", "b", True),
        ((rule("b", of=("shoot--*",)),), "shoot--x", "b", True),
        ((rule("b", of=("shoot--*",)),), "garden", "b", False),
        ((rule("*", of=("garden",)), rule(own=True)), "garden", "b", True),
        ((rule("*", of=("garden",)), rule(own=True)), "other", "b", False),
        ((rule("*", of=("garden",)), rule(own=True)), "other", "other", True),
        ((rule("a.c"),), "x", "abc", False),
    ],
)
def test_namespaces_are_allowed_by_any_rule_for_the_managed_resource(
    rules: tuple[NamespaceRule, ...], own: str, wanted: str, allowed: bool
) -> None:
    restriction = restriction_of(Restrictions(namespaces=rules), own)
    text = restriction(CONFIG_MAPS, Key(wanted, "x"))
    assert (text == "") == allowed
    if text:
        assert f'"{own}"' in text
        assert f'"{wanted}"' in text
        assert "controllers.managedResource.restrictions.namespaces" in text
    assert restriction(CUSTOM_RESOURCE_DEFINITIONS, Key("", wanted)) == ""


@pytest.mark.parametrize(
    ("rules", "own", "other", "allowed"),
    [
        ((), "a", "b", False),
        ((DependencyRule(to=("b",)),), "a", "b", True),
        ((DependencyRule(to=("b",)),), "a", "bb", False),
        ((DependencyRule(from_=("x",), to=("b",)), DependencyRule(from_=("a*",), to=("b*",))), "aa", "bb", True),
        ((DependencyRule(from_=("x",), to=("*",)),), "a", "b", False),
    ],
)
def test_dependencies_of_other_namespaces_are_allowed_by_rules_only(
    rules: tuple[DependencyRule, ...], own: str, other: str, allowed: bool
) -> None:
    # Where objects may be written is independent of it.
    namespaces = (NamespaceRule(to=("*",)),)
    assert may_depend(Restrictions(namespaces=namespaces, dependencies=rules), own, other) == allowed


def test_a_namespace_counts_as_being_in_itself() -> None:
    restriction = restriction_of(Restrictions(namespaces=(rule(own=True),)), "a")
    assert restriction(NAMESPACES, Key("", "a")) == ""
    assert '"kube-system"' in restriction(NAMESPACES, Key("", "kube-system"))


# --- as whom


def managed_resource(requested: str | None) -> Object:
    annotations = {} if requested is None else {keys.IMPERSONATED_SERVICE_ACCOUNT: requested}
    return objects.managed_resource("ns/mr", annotations=annotations)


@pytest.mark.parametrize(
    ("settings", "requested", "account"),
    [
        ({}, None, None),
        ({}, "me", "me"),
        ({"service_account_name": "default"}, None, "default"),
        ({"service_account_name": "default"}, "me", "me"),
        ({"required": True}, "me", "me"),
        ({"required": True, "service_account_name": "default"}, None, "default"),
        ({"allowed_service_account_names": ("deploy-*",)}, "deploy-a", "deploy-a"),
        ({"allowed_service_account_names": ("deploy-*",)}, None, None),
        ({"allowed_service_account_names": ("a",), "service_account_name": "b"}, None, "b"),
    ],
)
def test_the_account_is_that_of_the_annotation_or_the_default(
    settings: dict[str, Any], requested: str | None, account: str | None
) -> None:
    assert identity_of(managed_resource(requested), Impersonation(**settings)) == Identity(
        None if account is None else Key("ns", account)
    )


@pytest.mark.parametrize(
    "hostile", ["", " ", "../x", "a:b", "A", "a/b", "a\r\nImpersonate-Group: x", "a" * 254, "-", "é"]
)
@pytest.mark.parametrize("settings", [{}, {"service_account_name": "default"}, {"required": True}])
def test_a_hostile_annotation_does_not_fall_back_to_more_rights(hostile: str, settings: dict[str, Any]) -> None:
    identity = identity_of(managed_resource(hostile), Impersonation(**settings))
    assert identity.account is None
    assert identity.problem.startswith("nothing is written or deleted: metadata.annotations[")
    assert "must be the name of a ServiceAccount" in identity.problem
    assert len(identity.problem) < 1000


@pytest.mark.parametrize(
    ("settings", "requested", "text"),
    [
        ({"required": True}, None, "impersonation.required"),
        ({"allowed_service_account_names": ("a",)}, "b", "allowedServiceAccountNames"),
        ({"allowed_service_account_names": ("a",), "service_account_name": "c"}, "b", "allowedServiceAccountNames"),
    ],
)
def test_an_account_that_is_missing_or_not_allowed_is_a_problem(
    settings: dict[str, Any], requested: str | None, text: str
) -> None:
    identity = identity_of(managed_resource(requested), Impersonation(**settings))
    assert identity.account is None
    assert keys.IMPERSONATED_SERVICE_ACCOUNT in identity.problem
    assert f"controllers.managedResource.restrictions.{text}".rpartition(".")[2] in identity.problem


def test_the_user_is_called_as_the_api_server_calls_a_service_account_and_named_in_what_it_was_refused() -> None:
    me, agent = Identity(Key("ns", "me")), Identity()
    refused, invalid = Forbidden(403, message="no"), Invalid(422, message="bad")
    assert (me.user, agent.user) == ("system:serviceaccount:ns:me", "")
    assert me.error_text(refused) == "as ServiceAccount ns/me: no"
    assert me.error_text(invalid) == "bad"
    assert agent.error_text(refused) == "no"

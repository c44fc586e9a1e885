"""Restrictions of ManagedResources in the configuration file: nothing that is mistyped may leave a door open."""

import pytest

from config.resource_manager import decode
from config.resource_manager.restrictions import (
    DependencyRule,
    Impersonation,
    KindLists,
    Kinds,
    NamespaceRule,
    Restrictions,
)
from process.configuration.component import validate
from process.configuration.errors import ConfigError

PATH = "controllers.managedResource.restrictions"
REPORTED = "controllers.managedResources.restrictions"


def configured(restrictions: str) -> str:
    return (
        "leaderElection: {resourceNamespace: garden}\n"
        f"controllers: {{managedResource: {{restrictions: {restrictions}}}}}\n"
    )


def errors_of(restrictions: str) -> list[str]:
    return [str(error) for error in validate(decode(configured(restrictions)).config)]


def test_all_of_it_is_read() -> None:
    text = configured("""{
        namespacedKinds: {allow: [{apiGroups: ["", apps], kinds: ["*"]}], deny: [{apiGroups: [""], kinds: [Secret]}]},
        clusterScopedKinds: {deny: [{apiGroups: ["*"], kinds: ["*"]}]},
        namespaces: [{from: ["shoot--*"], to: [kube-system], toOwn: true}],
        dependencies: [{from: [garden], to: ["shared-*"]}, {to: [base]}],
        impersonation: {serviceAccountName: deployer, allowedServiceAccountNames: ["deployer-*"], required: true}}""")
    assert decode(text).config.controllers.managed_resource.restrictions == Restrictions(
        namespaced_kinds=KindLists(
            allow=(Kinds(api_groups=("", "apps"), kinds=("*",)),), deny=(Kinds(api_groups=("",), kinds=("Secret",)),)
        ),
        cluster_scoped_kinds=KindLists(deny=(Kinds(api_groups=("*",), kinds=("*",)),)),
        namespaces=(NamespaceRule(from_=("shoot--*",), to=("kube-system",), to_own=True),),
        dependencies=(DependencyRule(from_=("garden",), to=("shared-*",)), DependencyRule(to=("base",))),
        impersonation=Impersonation(
            service_account_name="deployer", allowed_service_account_names=("deployer-*",), required=True
        ),
    )
    assert list(validate(decode(text).config)) == []


@pytest.mark.parametrize(
    ("restrictions", "path", "known"),
    [
        ("{namespacedKind: {}}", "namespacedKind", "namespacedKinds"),
        ("{clusterScopedKinds: {denied: []}}", "clusterScopedKinds.denied", "clusterScopedKinds.deny"),
        ("{namespacedKinds: {deny: [{apiGroup: [''], kinds: [Secret]}]}}",
         "namespacedKinds.deny[0].apiGroup", "namespacedKinds.deny[0].apiGroups"),
        ("{namespaces: [{toOwm: true}]}", "namespaces[0].toOwm", "namespaces[0].toOwn"),
        ("{dependencies: [{form: [a], to: [b]}]}", "dependencies[0].form", "dependencies[0].from"),
        ("{impersonation: {require: true}}", "impersonation.require", "impersonation.required"),
    ],
)  # fmt: skip
def test_a_mistyped_field_is_an_error(restrictions: str, path: str, known: str) -> None:
    with pytest.raises(ConfigError) as caught:
        decode(configured(restrictions))
    assert f"{PATH}.{path}: unknown field; did you mean {PATH}.{known}?" in str(caught.value)


@pytest.mark.parametrize(
    ("restrictions", "error"),
    [
        ("{namespacedKinds: {deny: [{kinds: [Secret]}]}}",
         'namespacedKinds.deny[0].apiGroups: Required value: name at least one; "" is the core group'),
        ("{clusterScopedKinds: {allow: [{apiGroups: ['*']}]}}",
         "clusterScopedKinds.allow[0].kinds: Required value: name at least one; * is all of them"),
        ("{namespacedKinds: {deny: [{apiGroups: ['*'], kinds: [secrets]}]}}",
         'namespacedKinds.deny[0].kinds[0]: Invalid value: "secrets": must be a kind, such as ConfigMap, or *'),
        ("{namespacedKinds: {deny: [{apiGroups: ['apps/v1'], kinds: ['*']}]}}",
         'namespacedKinds.deny[0].apiGroups[0]: Invalid value: "apps/v1": a lowercase RFC 1123 subdomain'),
        ("{namespaces: [{}]}", "namespaces[0].to: Required value: name at least one namespace, or set toOwn"),
        ("{namespaces: [{to: [A]}]}", 'namespaces[0].to[0]: Invalid value: "A": must be a name'),
        ("{namespaces: [{from: ['a[b]'], toOwn: true}]}",
         'namespaces[0].from[0]: Invalid value: "a[b]": must be a name'),
        ("{namespaces: [{from: [''], toOwn: true}]}", 'namespaces[0].from[0]: Invalid value: "": must be a name'),
        ("{dependencies: [{from: [a]}]}", "dependencies[0].to: Required value: name at least one namespace"),
        ("{dependencies: [{to: [A]}]}", 'dependencies[0].to[0]: Invalid value: "A": must be a name'),
        ("{impersonation: {serviceAccountName: 'a:b'}}",
         'impersonation.serviceAccountName: Invalid value: "a:b": a lowercase RFC 1123 subdomain'),
        ("{impersonation: {allowedServiceAccountNames: ['?']}}",
         'impersonation.allowedServiceAccountNames[0]: Invalid value: "?": must be a name'),
    ],
)  # fmt: skip
def test_a_value_that_could_never_fit_is_an_error(restrictions: str, error: str) -> None:
    [found] = errors_of(restrictions)
    assert found.startswith(f"{REPORTED}.{error}")


@pytest.mark.parametrize(
    "restrictions",
    [
        "{}",
        "null",
        "{namespacedKinds: {allow: [{apiGroups: ['*'], kinds: ['*']}]}}",
        "{namespaces: [{toOwn: true}, {from: ['a-*'], to: ['*']}]}",
        "{impersonation: {serviceAccountName: ''}}",
    ],
)
def test_what_is_within_the_rules_is_valid(restrictions: str) -> None:
    assert errors_of(restrictions) == []

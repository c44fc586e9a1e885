"""Projects: owner, members, tolerations, namespace; who may change what."""

from typing import Any

import pytest

from kit.webhooks.garden import Asked
from kube.objects import Object
from webhooks.garden.kinds.project import PROJECT

RBAC = "rbac.authorization.k8s.io"
CONFIRMED = {"confirmation.gardener.cloud/deletion": "true"}


def user(name: str, *roles: str) -> Object:
    subject = {"kind": "User", "apiGroup": RBAC, "name": name}
    if roles:
        subject["role"] = roles[0]
    return {**subject, "roles": list(roles[1:])} if roles[1:] else subject


def account(name: str, *roles: str, namespace: str = "ns") -> Object:
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace, "role": roles[0]}


def project(name: str = "p", **spec: Any) -> Object:
    return {"metadata": {"name": name}, "spec": spec}


def stored(by: str = "admin", **spec: Any) -> Object:
    """As it is stored when `by` creates it."""
    created = Asked(PROJECT, user=by).create(project(**spec))
    assert created.status is None, created.message
    return created.object


def test_who_creates_a_project_owns_it() -> None:
    spec = Asked(PROJECT, user="ann").create(project()).spec
    assert spec == {
        "createdBy": user("ann"),
        "owner": user("ann"),
        "members": [user("ann", "admin", "owner")],
    }


def test_who_created_a_project_cannot_be_set_by_its_author() -> None:
    assert Asked(PROJECT, user="ann").create(project(createdBy=user("bob"))).spec["createdBy"] == user("ann")


def test_the_first_member_with_that_role_becomes_the_owner() -> None:
    members = [user("bob", "viewer"), user("carl", "viewer", "owner")]
    spec = Asked(PROJECT, user="ann").create(project(members=members)).spec
    assert spec["owner"] == user("carl")
    assert spec["members"] == members


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ({"role": "admin", "roles": ["admin"]}, {"role": "admin"}),
        ({"role": "viewer", "roles": ["admin"]}, {"role": "viewer", "roles": ["admin"]}),
        ({"roles": ["uam", "viewer"]}, {"role": "uam", "roles": ["viewer"]}),
        ({}, {"role": "viewer"}),
    ],
)
def test_the_first_role_is_in_role_and_all_others_in_roles(sent: Object, kept: Object) -> None:
    created = Asked(PROJECT).create(project(members=[{"kind": "User", "name": "bob", **sent}]))
    assert created.status is None
    assert created.spec["members"][0] == user("bob") | kept


def test_a_new_owner_takes_the_role_from_the_old_one() -> None:
    old = stored()
    changed = Asked(PROJECT).update(old, {**old, "spec": {**old["spec"], "owner": user("new")}})
    assert changed.status is None
    assert changed.spec["members"] == [user("admin", "admin"), user("new", "admin", "owner")]


def test_the_project_of_the_operators_tolerates_protected_seeds() -> None:
    protected = [{"key": "seed.gardener.cloud/protected"}]
    spec = Asked(PROJECT).create(project("garden", namespace="garden")).spec
    assert spec["tolerations"] == {"defaults": protected, "whitelist": protected}


MEMBER = user("bob", "admin")


@pytest.mark.parametrize(
    ("name", "spec", "fields"),
    [
        ("longproject1", {}, {"metadata.name"}),
        ("a--b", {}, {"metadata.name"}),
        ("p", {"namespace": "garden-UP"}, {"spec.namespace"}),
        ("p", {"namespace": "gardener-system-seed-lease"}, {"spec.namespace"}),
        ("p", {"members": [{**MEMBER, "kind": "Robot"}]}, {"spec.members[0].kind"}),
        ("p", {"members": [{**MEMBER, "apiGroup": "x"}]}, {"spec.members[0].apiGroup"}),
        ("p", {"members": [{"kind": "ServiceAccount", "name": "s", "role": "uam"}]}, {"spec.members[0].namespace"}),
        ("p", {"members": [MEMBER, MEMBER]}, {"spec.members[1]"}),
        ("p", {"members": [account("b", "uam"), user("system:serviceaccount:ns:b", "uam")]}, {"spec.members[1]"}),
        ("p", {"members": [account("a_b", "uam")]}, {"spec.members[0].name"}),
        (
            "p",
            {"owner": {"kind": "ServiceAccount", "name": "A", "namespace": "ns"}},
            {"spec.owner.name", "spec.members[0].name"},
        ),
        ("p", {"members": [user("system:serviceaccount:ns", "uam")]}, {"spec.members[0].name"}),
        ("p", {"members": [user("bob", "king")]}, {"spec.members[0].roles[0]"}),
        ("p", {"members": [user("bob", "uam", "viewer", "viewer")]}, {"spec.members[0].roles[2]"}),
        ("p", {"members": [user("bob", "extension:a/b")]}, {"spec.members[0].roles[0]"}),
        ("p", {"members": [user("bob", f"extension:{'a' * 21}")]}, {"spec.members[0].roles[0]"}),
        ("p", {"members": [user("a", "owner"), user("b", "uam", "owner")]}, {"spec.members[1].roles[1]"}),
        ("p", {"tolerations": {"whitelist": [{"key": "a"}, {"key": "a"}]}}, {"spec.tolerations.whitelist[1]"}),
        (
            "p",
            {"tolerations": {"whitelist": [{"key": "a"}, {"key": "a", "value": "b"}]}},
            {"spec.tolerations.whitelist[1]"},
        ),
        ("p", {"tolerations": {"defaults": [{"key": "a"}]}}, {"spec.tolerations.defaults[0]"}),
        (
            "p",
            {"namespace": "x", "members": [user("bob", "king"), {**MEMBER, "apiGroup": "x", "name": "r"}, MEMBER]},
            {"spec.members[0].roles[0]", "spec.members[1].apiGroup", "spec.members[2]", "spec.namespace"},
        ),
    ],
)
def test_what_is_wrong_is_reported_all_at_once(name: str, spec: Object, fields: set[str]) -> None:
    refused = Asked(PROJECT).create(project(name, **spec))
    assert (refused.code, refused.fields) == (422, fields), refused.message


@pytest.mark.parametrize(
    "tolerations",
    [
        {"defaults": [{"key": "a", "value": "1"}], "whitelist": [{"key": "a"}]},
        {"defaults": [{"key": "a", "value": "1"}], "whitelist": [{"key": "a", "value": "1"}]},
    ],
)
def test_a_default_toleration_is_allowed_by_key_or_by_pair(tolerations: Object) -> None:
    assert Asked(PROJECT).create(project(tolerations=tolerations)).status is None


def test_a_namespace_belongs_to_one_project() -> None:
    other = {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project", **project("q", namespace="garden-x")}
    refused = Asked(PROJECT, garden=[other]).create(project(namespace="garden-x"))
    assert refused.code == 403
    assert 'namespace "garden-x" is already used by another project' in refused.message
    assert Asked(PROJECT, garden=[other]).create(project("q", namespace="garden-x")).status is None


def test_a_namespace_outside_the_garden_is_refused_when_it_is_chosen() -> None:
    old = stored()
    unset = {name: value for name, value in old["spec"].items() if name != "namespace"}
    chosen = {**old, "spec": {**unset, "namespace": "seed-meadow"}}
    for refused in (
        Asked(PROJECT).create(project(namespace="other")),
        Asked(PROJECT).update({**old, "spec": unset}, chosen),
    ):
        assert refused.code == 403
        assert ".spec.namespace must start with garden-" in refused.message
    old["spec"]["namespace"] = "other"
    assert Asked(PROJECT).update(old, {**old, "spec": {**old["spec"], "purpose": "x"}}).status is None


def test_the_owner_can_be_changed_but_not_removed() -> None:
    old = stored()
    without = {name: value for name, value in old["spec"].items() if name != "owner"}
    assert Asked(PROJECT).update(old, {**old, "spec": without}).fields == {"spec.owner"}


def carrying(role: str) -> Object:
    labels = {"rbac.gardener.cloud/aggregate-to-extension-role": role}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": f"of-{role}", "labels": labels},
    }


def test_an_extension_role_is_one_that_a_cluster_role_carries() -> None:
    one, two = user("bob", "admin", "extension:one"), user("ann", "extension:two")
    requested = Asked(PROJECT, garden=[carrying("one")])
    assert requested.create(project(members=[one])).code == 200
    assert requested.create(project(members=[one, two])).fields == {"spec.members[1].roles[0]"}
    # What is there already stays, also when its ClusterRole has gone.
    old = stored()
    old["spec"]["members"].append(two)
    kept = {**old, "spec": {**old["spec"], "members": [one, *old["spec"]["members"]]}}
    assert requested.update(old, kept).code == 200


def test_a_project_has_a_few_extension_roles() -> None:
    names = [f"r{number:02}" for number in range(22)]
    requested = Asked(PROJECT, garden=list(map(carrying, names)))
    held = [user("bob", *(f"extension:{name}" for name in names[:20]))]
    assert requested.create(project(members=held)).code == 200
    held.append(user("ann", "extension:r00", "extension:r20", "extension:r21"))
    fields = {"spec.members[1].roles[1]", "spec.members[1].roles[2]"}
    assert requested.create(project(members=held)).fields == fields
    # Those that have more keep them, in any order, and may give some up.
    old = stored()
    old["spec"]["members"] += held
    for members in (held[::-1], [*held[:1], user("ann", "extension:r21")]):
        changed = {**old, "spec": {**old["spec"], "members": [*members, *stored()["spec"]["members"]]}}
        assert requested.update(old, changed).message == ""


MANAGE, WHITELIST = "manage-members projects", "modify-spec-tolerations-whitelist projects"


OWNER_ALONE = [user("admin", "admin", "owner")]


@pytest.mark.parametrize(
    "change",
    [
        {"members": [*OWNER_ALONE, user("bob", "admin"), user("ann", "viewer")]},
        {"members": OWNER_ALONE},
        {"members": [*OWNER_ALONE, user("bob", "admin", "uam")]},
        {"members": [*OWNER_ALONE, user("bob", "admin", "serviceaccountmanager")]},
        {"members": [*OWNER_ALONE, user("bob", "admin", "extension:x")]},
        {"members": [*OWNER_ALONE, user("bob", "viewer")]},
        {"members": [user("admin", "viewer"), user("bob", "admin")]},
        {"members": [user("admin", "admin"), user("bob", "owner")]},
        {"members": [*OWNER_ALONE, user("bob", "admin"), {**user("everybody", "admin"), "kind": "Group"}]},
        {"members": [*OWNER_ALONE, user("bob", "admin"), account("robot", "uam")]},
        {"members": [*OWNER_ALONE, user("bob", "admin"), account("robot", "serviceaccountmanager")]},
        {"members": [*OWNER_ALONE, user("bob", "admin"), user("system:serviceaccount:ns:robot", "extension:x")]},
        {"members": [*OWNER_ALONE, {**user("bob", "admin"), "kind": "Group"}]},
        {"owner": user("bob")},
        {"owner": user("eve")},
        {"owner": {**user("everybody"), "kind": "Group"}},
        {"owner": {"kind": "ServiceAccount", "name": "robot", "namespace": "ns"}},
    ],
)
def test_who_has_which_role_is_changed_by_the_owner_or_with_a_right(change: Object) -> None:
    old = stored(members=[*OWNER_ALONE, user("bob", "admin")])
    new = {**old, "spec": {**old["spec"], **change}}
    for by, code in (("bob", 403), ("admin", 200)):
        assert Asked(PROJECT, user=by, denied=[MANAGE], garden=[carrying("x")]).update(old, new).code == code
    assert Asked(PROJECT, user="bob", garden=[carrying("x")]).update(old, new).code == 200


@pytest.mark.parametrize("robot", [account("robot", "admin"), user("system:serviceaccount:ns:robot", "viewer")])
def test_who_may_change_a_project_may_have_service_accounts_do_so(robot: Object) -> None:
    old = stored(members=[*OWNER_ALONE, user("bob", "admin")])
    new = {**old, "spec": {**old["spec"], "members": [*old["spec"]["members"], robot]}}
    requested = Asked(PROJECT, user="bob", denied=[MANAGE])
    assert (requested.update(old, new).code, requested.update(new, old).code) == (200, 200)


def test_what_leaves_all_roles_as_they_are_takes_no_right() -> None:
    robot = user("system:serviceaccount:ns:robot", "viewer")
    old = stored(members=[*OWNER_ALONE, user("bob", "admin", "uam"), robot])
    requested = Asked(PROJECT, user="bob", denied=[MANAGE])
    same = [account("robot", "viewer"), user("bob", "uam", "admin"), *OWNER_ALONE]
    assert requested.update(old, {**old, "spec": {**old["spec"], "members": same, "purpose": "x"}}).code == 200
    # Stored before owners were members, and members without roles were viewers.
    old["spec"]["members"] = [{"kind": "User", "apiGroup": RBAC, "name": "bob"}]
    assert requested.update(old, {**old, "spec": {**old["spec"], "purpose": "x"}}).code == 200


def test_a_project_without_owner_is_nobodys() -> None:
    old = stored(members=[user("bob", "admin")])
    without = {**old, "spec": {"members": old["spec"]["members"]}}
    owned = {**old, "spec": {**without["spec"], "owner": user("bob")}}
    assert Asked(PROJECT, user="bob", denied=[MANAGE]).update(without, owned).code == 403


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ({"members": [user("carl", "uam"), account("robot", "admin")]}, 200),
        ({"owner": user("ann")}, 200),
        ({"owner": user("ann"), "members": [user("ann", "viewer", "owner", "uam")]}, 200),
        ({"owner": user("ann"), "members": [user("bob", "uam")]}, 403),
        ({"owner": user("ann"), "members": [{**user("all", "viewer"), "kind": "Group"}]}, 403),
    ],
)
def test_who_creates_a_project_for_another_adds_no_members(spec: Object, code: int) -> None:
    assert Asked(PROJECT, user="bob", denied=[MANAGE]).create(project(**spec)).code == code


def test_making_oneself_the_owner_gives_no_rights() -> None:
    old = stored()
    members = [*old["spec"]["members"], user("carl", "admin")]
    new = {**old, "spec": {**old["spec"], "owner": user("bob"), "members": members}}
    refused = Asked(PROJECT, user="bob", denied=[MANAGE]).update(old, new)
    assert refused.code == 403
    assert (
        'user "bob" is not allowed to manage human users or groups in .spec.members for "projects"' in refused.message
    )


def test_the_namespace_of_the_operators_is_taken_by_one_of_them() -> None:
    creator = Asked(PROJECT, user="carol", denied=["update namespaces"])
    refused = creator.create(project("garden", namespace="garden"))
    assert (refused.code, 'namespace "garden"' in refused.message) == (403, True)
    old = stored("carol")
    assert creator.update(old, {**old, "spec": {**old["spec"], "namespace": "garden"}}).code == 403
    assert creator.create(project(namespace="garden-x")).code == 200
    assert Asked(PROJECT).create(project("garden", namespace="garden")).code == 200


def test_the_whitelist_takes_a_right_also_of_the_owner_and_members_are_looked_at_as_well() -> None:
    whitelist = {"whitelist": [{"key": "a"}]}
    refused = Asked(PROJECT, user="ann", denied=[WHITELIST]).create(project(tolerations=whitelist))
    assert refused.code == 403
    both = Asked(PROJECT, user="bob", denied=[WHITELIST, MANAGE])
    new = project(owner=user("ann"), members=[user("carl", "admin")], tolerations=whitelist)
    message = both.create(new).message
    assert "modify .spec.tolerations.whitelist" in message
    assert "manage human users" in message


@pytest.mark.parametrize(("annotations", "code"), [({}, 403), ({"confirmation.gardener.cloud/deletion": "yes"}, 403)])
def test_a_deletion_is_confirmed(annotations: Object, code: int) -> None:
    old = stored()
    assert Asked(PROJECT).delete({**old, "metadata": {"name": "p", "annotations": annotations}}).code == code
    assert Asked(PROJECT).delete({**old, "metadata": {"name": "p", "annotations": CONFIRMED}}).code == 200


@pytest.mark.parametrize(
    ("finalizers", "options", "code"),
    [
        ([], {"propagationPolicy": "Foreground"}, 403),
        ([], {"propagationPolicy": "Background"}, 200),
        ([], {}, 200),
        (["foregroundDeletion"], {}, 403),
        (["foregroundDeletion"], {"propagationPolicy": "Background"}, 200),
        (["foregroundDeletion"], {"orphanDependents": False}, 200),
    ],
)
def test_a_project_is_not_deleted_in_the_foreground(finalizers: list[str], options: Object, code: int) -> None:
    old = {**stored(), "metadata": {"name": "p", "annotations": CONFIRMED, "finalizers": finalizers}}
    refused = Asked(PROJECT).delete(old, **options)
    assert (refused.code, "propagationPolicy Foreground" in refused.message) == (code, code == 403)


def test_an_update_is_not_refused_for_a_member_that_it_leaves_as_it_was() -> None:
    old = stored()
    old["spec"]["members"].append(user("bob", "king"))
    moved = {**old, "spec": {**old["spec"], "members": [user("ann", "viewer"), *old["spec"]["members"]]}}
    assert Asked(PROJECT).update(old, moved).status is None
    worse = {**old, "spec": {**old["spec"], "members": [*old["spec"]["members"], user("carl", "queen")]}}
    assert Asked(PROJECT).update(old, worse).fields == {"spec.members[2].roles[0]"}


@pytest.mark.parametrize(
    "members",
    [
        [{**user("bob"), "role": "viewer", "roles": ["king", "viewer"]}],
        [{**user("bob"), "roles": ["viewer", "king"]}],
        [user("bob", "owner"), {**user("carl"), "role": "admin", "roles": ["admin", "owner"]}],
        [{"kind": "User", "name": "bob"}, {"kind": "User", "name": "bob"}],
    ],
)
def test_members_may_be_stored_in_any_form_when_a_label_is_added(members: list[Object]) -> None:
    old = stored(owner=user("bob"))
    old["spec"]["members"] = members
    labelled = {**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}}
    assert Asked(PROJECT).update(old, labelled).message == ""


@pytest.mark.parametrize(
    ("after", "fields"),
    [
        (("admin", "king", "viewer"), set()),
        (("king",), set()),
        (("admin", "queen", "uam"), {"spec.members[1].roles[1]"}),
        (("admin", "king", "king"), {"spec.members[1].roles[2]"}),
    ],
)
def test_a_role_is_not_refused_for_a_change_of_another(after: tuple[str, ...], fields: set[str]) -> None:
    old = stored()
    old["spec"]["members"].append(user("bob", "admin", "king", "uam"))
    new = {**old, "spec": {**old["spec"], "members": [*old["spec"]["members"][:1], user("bob", *after)]}}
    assert Asked(PROJECT).update(old, new).fields == fields


def test_the_old_field_for_a_role_gets_a_warning_with_the_new_one() -> None:
    (warning,) = Asked(PROJECT).create(project(members=[user("bob", "admin")])).warnings
    assert warning == "spec.members[0].role is deprecated: use roles"
    assert Asked(PROJECT).create(project(members=[{"kind": "User", "name": "b", "roles": ["uam"]}])).warnings == ()
    old = stored(members=[user("bob", "admin")])
    assert Asked(PROJECT).update(old, {**old, "spec": {**old["spec"], "purpose": "x"}}).warnings == ()

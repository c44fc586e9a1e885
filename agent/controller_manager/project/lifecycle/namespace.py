"""Namespace of a Project: its name, the requirements, and its release in the end.

A namespace that the controller has made goes with its Project. One that was there before can only be used if its labels
name the Project, which operators set, and stays, unless an annotation requests otherwise. Its annotations record which
of the two it is, together with the uid of the Project: a namespace without that uid was never taken, and is left alone
at the end as well.

The Project is an owner of the objects that go with it only. The garbage collector deletes objects without another
owner: when the Project is gone, and as soon as its deletion begins if that is one in the foreground.
"""

import hashlib
from dataclasses import dataclass

from gardener import keys
from gardener.api.garden import PROJECTS
from kube.objects import Object, annotations, is_deleting, is_truthy, key, labels, mappings, metadata, spec, text, uid
from kube.resources import NAMESPACES

_OURS = (
    keys.NAMESPACE_PROJECT,
    keys.NAMESPACE_CREATED_BY_PROJECT_CONTROLLER,
    keys.NAMESPACE_KEEP_AFTER_PROJECT_DELETION,
)


def namespace_of(project: Object) -> str:
    """Name of the namespace: stable, so that one that was created, but is not named in the Project yet, is found."""
    chosen = text(spec(project).get("namespace"))
    return chosen or f"garden-{key(project).name}-{hashlib.sha256(uid(project).encode()).hexdigest()[:5]}"


def owner_reference(project: Object, *, blocks: bool) -> Object:
    """Owner reference to the Project; `blocks`: a deletion of the Project in the foreground waits for the object."""
    own = PROJECTS.reference(name=key(project).name, uid=uid(project))
    return {**own, "controller": True, "blockOwnerDeletion": blocks}


def with_owner(obj: Object, project: Object) -> list[Object]:
    """Owner references of an object, including the Project."""
    own = owner_reference(project, blocks=True)
    present = mappings(metadata(obj).get("ownerReferences"))
    if any(each.get("uid") == own["uid"] for each in present):
        return [own if each.get("uid") == own["uid"] else each for each in present]
    return [*present, own]


def without_owner(obj: Object, project: Object) -> list[Object]:
    return [each for each in mappings(metadata(obj).get("ownerReferences")) if each.get("uid") != uid(project)]


# --- in use


def role_labels(project: Object) -> dict[str, str]:
    return {keys.ROLE: keys.ROLE_PROJECT, keys.PROJECT_NAME: key(project).name}


def new_namespace(project: Object) -> Object:
    return {
        **NAMESPACES.type_meta,
        "metadata": {
            "name": namespace_of(project),
            "labels": role_labels(project),
            "annotations": {
                keys.NAMESPACE_PROJECT: uid(project),
                keys.NAMESPACE_CREATED_BY_PROJECT_CONTROLLER: "true",
            },
            "ownerReferences": [owner_reference(project, blocks=True)],
        },
    }


def problem(namespace: Object, project: Object) -> str:
    """Reason why the Project can't have this namespace; empty if it can."""
    if is_deleting(namespace):
        return f'namespace "{key(namespace).name}" is being deleted; it is recreated afterwards'
    if not _is_labelled(namespace, project):
        wanted = ", ".join(f'"{name}":"{value}"' for name, value in sorted(role_labels(project).items()))
        return f"namespace cannot be used as it needs the project labels map[string]string{{{wanted}}}"
    if annotations(namespace).get(keys.NAMESPACE_PROJECT, uid(project)) != uid(project):
        return "namespace is already in-use by another project"
    return ""


def taking(namespace: Object, project: Object) -> Object:
    """Change of the metadata that takes the namespace for the Project; empty if it has it."""
    present = annotations(namespace)
    wanted = {keys.NAMESPACE_PROJECT: uid(project)}
    if not present.keys() & {keys.NAMESPACE_CREATED_BY_PROJECT_CONTROLLER, keys.NAMESPACE_KEEP_AFTER_PROJECT_DELETION}:
        wanted[keys.NAMESPACE_KEEP_AFTER_PROJECT_DELETION] = "true"
    missing = {name: value for name, value in wanted.items() if present.get(name) != value}
    change: Object = {"annotations": missing} if missing else {}
    stays = is_truthy({**present, **wanted}.get(keys.NAMESPACE_KEEP_AFTER_PROJECT_DELETION))
    owners = without_owner(namespace, project) if stays else with_owner(namespace, project)
    if owners != mappings(metadata(namespace).get("ownerReferences")):
        change["ownerReferences"] = owners or None
    return change


# --- release


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Step that releases the namespace of a Project."""

    change: Object
    """Change of the metadata of the namespace; empty for none."""
    deletes: bool = False
    is_done: bool = False
    """Whether the Project can go as soon as the change is made."""


RELEASED = Release(change={}, is_done=True)
WAITING = Release(change={})


def release(namespace: Object | None, project: Object) -> Release:
    if namespace is None or not _is_taken(namespace, project):
        return RELEASED
    if is_deleting(namespace):
        return WAITING if _is_labelled(namespace, project) else RELEASED
    keeps = is_truthy(annotations(namespace).get(keys.NAMESPACE_KEEP_AFTER_PROJECT_DELETION))
    if keeps or not _is_labelled(namespace, project):
        return Release(change=_giving_up(namespace, project), is_done=True)
    return Release(change={}, deletes=True)


def _giving_up(namespace: Object, project: Object) -> Object:
    """Change that removes our metadata, with the owner reference: the namespace would be deleted with the Project."""
    present, others = mappings(metadata(namespace).get("ownerReferences")), without_owner(namespace, project)
    change: Object = {
        "labels": {name: None for name, value in role_labels(project).items() if labels(namespace).get(name) == value},
        "annotations": {name: None for name in _OURS if name in annotations(namespace)},
    }
    if others != present:
        change["ownerReferences"] = others or None
    return change


def _is_labelled(namespace: Object, project: Object) -> bool:
    return all(labels(namespace).get(name) == value for name, value in role_labels(project).items())


def _is_taken(namespace: Object, project: Object) -> bool:
    taken_by = annotations(namespace).get(keys.NAMESPACE_PROJECT)
    if taken_by is not None:
        return taken_by == uid(project)
    return any(each.get("uid") == uid(project) for each in mappings(metadata(namespace).get("ownerReferences")))

"""Start of pods with a new template, and the messages of those that fail."""

from collections.abc import Iterable, Iterator

from kube.objects import Object, integer, is_deleting, key, mapping, text
from kube.paths import at, mappings_at

_HOPELESS = frozenset(
    {"CrashLoopBackOff", "CreateContainerConfigError", "ErrImagePull", "ImagePullBackOff", "InvalidImageName"}
)
"""Reasons of waiting containers that need a human."""


def image_of_container(deployment: Object, name: str) -> str:
    """Image of a container; empty if there is none."""
    containers = mappings_at(deployment, "spec", "template", "spec", "containers")
    return next((text(each.get("image")) for each in containers if each.get("name") == name), "")


def with_images(obj: Object, image: str) -> Object:
    """Set the image of containers that have none."""
    pod = at(obj, "spec", "template", "spec")
    if not isinstance(pod, dict):
        return obj
    filled = {
        field: [each if each.get("image") else {**each, "image": image} for each in mappings_at(pod, field)]
        for field in ("initContainers", "containers")
        if field in pod
    }
    template = {**obj["spec"]["template"], "spec": {**pod, **filled}}
    return {**obj, "spec": {**obj["spec"], "template": template}}


def check_failure(pods: Iterable[Object]) -> str:
    """Reason why one of these pods does not start; empty if none fails."""
    for pod in sorted(pods, key=lambda each: key(each).name):
        if not is_deleting(pod) and (found := next(_failures(pod), "")):
            return f"the new gardenlet does not start, the old one keeps running: pod {key(pod).name}, {found}"
    return ""


def _failures(pod: Object) -> Iterator[str]:
    for field in ("initContainerStatuses", "containerStatuses"):
        for container in mappings_at(pod, "status", field):
            waiting = mapping(at(container, "state", "waiting"))
            last = mapping(at(container, "state", "terminated")) or mapping(at(container, "lastState", "terminated"))
            has_failed = integer(last.get("exitCode")) != 0
            if text(waiting.get("reason")) in _HOPELESS or (has_failed and field == "initContainerStatuses"):
                reported = text(last.get("message")) or text(waiting.get("message")) or text(waiting.get("reason"))
                yield f"container {text(container.get('name'))}: {reported.strip() or 'no message'}"

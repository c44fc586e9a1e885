"""A Job is healthy until it has failed, and in progress until it has completed or failed.

So its dependants wait for its work. A suspended Job does nothing until a person resumes it.
"""

from gardener.health.checks.rule import Rule, condition, field, integer, optional_condition, optional_integer
from kube.objects import Object


def health(job: Object) -> str | None:
    return optional_condition(job, "Failed", "False")


def progress(job: Object) -> str | None:
    if _has_ended(job) or _is_suspended(job):
        return None
    succeeded, completions = integer(job, "status.succeeded"), optional_integer(job, "spec.completions")
    done = f"{succeeded} of {completions}" if completions is not None else str(succeeded)
    active, failed = integer(job, "status.active"), integer(job, "status.failed")
    return f"it has not completed yet ({done} pod(s) succeeded, {active} active, {failed} failed)"


def manual(job: Object) -> str | None:
    is_left = _is_suspended(job) and not _has_ended(job)
    return "it has not completed, since spec.suspend is true: set it to false to run it" if is_left else None


def _has_ended(job: Object) -> bool:
    return any((found := condition(job, each)) and found.status == "True" for each in ("Complete", "Failed"))


def _is_suspended(job: Object) -> bool:
    return field(job, "spec.suspend") is True


RULE = Rule(group="batch", kind="Job", health=health, progress=progress, manual=manual)

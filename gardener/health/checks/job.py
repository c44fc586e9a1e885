"""A Job is healthy until it has failed, and in progress until it has completed or failed.

So what depends on it waits for its work. One that is suspended has not done that either.
"""

from gardener.health.checks.rule import Rule, condition, field, integer, optional_condition, optional_integer
from kube.objects import Object


def health(job: Object) -> str | None:
    return optional_condition(job, "Failed", "False")


def progress(job: Object) -> str | None:
    if any((found := condition(job, each)) and found.status == "True" for each in ("Complete", "Failed")):
        return None
    if field(job, "spec.suspend") is True:
        return "it is suspended: set spec.suspend to false to run it"
    succeeded, completions = integer(job, "status.succeeded"), optional_integer(job, "spec.completions")
    done = f"{succeeded} of {completions}" if completions is not None else str(succeeded)
    active, failed = integer(job, "status.active"), integer(job, "status.failed")
    return f"it has not completed yet ({done} pod(s) succeeded, {active} active, {failed} failed)"


RULE = Rule(group="batch", kind="Job", health=health, progress=progress)

"""Results of tasks for later tasks of the flow of a Shoot, in addition to those for components."""

from collections.abc import Mapping

from components.results import Result
from kube.objects import Key, Object

Going = Mapping[Key, str]
"""Objects whose deletion was requested: uid by name; empty for an absent one."""

CLUSTER = Result[Object | None]("cluster", None)
"""The Cluster object, which names the Secret for extensions."""
HAS_TOKEN = Result("token", False)
"""Whether there is a token for the API server of the Shoot."""
SYSTEMS = Result[Mapping[str, Object]]("operating system configs", {})
"""OperatingSystemConfigs whose extensions have responded, by name."""
STALE_SYSTEMS = Result[Going]("stale operating system configs", {})
"""OperatingSystemConfigs of pools that no longer exist."""
STALE_EXTENSIONS = Result[Going]("stale extensions", {})
"""Extensions that the Shoot does not request."""
EXTENSIONS_BEFORE = Result[Going]("extensions before API server", {})
EXTENSIONS_AFTER = Result[Going]("extensions after API server", {})
"""Extensions that are deleted before and after the API server."""
WORKER_GOING = Result[Going]("deleted worker", {})

"""What control loops are made from, for tests that run them in their own process."""

from agent.context import Context
from config.schema import ResourceManagerConfiguration
from config.schema_controllers import Controllers
from kube.cache import Caches
from kube.client import Client
from kube.discovery import Discovery
from kube.events import EventRecorder
from kube.watch import Timings
from process.clusters import Cluster


def cluster_of(client: Client, namespace: str, *, timings: Timings | None = None) -> Cluster:
    """A cluster of which a control loop sees one namespace."""
    return Cluster(
        transport=client.transport,
        client=client,
        caches=Caches(client, namespaces=[namespace], timings=timings),
        discovery=Discovery(client),
        namespaces=(namespace,),
    )


def context_of(cluster: Cluster, controllers: Controllers) -> Context:
    """Source and target are the same."""
    recorder = EventRecorder(cluster.client, component="test")
    return Context(
        config=ResourceManagerConfiguration(controllers=controllers),
        source=cluster,
        target=cluster,
        recorder=recorder,
        target_recorder=recorder,
        cluster_id="",
    )

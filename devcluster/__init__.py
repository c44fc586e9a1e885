"""A real Kubernetes control plane on this computer, for tests, benchmarks and trying things out.

etcd, kube-apiserver, kube-controller-manager and kube-scheduler run as ordinary processes on 127.0.0.1; KWOK simulates
nodes and kubelets, so pods are scheduled and become ready, but no container ever runs. Nothing needs root, a container
engine or the network (but for the first build).

    python -m devcluster up                   # in the background, until `down`
    with Cluster(nodes=2) as cluster: ...     # devcluster.cluster: as long as the block
    def test_it(cluster, namespace): ...      # devcluster.testing.pytest_plugin: one for the whole test run

The processes and their files come from `localprocesses`; `cluster` puts them together. Tests also use `api`,
`audit` and `testing`.
"""

"""What runs in a seed: one module a component.

    objects(values) -> the objects, in the order in which they are to be written; pure
    unready(live) -> what is missing until the component works; empty: nothing

Some components are written by the gardenlet itself. They are what all others need, or hold what only the gardenlet
knows. The others are ManagedResources, which the resource manager of the seed applies and watches: `in_seed` of `parts`
makes one. A component that is not wanted any more has no objects: with an owner of its own (`kube.apply.object_sets`)
what it had goes.

    namespaces               labels of `garden` and `kube-system`
    resource_manager         the resource manager of the seed, with its webhooks
    gardenlet_autoscaling    requests of the gardenlet itself
    system                   PriorityClasses, and pods that keep room for control planes
    cluster_identity         who the seed is
    worker_roles             what controllers of worker nodes may do
    vertical_pod_autoscaler  requests of pods by what they use
    etcd_druid               the operator of etcd clusters
    vpn_authorization_server   who may open tunnels to Shoots
    kube_state_metrics, prometheus_operator, plutono   monitoring, as far as it is built
    nginx_ingress            what operators look at, from outside

`parts`, `workloads`, `access` and `istio` are what they are made of.
"""

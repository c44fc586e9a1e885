"""What runs in a seed, and for each Shoot in it: one module or folder a component, one line in a registry.

    COMPONENT = Component(name=..., title=..., contents=_contents, after=[...])     of a Shoot: `component`, `registry`
    COMPONENT = SeedComponent(name=..., title=..., objects=_objects)                of a seed: `seed_component`

Objects are made from inputs (`inputs`, `seed_component`) by pure functions, in the order in which they are written.
What follows from them is kept nowhere else (`sample`): kinds that are removed with a component, images that the
configuration has to name, Secrets with bundles of authorities. Tasks of flows, waits, deletions and the table of the
documentation are made from the definition.

Some components are written by the gardenlet itself. They are what all others need, or hold what only the gardenlet
knows. The others are ManagedResources, which the resource manager of the seed applies and watches: `in_seed` of `parts`
makes one. A component that is not wanted any more has no objects: with an owner of its own (`kube.apply.object_sets`)
what it had goes.

    namespaces               labels of `garden` and `kube-system`, and the namespaces of Istio
    resource_manager         the resource manager of the seed, with its webhooks
    gardenlet_autoscaling    requests of the gardenlet itself
    system                   PriorityClasses, and pods that keep room for control planes
    cluster_identity         who the seed is
    worker_roles             what controllers of worker nodes may do
    vertical_pod_autoscaler  requests of pods by what they use
    etcd_druid               the operator of etcd clusters
    istiod, ingress_gateway  the way into the seed
    gateways                 which ingress gateways there are, and the one of a Shoot
    vpn_authorization_server   who may open tunnels to Shoots
    kube_state_metrics, prometheus_operator, plutono   monitoring, as far as it is built
    nginx_ingress            what operators look at, from outside

Of a Shoot, in its namespace in the seed:

    shoot_namespace          that namespace
    etcd                     its etcds; `etcd_schedules` says when they are backed up
    kube_apiserver, kube_controller_manager
    shoot_exposure           how the API server is reached from outside
    resource_manager.shoot   what applies the ManagedResources of the Shoot
    gardener_access          with what Gardener works in the Shoot
    shoot_system             what every Shoot has in its own cluster
    referenced_resources     copies of what it refers to in the garden
    dns_records              names of its API server
    shoot_backup_entry       in the garden: where its backups are

Of a Shoot with workers, besides:

    shoot_infrastructure, worker_pools, container_runtimes   what extensions are asked for
    kube_scheduler, machine_controllers
    vpn                      the tunnel to its nodes, at both ends
    shoot_pods               what all its pods have
    apiserver_proxy, coredns, kube_proxy, metrics_server, node_problem_detector   what runs on its nodes

`parts`, `workloads`, `access`, `istio`, `control_plane` and `kubernetes_versions` are what they are made of. What is
not defined as a component yet has `objects(values)`, and tasks of its own.
"""

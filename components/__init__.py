"""Components of a seed, and of each Shoot in it: one module or folder a component, one line in a registry.

    COMPONENT = Component(name=..., title=..., contents=_contents, after=[...])     of a Shoot: `component`, `registry`
    COMPONENT = SeedComponent(name=..., title=..., objects=_objects)                of a seed: `seed_component`

Pure functions make objects from inputs (`inputs`, `seed_component`), in the order in which they are written. Static
parts are YAML files beside the code, with placeholders (`manifest`); computed ones are Python. Everything derived from
the objects is kept nowhere else (`sample`): kinds that are removed with a component, images that have to be configured,
Secrets with CA bundles. Flow tasks, waits, deletions and the table in the documentation are generated from the
definition.

Some components are written by the gardenlet itself: prerequisites of the others, and those with data that only the
gardenlet has. The others are ManagedResources, which the resource manager of the seed applies and watches: `in_seed` of
`parts` makes one. A component that is disabled has no objects: if it has an owner of its own
(`kube.apply.object_sets`), its previous objects are deleted.

    namespaces               labels of `garden` and `kube-system`, and the namespaces of Istio
    resource_manager         the resource manager of the seed, with its webhooks
    gardenlet_autoscaling    requests of the gardenlet itself
    system                   PriorityClasses, and pods that reserve capacity for control planes
    cluster_identity         identity of the seed
    worker_roles             roles of the controllers of worker nodes
    vertical_pod_autoscaler  requests of pods by their usage
    etcd_druid               the operator of etcd clusters
    istiod, ingress_gateway  the entry to the seed
    gateways                 the ingress gateways, and the one of a Shoot
    vpn_authorization_server authorization of tunnels to Shoots
    kube_state_metrics, prometheus_operator, plutono   monitoring, as far as it is implemented
    nginx_ingress            external access for operators

Components of a Shoot, in its namespace in the seed:

    shoot_namespace          that namespace
    etcd                     its etcds; `etcd_schedules` has the times of backups
    kube_apiserver, kube_controller_manager
    shoot_exposure           external access to the API server
    resource_manager.shoot   applies the ManagedResources of the Shoot
    gardener_access          Gardener's credentials for the Shoot
    shoot_system             objects in the cluster of every Shoot
    referenced_resources     copies of referenced resources from the garden
    dns_records              names of its API server
    shoot_backup_entry       in the garden: the location of its backups

Additional components of a Shoot with workers:

    shoot_infrastructure, worker_pools, container_runtimes   objects for extensions
    kube_scheduler, machine_controllers
    vpn                      the tunnel to its nodes, at both ends
    shoot_pods               prerequisites of all its pods
    apiserver_proxy, coredns, kube_proxy, metrics_server, node_problem_detector   workloads on its nodes

Their building blocks are `manifest`, `parts`, `workloads`, `access`, `istio`, `control_plane` and
`kubernetes_versions`. Components without a definition yet have `objects(values)`, and tasks of their own.
"""

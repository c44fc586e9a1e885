"""The checks of what stands in the spec of a Shoot, whether it is one already or a template that Shoots are made of."""

from webhooks.garden.shoot import dns, kubelet, kubernetes, maintenance, networks, settings, tolerations, workers

SPEC_CHECKS = (
    settings.general_errors,
    settings.component_errors,
    settings.pool_autoscaler_errors,
    settings.rewriting_errors,
    settings.mask_errors,
    kubelet.kubelet_errors,
    kubelet.pool_kubelet_errors,
    kubernetes.versions,
    workers.workerless,
    workers.worker_errors,
    workers.room_errors,
    networks.type_errors,
    networks.network_errors,
    dns.dns_errors,
    maintenance.window_errors,
    maintenance.schedule_errors,
    tolerations.toleration_errors,
)

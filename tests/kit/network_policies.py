"""What a Service is to have, without the yielding that the controller does."""

from agent.shared.network_policy.rules.policies import Desired, Rules, Surroundings, compute_policies
from agent.shared.network_policy.rules.projections import Service


def desired_policies(service: Service, rules: Rules, around: Surroundings) -> Desired:
    desired = Desired()
    for _ in compute_policies(desired, service, rules, around):
        pass
    return desired

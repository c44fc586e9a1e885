"""Table of the control loops that a leader runs."""

from agent.gardenlet.context import Context
from agent.table import Table
from config.gardenlet.schema import GardenletConfiguration

CONTROLLERS = Table[GardenletConfiguration, Context](
    "agent.gardenlet",
    {
        "extensions.backup_bucket.controller": lambda config: config.controllers.backup_bucket.enabled,
        "extensions.backup_entry.controller": lambda config: config.controllers.backup_entry.enabled,
        "extensions.bastion": lambda config: config.controllers.bastion.enabled,
        "extensions.controller_installation.care": lambda config: (
            config.controllers.controller_installation_care.enabled
        ),
        "extensions.controller_installation.install.controller": lambda config: (
            config.controllers.controller_installation.enabled
        ),
        "extensions.controller_installation.required": lambda config: (
            config.controllers.controller_installation_required.enabled
        ),
        "managed_seeds.self_upgrade.creation": lambda config: config.controllers.gardenlet.enabled,
        "managed_seeds.self_upgrade.controller": lambda config: config.controllers.gardenlet.enabled,
        "managed_seeds.main.controller": lambda config: config.controllers.managed_seed.enabled,
        "seed.network_policy.controller": lambda config: config.controllers.network_policy.enabled,
        "seed.care.controller": lambda config: config.controllers.seed_care.enabled,
        "seed.main.controller": lambda config: config.controllers.seed.enabled,
        "seed.lease": lambda config: config.controllers.seed.enabled,
        "shoot.care.controller": lambda config: config.controllers.shoot_care.enabled,
        "shoot.main.controller": lambda config: config.controllers.shoot.enabled,
        "shoot.state.controller": lambda config: (
            config.controllers.shoot_state.enabled and config.controllers.shoot_state.concurrent_syncs > 0
        ),
        "tokens.token_requestor": lambda config: config.controllers.token_requestor.enabled,
        "seed.vpa_eviction_requirements.controller": lambda config: (
            config.controllers.vpa_eviction_requirements.enabled
        ),
        "tokens.workload_identities.controller": lambda config: (
            config.controllers.token_requestor_workload_identity.enabled
        ),
    },
)

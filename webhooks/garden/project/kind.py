from gardener.api.garden import PROJECTS, project
from kube.resources import CLUSTER_ROLES
from webhooks.garden.common import deletion
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.project import defaults, members, validation

PROJECT = Kind(
    definition=project.PROJECT,
    defaults=(defaults.set_defaults,),
    mutations=(defaults.set_owner, defaults.who_confirmed_approval, defaults.use_up_confirmation),
    checks=(
        validation.namespace_errors,
        validation.subjects,
        validation.toleration_errors,
        validation.approval_errors,
    ),
    changes=(validation.approval_stays,),
    references=(validation.namespace_taken, members.roles_carried),
    as_numbered=members.as_numbered,
    rights=(validation.rights,),
    deprecations=(members.old_role,),
    deletions=(deletion.confirmed, deletion.in_order("its namespace and rights")),
    reads=(CLUSTER_ROLES, PROJECTS),
)

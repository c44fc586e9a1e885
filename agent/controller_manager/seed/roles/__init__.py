"""Rights of gardenlets to credentials, by Roles: for gardens whose API server can't ask an authorizer.

Each Shoot with a Seed, and each Seed, has Roles that name what its gardenlet may use, and RoleBindings to the user that
the gardenlet is. A right to create can't name objects: that is left to the admission of what gardenlets write.
"""

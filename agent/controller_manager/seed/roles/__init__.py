"""Rights of gardenlets to credentials, by Roles: for gardens whose API server can't call an authorizer.

Each Shoot with a Seed, and each Seed, has Roles that name the objects its gardenlet may use, and RoleBindings to the
user of the gardenlet. A right to create can't name objects: that is left to the admission of gardenlets' writes.
"""

"""Shoots: choices from their cloud profile, placement, and lifecycle; rules of the spec alone are in `shoot_spec`.

profile.py       versions and images from the cloud profile, and their rules
completion.py    the ones that a Shoot leaves open
seed.py          placement on a Seed
operations.py    operation annotations, tasks, forced deletion
lifetime.py      expiration, and users who may delete it
labels.py        labels by which extensions and Seeds find their Shoots
references.py    other objects, and the right to use them
quota.py         resources that all Shoots of a binding may use
"""

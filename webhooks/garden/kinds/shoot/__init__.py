"""Shoots: defaults that are not constant, choices from their cloud profile, and placement.

fields.py        access to fields of a Shoot
defaults.py      defaults that depend on other fields alone
profile.py       versions and images from the cloud profile, and their rules
networks.py, dns.py, seed.py, tolerations.py    placement of the cluster, and its domain names
kubernetes.py, workers.py, maintenance.py, settings.py    fields of the spec
templates.py     templates of Shoots, and their checks: those of the spec alone
operations.py    operation annotations, tasks, forced deletion
lifetime.py      expiration, and users who may delete it
labels.py        labels by which extensions and Seeds find their Shoots
references.py    other objects, and the right to use them
quota.py         resources that all Shoots of a binding may use
"""

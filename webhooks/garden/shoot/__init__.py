"""Shoots: defaults that are not constant, what they may use of their cloud profile, where they may run.

parts.py         how rules read a Shoot
defaults.py      what depends on other fields alone
profile.py       what the cloud profile fills in, versions and images, and what it must have
networks.py, dns.py, seed.py, tolerations.py    where the cluster runs, and by which names it is reached
kubernetes.py, kubelet.py, workers.py, maintenance.py, settings.py    fields of the spec
spec_checks.py   which of the checks are about the spec alone: templates of Shoots meet them, too
operations.py    operation annotations, tasks, forced deletion
labels.py        labels by which extensions and Seeds find their Shoots
references.py    other objects, and the right to use them
quota.py         how much all Shoots of a binding may use
"""

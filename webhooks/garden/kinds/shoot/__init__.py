"""Shoots: defaults that are not constant, what they may use of their cloud profile, where they may run.

fields.py        how rules read a Shoot
defaults.py      what depends on other fields alone
profile.py       what the cloud profile fills in, versions and images, and what it must have
networks.py, dns.py, seed.py, tolerations.py    where the cluster runs, and by which names it is reached
kubernetes.py, workers.py, maintenance.py, settings.py    fields of the spec
templates.py     templates of Shoots, and which checks they meet: those of the spec alone
operations.py    operation annotations, tasks, forced deletion
lifetime.py      when it ends, and who deletes it
labels.py        labels by which extensions and Seeds find their Shoots
references.py    other objects, and the right to use them
quota.py         how much all Shoots of a binding may use
"""

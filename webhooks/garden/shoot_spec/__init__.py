"""The spec of a Shoot, by itself: for Shoots, and for the templates of ManagedSeedSets.

fields.py        access to fields of a Shoot
defaults.py      defaults that depend on other fields alone
networks.py, dns.py, tolerations.py    its place and its domain names
kubernetes.py, workers.py, maintenance.py, settings.py, files.py, known_names.py    other fields of the spec
templates.py     templates of Shoots, and their checks: those of the spec alone
"""

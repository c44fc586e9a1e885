"""The control loops.

`programs` names the programs. Each has a package with `app` (what it consists of), `controllers` (the table of its
controllers) and a package for each controller: `controller` declares what is watched, `reconcile` has one pass, and
rules are in modules beside them. No controller imports another.
"""

"""The control loops.

`programs` names the programs. Each has a package with `app` (its composition), `controllers` (the table of its
controllers) and a package for each controller: `controller` declares its watches, `reconcile` has one pass, and rules
are in modules next to them. No controller imports another.
"""

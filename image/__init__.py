"""Programs of the image: every program of this project, by the kind in the configuration file.

`agent` and `webhooks` are separate programs, and know nothing of each other. Here they are one where the original has
one: its deployers start a single container for the controllers and the webhooks of the resource manager.
"""

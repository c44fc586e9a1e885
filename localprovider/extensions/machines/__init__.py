"""Machines of this provider: Nodes in the cluster of a Shoot, which KWOK plays.

rules   which Nodes there are to be, and in which order old ones make way for new ones: pure
worker  what is done for a Worker
"""

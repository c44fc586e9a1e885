"""Machines of this provider: Nodes in the cluster of a Shoot, simulated by KWOK.

rules   desired Nodes, and the order in which new ones replace old ones: pure
worker  actions for a Worker
"""

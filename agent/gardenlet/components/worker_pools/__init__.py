"""What makes nodes of worker pools: pure.

pools             what a pool of a Shoot asks for, and by which key its configuration is found
operating_system  OperatingSystemConfigs: what is on a machine when it starts, and from then on
worker            the Worker object, with all pools
node_agent        what the agents on nodes read in the Shoot, and that they may read it
"""

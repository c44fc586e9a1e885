"""A provider of Shoots on one computer, for laptops and tests: `python -m localprovider --config FILE`.

extensions/   extension controllers of the type `local`, for all kinds: one reconciler and a table of kinds
runner/       objects of Shoots in the seed become processes of this computer
seeds/        Shoots in which a gardenlet runs
shoots        the way into the cluster of a Shoot

It talks to the seed, and to the Nodes of its Shoots, by the same contract as any other provider.
"""

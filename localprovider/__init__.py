"""Provider of Shoots on one computer, for laptops and tests: `python -m localprovider --config FILE`.

extensions/   extension controllers of the type `local`: one class per kind
runner/       local processes for objects of Shoots in the seed
seeds/        Shoots in which a gardenlet runs
shoots        connections to the cluster of a Shoot

It uses the seed, and the Nodes of its Shoots, by the same contract as any other provider.
"""

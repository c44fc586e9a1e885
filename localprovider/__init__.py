"""A provider of Shoots on one computer, for laptops and tests: `python -m localprovider --config FILE`.

extensions/   extension controllers of the type `local`, for all kinds: one reconciler and a table of kinds

It talks to the seed only, and by the same contract as any other provider.
"""

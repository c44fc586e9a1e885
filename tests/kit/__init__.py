"""What tests share: waiting, objects, controllers and processes at work, worlds that know what they ask for.

`tests` is on the path of tests, and of the programs in it: `from kit.processes.agent import AgentProcess`.
"""

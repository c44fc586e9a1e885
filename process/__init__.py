"""What the programs `agent` and `webhooks` share as processes.

flags     the command line                   version   what is reported as version and user agent
logging   one line an entry, zap's keys      server    a small bounded HTTP server
probes    /healthz and /readyz               metrics   /metrics and /debug/pprof
runner    start in order, stop in reverse, signals, grace period, exit code
start     what comes before that: the configuration file, logs, what is about to run
"""

# Before any module of these programs imports aiohttp by itself.
from kube.http import aiohttp as aiohttp

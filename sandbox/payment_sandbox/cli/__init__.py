"""The command line.

Other packages may import ``main`` and ``options``.
"""

from payment_sandbox.loading import late

late(__name__, "activity", "mcp", "remote", "server_process")  # 100 ms of each command but serve

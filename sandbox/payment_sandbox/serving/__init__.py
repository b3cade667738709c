"""The sandbox server: HTTP, and the threads that deliver webhooks and drive running clocks.

Other packages may import ``binding``, ``config``, ``front``, ``lazy_servers``, ``posting``, ``real_loop``,
``realtime``, ``server``, ``services``, ``sessions``, ``starting``, ``threads``, ``tls`` and ``wsgi``.
"""

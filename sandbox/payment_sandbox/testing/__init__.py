"""A sandbox in the process of a test suite, without sockets.

Other packages may import ``access``, ``books``, ``clients.in_process``, ``project``, ``rehearsed_test``,
``reviews``, ``servers``, ``shops.browser``, ``shops.filling``, ``shops.submitting``, ``shops.tracebacks`` and
``unittesting``.
"""

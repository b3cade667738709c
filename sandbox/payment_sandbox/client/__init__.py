"""A client of the control API, with a review and a history built on it.

Other packages may import ``client``, ``clock``, ``errors``, ``history``, ``listening``, ``receiver`` and
``triggers``.
"""

"""A client of the control API, with a review and a history built on it.

Other packages may import ``client``, ``control_commands``, ``errors``, ``listening``,
``project_review``, ``receiver``, ``sandbox_clock`` and ``triggers``.
"""

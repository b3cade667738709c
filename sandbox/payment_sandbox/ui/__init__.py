"""What people see in a browser: the payment pages, the dashboard and the documentation.

Other packages may import ``dashboard``, ``docs``, ``docs.sections``, ``pages``, ``pages.language``
and ``templates``.
"""

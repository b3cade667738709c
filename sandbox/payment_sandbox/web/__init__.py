"""The sandbox over HTTP: the merchant API, the control API, and what their blueprints share.

Other packages may import ``answers.control``, ``answers.order_tables``, ``answers.overview``,
``answers.page_urls``, ``answers.qr_tables``, ``answers.records``, ``answers.responses``,
``answers.timeline_report``, ``auth``, ``bodies``, ``browsers``, ``call``, ``control``,
``control.declaring``, ``error_answers``, ``error_bodies``, ``event_stream``,
``merchant``, ``openapi``, ``releasing``, ``routes``, ``site`` and ``snapshot_bodies``.
"""

"""The sandbox over HTTP: the merchant API, the control API, the payment pages and the documentation.

Other packages may import ``answers.order_tables``, ``answers.qr_tables``, ``answers.records``,
``answers.transaction_tables``, ``app``, ``bodies``, ``call``, ``docs.docs_routes``, ``docs.library``,
``error_bodies``, ``event_stream``, ``merchant.explanation``, ``merchant.reading``, ``openapi``,
``page_urls``, ``pages.language``, ``site`` and ``statistics``.
"""

"""The sandbox over HTTP: the merchant API, the control API, the payment pages and the documentation.

Other packages may import ``addresses``, ``answers.order``, ``answers.qr``,
``answers.records``, ``answers.transactions``, ``app``, ``bodies``, ``call``,
``docs.library``, ``docs.views``, ``errors``, ``event_stream``, ``merchant.explanation``,
``merchant.reading``, ``openapi``, ``pages.language``, ``site`` and ``statistics``.
"""

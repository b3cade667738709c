"""One module per operation that the APIs, the pages or the clock can trigger.

Other packages may import ``act``, ``advance``, ``agenda``, ``attempts``, ``authorizations``, ``bank_qr``,
``by_hand``, ``cancel``, ``choose_scenario``, ``create_order``, ``find_orders``, ``recipes``,
``redelivery``, ``refund``, ``review_scenario``, ``update`` and ``wait``.
"""

"""One module per operation that the APIs, the pages or the clock can trigger.

Other packages may import ``act``, ``advance``, ``agenda``, ``attempts``, ``authorizations``, ``bank_qr``,
``beliefs``, ``by_hand``, ``cancel``, ``choose_scenario``, ``coverage``, ``create_order``,
``find_orders``, ``history``, ``in_words``, ``move_clock``, ``recipes``, ``redelivery``,
``refund``, ``review``, ``review.lessons``, ``review.payment_checks``, ``review.webhook_checks``,
``review_scenario``, ``update``, ``wait`` and ``what_if``.
"""

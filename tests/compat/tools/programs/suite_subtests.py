from payments import STATUSES, after


def test_payment(payment_sandbox, subtests):
    for action, status in STATUSES.items():
        with subtests.test(action):
            assert after(payment_sandbox, action) == status

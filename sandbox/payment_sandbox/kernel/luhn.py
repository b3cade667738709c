"""The check digit of card numbers."""


def is_luhn(number: str) -> bool:
    """Whether the check digit of a card number is correct."""
    digits = [int(digit) for digit in reversed(number)]
    doubled = (sum(divmod(digit * 2, 10)) for digit in digits[1::2])
    return (sum(digits[0::2]) + sum(doubled)) % 10 == 0

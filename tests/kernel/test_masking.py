"""Card numbers, card codes and keys are masked as merchants send them; similar texts stay."""

import json
from base64 import b64encode
from time import thread_time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from payment_sandbox.kernel.masking import MATCHES_MAX, Masking, mask

GROUPS = ("4012", "8888", "8888", "1881")
OTHER_GROUPS = (
    ("3782", "822463", "10005"),
    ("4222", "2222", "22222"),
    ("6304", "0000", "0000", "0001", "230"),
    ("630400", "0000000000000"),
)
ORDER_ID = "41111111-1111-4111-8111-111111111111"
TOKEN = "79ef8de3f48599518263517c32bc065e"


@pytest.mark.parametrize("separator", ["", " ", "-", "\u00a0", "+", "%20"], ids=ascii)
def test_groups_of_a_card_number_are_masked(separator: str) -> None:
    """Groups of a card number are masked with the usual separators, as text, JSON, and part of a URL."""
    for groups in (GROUPS, *OTHER_GROUPS):
        number = separator.join(groups)
        for text in (
            f"card {number}.",
            json.dumps({"a": number}, ensure_ascii=False),
            json.dumps({"a": json.dumps(number, ensure_ascii=False)}, ensure_ascii=False),
            f"number={number}&x=1",
            f"a=%20{number}",
            f"2027 {number} 123",
            json.dumps(f"\u2009{number}"),
        ):
            assert groups[-1] not in mask(text), text
            assert groups[1] not in mask(text), text


@pytest.mark.parametrize("key", ["sandbox-key", "9f1c-4-Zq", "k" * 90])
def test_an_api_key_is_masked(key: str) -> None:
    """An API key is masked as plain text, in JSON, and in a Basic header."""
    credentials = b64encode(f"{key}:password".encode()).decode()
    for text in (
        f"key {key}!",
        json.dumps({key: key}),
        f"?key={key}",
        f"Basic {credentials}",
        f"Basic {credentials}\u017f",
        key,
    ):
        masked = mask(text, key)
        assert key not in masked
        assert credentials not in masked
        assert "***" in masked
    for text in ("Basic information", "basic: 12345", "Basic SGVsbG8=", "BASIC zzzzz"):
        assert mask(text, key) == text


def test_an_api_key_with_a_card_number_in_it_is_masked_whole() -> None:
    """A key that contains a card number is masked as a whole."""
    number = "".join(GROUPS)
    for key in (f"ab{number}cdefabcdef1234", f"{number}abcdefabcdefabcd", f"abcdefabcdefabcd{number}"):
        assert mask(f"key {key}!", key) == "key ***!"


def test_masked_json_stays_valid() -> None:
    """Masked JSON stays valid, also with escaped emoji and line feeds beside the number."""
    body = json.dumps({"a": f"{''.join(GROUPS)} \N{GRINNING FACE}\n"})
    masked = mask(body)
    assert "1881" not in masked
    assert json.loads(masked.encode()) == {"a": "0 \N{GRINNING FACE}\n"}


@pytest.mark.parametrize(
    "text",
    [
        "400000000006",
        "501800000008",
        "2026-03-01T12:00:00.000000+00:00",
        "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11",
        json.dumps({"phone_numbers": ["+31 6 12345678", "+31 20 1234567"]}, indent=2),
        json.dumps("Dam 1\n1012 JS Amsterdam\nNetherlands"),
        "NL91 ABNA 0417 1643 00\nDE89 3704 0044 0532 0130 00",
        "0612345678\n0201234567\r\n0031612345678",
        "2026-03-01\t2026-04-01\n1772366400\t1775044800",
        json.dumps({"amounts": [1000, 2500, 1295, 705], "quantity": 3}, indent=4),
        "order 2026112212345678\ninvoice 2026000123",
        '{"vault_token": "79ef8de3f48599518263517c32bc065e"}',
    ],
)
def test_other_texts_stay(text: str) -> None:
    """Order numbers, times, lists and similar texts are not masked."""
    assert mask(text) == text


@pytest.mark.parametrize(
    "text",
    [
        '{"cvc": "123", "amount": 777}',
        '{"cvc": 123, "amount": 777}',
        '{"card_cvc": ["123"], "amount": 777}',
        '{"verificationValue": {"value": "123"}, "amount": 777}',
        'extra: {\\"cvv\\": \\"123\\", \\"amount\\": 777}',
        "card[cvc]=123&amount=777",
        "card%5Bcvc%5D=123&amount=777",
        "%22cvc%22:%20%22123%22&amount=777",
        "security-code: 123, amount 777",
        "card\u2013code: 123, amount 777",
        "<card cvv2='123' amount='777'/>",
        '{"amount": 777, "cvc": "123"',
        "{amount: 777, cvc: 123}",
        '{"cvc": {"a": {"b": "123"}}, "amount": 777}',
        '{"description": "cvc=123", "amount": 777}',
        json.dumps({"extra": json.dumps(json.dumps({"cvc": "123"})), "amount": 777}),
        '{"cvc_that_the_customer_has_entered_on_the_page": "123", "amount": 777}',
        '{"the cvc of the card": 123, "amount": 777}',
        '{"cvc.value": [["123"]], "amount": 777}',
        '{"cvc": "1\\"23", "amount": 777}',
        "cvc_that_the_customer_has_entered_on_the_page=123&amount=777",
        '{"amount": 777, "cvc": {"value": ["123"',
    ],
)
def test_the_value_of_a_field_with_the_name_of_a_code_is_masked(text: str) -> None:
    """A card code is masked by the name of its field, in JSON, forms and queries; other values stay."""
    assert "123" not in mask(text)
    assert "777" in mask(text)
    if text.startswith('{"') and text.endswith("}"):
        assert json.loads(mask(text))["amount"] == 777


@pytest.mark.parametrize(
    ("path", "masked"),
    [
        (f"/v1/orders/{ORDER_ID}/", None),
        (f"/v1/orders/{ORDER_ID}/transactions/{ORDER_ID}/cancel/", None),
        (f"/v1/orders/4111111111111111/{ORDER_ID}/", f"/v1/orders/0/{ORDER_ID}/"),
        ("/v1/orders/key-of-shop/", "/v1/orders/***/"),
    ],
)
def test_paths_of_words_and_identifiers_stay(path: str, masked: str | None) -> None:
    """Paths of words and identifiers stay; card numbers and keys do not."""
    assert mask(path, "key-of-shop") == (masked or path)


@pytest.mark.parametrize("identifier", [ORDER_ID, "abcd4111-1111-4111-8111-1a1b1c1d1e1f", TOKEN])
def test_identifiers_are_no_text(identifier: str) -> None:
    """The digits of an identifier are no card number and no code, whatever stands beside it."""
    for text in (
        f"the cvc for {identifier} is wrong",
        f"{identifier}: {''.join(GROUPS)}",
        f'["{identifier}"]',
    ):
        assert mask(text) == text.replace("".join(GROUPS), "0")
    assert mask(f"the cvc for {identifier} is 123") == f"the cvc for {identifier} is ***"


AROUND = st.lists(
    st.sampled_from(["card", "cafe", f" {ORDER_ID},", *' ,.:/=&x"\n{[é', "%22", "%2F", "\\n"]), max_size=5
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # the machine may be busy
@given(
    AROUND,
    st.sampled_from([GROUPS, *OTHER_GROUPS]),
    st.sampled_from(["", " ", "-", "\u00a0", "+", "%20", "%C2%A0"]),
    AROUND,
)
def test_numbers_are_found_in_all_surroundings(
    before: list[str], groups: tuple[str, ...], gap: str, after: list[str]
) -> None:
    """A number is masked whatever stands around it; with a wrong check digit, it stays."""
    start, end = (
        "number " + "".join(before),
        "".join(after),
    )  # a text that is JSON may lose spaces at its ends
    number = gap.join(groups)
    wrong = f"{number[:-1]}{(int(number[-1]) + 1) % 10}"
    assert mask(f"{start}{number}{end}") == f"{start}0{end}"
    assert mask(f"{start}{wrong}{end}") == f"{start}{wrong}{end}"


def test_long_texts_of_other_numbers_stay() -> None:
    """However many numbers a text has, only card numbers are masked."""
    lines = [
        f"2026-11-28 06:32:12 order {ORDER_ID} invoice 2026{place:012} amount {place}00 at 177236640{place:04}\n"
        for place in range(1000)
    ]
    lines.insert(500, f"number {''.join(GROUPS)} cvc=123\n")
    text = "".join(lines)
    assert mask(text) == text.replace(f"{''.join(GROUPS)} cvc=123", "0 cvc=***")


def test_a_text_with_too_many_matches_loses_all_digits() -> None:
    """Not every match of a hostile text is examined, but no digit of such a text is shown."""
    text = "cvc " * MATCHES_MAX
    assert mask(f"{text}12 of 3") == f"{text}12 of 3"
    masked = mask(f"{text}cvc {''.join(GROUPS)} and 123")
    assert not any(map(str.isdigit, masked.replace("0", "")))


@pytest.mark.parametrize(
    "part", ["cvc ", "4111111111111112 ", "4111 1111 1111 1112 ", '{"cvc": [', "41111111111111115 cvc: 12, "]
)
def test_the_time_for_a_hostile_text_grows_with_its_length(part: str) -> None:
    """Four times as much of what looks like secrets takes about four times as long, and not sixteen times."""

    def seconds(length: int) -> float:
        text, times = part * (length // len(part)), list[float]()
        for _ in range(3):
            started = thread_time()
            mask(text)
            times.append(thread_time() - started)
        return min(times)

    assert seconds(1_000_000) < 10 * seconds(250_000)


def test_a_number_with_a_fraction_is_no_card() -> None:
    """The duration of an attempt stays, whatever its digits are; a whole number is masked in any type."""
    durations = [8.4111111111111111, 12.5555555555554444, 0.6011111111111117]
    assert Masking().mask_record({"duration_ms": durations}) == {"duration_ms": durations}
    assert mask(f'{{"weight": {durations[0]!r}}}') == f'{{"weight": {durations[0]!r}}}'
    assert Masking().mask_record([4111111111111111, 4111111111111111.0]) == [0, 0]

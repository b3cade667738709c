#!/usr/bin/env bash
# py-moneyed 3.0 on Python 3.11, run on 2026-11-28
# A number modulo an amount is no remainder: it is so many percent of the amount. The other way round raises, and divmod,
# which computes the remainder of everything else, raises too.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check py-moneyed==3.0
seen=$(venv/bin/python - << 'PROGRAM'
from moneyed import Money

price = Money("10.00", "EUR")
print(repr(30 % price))
for text in ("price % 30", "divmod(price, 30)"):
    try:
        print(text, eval(text))
    except TypeError as error:
        print(text, type(error).__name__)
PROGRAM
)
expected=$(cat << 'EXPECTED'
Money('3.00', 'EUR')
price % 30 TypeError
divmod(price, 30) TypeError
EXPECTED
)
echo "$seen"
[ "$seen" = "$expected" ] || { echo "The behaviour has changed; it was:" && echo "$expected" && exit 1; }

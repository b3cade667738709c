#!/usr/bin/env bash
# stockholm 0.5.7 on Python 3.11, run on 2026-11-28
# Equal amounts that were written with different decimals have different hashes: a set keeps both, and a dictionary does
# not find one by the other, though both print as 10.00 EUR. And an amount without a currency equals one with any.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check stockholm==0.5.7
seen=$(venv/bin/python - << 'PROGRAM'
from stockholm import Money

short, long = Money("10", "EUR"), Money("10.00", "EUR")
print(short, long, short == long, len({short, long}), {short: "paid"}.get(long))
print(Money("10") == short, Money("10") == Money("10", "SEK"), short == Money("10", "SEK"))
PROGRAM
)
expected=$(cat << 'EXPECTED'
10.00 EUR 10.00 EUR True 2 None
True True False
EXPECTED
)
echo "$seen"
[ "$seen" = "$expected" ] || { echo "The behaviour has changed; it was:" && echo "$expected" && exit 1; }

#!/usr/bin/env bash
# segno 1.6.6 on Python 3.11, run on 2026-11-28
# The EPC code for a credit transfer may ask for up to 999999999.99 euros. make_epc_qr accepts this amount as a string
# and refuses it as a float, with a message that allows it: the float is compared exactly, and lies a hair above.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check segno==1.6.6
seen=$(venv/bin/python - << 'PROGRAM'
from segno.helpers import make_epc_qr

for amount in ("999999999.99", 999999999.99):
    try:
        code = make_epc_qr(name="Example", iban="DE89370400440532013000", amount=amount, text="A house")
        print(type(amount).__name__, code.designator)
    except ValueError as error:
        print(type(amount).__name__, error)
PROGRAM
)
expected=$(cat << 'EXPECTED'
str 5-M
float Invalid amount, must be in bigger or equal 0.01 and less or equal 999999999.99
EXPECTED
)
echo "$seen"
[ "$seen" = "$expected" ] || { echo "The behaviour has changed; it was:" && echo "$expected" && exit 1; }

#!/usr/bin/env bash
# iban 0.0.14 and ibantools 4.5.4 on Node.js 20, run on 2026-11-28
# The registry of IBANs lists Burundi with 27 characters. The package iban still expects its former 16, so it refuses the
# registry's own example, and accepts an IBAN of 16 characters that no bank of Burundi issues. ibantools does the opposite.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private": true}' > package.json
npm install --silent --no-audit --no-fund --ignore-scripts iban@0.0.14 ibantools@4.5.4
cat > program.mjs << 'PROGRAM'
import iban from "iban";
import { isValidIBAN } from "ibantools";

for (const value of ["BI4210000100010000332045181", "BI43201011067444"])
  console.log(value, "iban:", iban.isValid(value), "ibantools:", isValidIBAN(value));
PROGRAM
seen=$(node program.mjs)
expected=$(cat << 'EXPECTED'
BI4210000100010000332045181 iban: false ibantools: true
BI43201011067444 iban: true ibantools: false
EXPECTED
)
echo "$seen"
[ "$seen" = "$expected" ] || { echo "The behaviour has changed; it was:" && echo "$expected" && exit 1; }

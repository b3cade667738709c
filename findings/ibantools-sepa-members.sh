#!/usr/bin/env bash
# ibantools 4.5.4 on Node.js 20, run on 2026-11-28
# isSEPACountry says no for the five countries that joined the SEPA schemes in 2024 and 2025 and can be paid since, and
# yes for the United Kingdom. A shop that offers SEPA transfers by this answer leaves them out.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private": true}' > package.json
npm install --silent --no-audit --no-fund --ignore-scripts ibantools@4.5.4
cat > program.mjs << 'PROGRAM'
import { isSEPACountry, isValidIBAN } from "ibantools";

for (const country of ["AL", "MD", "ME", "MK", "RS", "GB"]) console.log(country, isSEPACountry(country));
console.log(isValidIBAN("RS35260005601001611379"));
PROGRAM
seen=$(node program.mjs)
expected=$(cat << 'EXPECTED'
AL false
MD false
ME false
MK false
RS false
GB true
true
EXPECTED
)
echo "$seen"
[ "$seen" = "$expected" ] || { echo "The behaviour has changed; it was:" && echo "$expected" && exit 1; }

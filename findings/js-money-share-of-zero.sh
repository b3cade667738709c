#!/usr/bin/env bash
# js-money 0.6.3 on Node.js 20, run on 2026-11-28
# allocate gives the cents that remain to the first shares, whatever they are: someone whose share is zero is charged a
# cent. Most libraries skip such a share.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private": true}' > package.json
npm install --silent --no-audit --no-fund --ignore-scripts js-money@0.6.3
cat > program.mjs << 'PROGRAM'
import Money from "js-money";

const split = (amount, shares) => new Money(amount, "EUR").allocate(shares).map((part) => part.amount).join(" ");
console.log(split(5, [0, 1, 1]), "and", split(5, [1, 1, 0]));
PROGRAM
seen=$(node program.mjs)
expected=$(cat << 'EXPECTED'
1 2 2 and 3 2 0
EXPECTED
)
echo "$seen"
[ "$seen" = "$expected" ] || { echo "The behaviour has changed; it was:" && echo "$expected" && exit 1; }

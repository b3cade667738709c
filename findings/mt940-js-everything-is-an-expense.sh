#!/usr/bin/env bash
# mt940-js 1.0.0 (with tslib 2.8.1, which it imports and does not declare) on Node.js 20, run on 2026-11-28
# Each transaction of a statement has isExpense: true, a payment received too, whose isCredit is true as well. Amounts
# have no sign, so a sum that goes by isExpense counts income as spending.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private": true}' > package.json
npm install --silent --no-audit --no-fund --ignore-scripts mt940-js@1.0.0 tslib@2.8.1
cat > program.mjs << 'PROGRAM'
import mt940 from "mt940-js";

const statement = [":20:REF1", ":25:DE89370400440532013000", ":28C:1/1", ":60F:C260101EUR1000,00",
  ":61:2601020102C10,00NTRFA1", ":86:received", ":61:2601020102D5,00NTRFA2", ":86:paid", ":62F:C260102EUR1005,00", "-", ""];
for (const { transactions } of await mt940.read(Buffer.from(statement.join("\r\n"))))
  for (const each of transactions) console.log(each.description, each.amount, each.isCredit, each.isExpense);
PROGRAM
seen=$(node program.mjs)
expected=$(cat << 'EXPECTED'
received 10 true true
paid 5 false true
EXPECTED
)
echo "$seen"
[ "$seen" = "$expected" ] || { echo "The behaviour has changed; it was:" && echo "$expected" && exit 1; }

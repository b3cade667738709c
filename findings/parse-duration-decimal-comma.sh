#!/usr/bin/env bash
# parse-duration 2.1.9 on Node.js 20, run on 2026-11-28
# A comma is taken for a mark of thousands wherever it stands, so the German "1,5h" is fifteen hours, and "0,5h" five.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private": true}' > package.json
npm install --silent --no-audit --no-fund --ignore-scripts parse-duration@2.1.9
cat > program.mjs << 'PROGRAM'
import parse from "parse-duration";

for (const text of ["1.5h", "1,5h", "0,5h", "1,500ms"]) console.log(text, parse(text, "minutes"));
PROGRAM
seen=$(node program.mjs)
expected=$(cat << 'EXPECTED'
1.5h 90
1,5h 900
0,5h 300
1,500ms 0.025
EXPECTED
)
echo "$seen"
[ "$seen" = "$expected" ] || { echo "The behaviour has changed; it was:" && echo "$expected" && exit 1; }

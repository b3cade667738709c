"""Scenario files with one mistake each, and the expected message."""

RULE = "name: x\nrules:\n  - "
WRONG_FILES = [
    # file, line:column, path, a word of the message
    ("", "1:1", "", "object"),
    ("- 1", "1:1", "", "object"),
    ("just words", "1:1", "", "object"),
    ("name: [", "1:8", "", "YAML"),
    ("name: x\nname: y", "2:1", "", "duplicate"),
    ("name: x\n\tdescription: y", "2:1", "", "YAML"),
    ("name: *x", "1:7", "", "alias"),
    ("name: x\n---\nname: y", "2:1", "", "document"),
    ("name: x\ndescription: 5", "2:1", "description", "string"),
    ("name: Big", "1:1", "name", "lower-case letters"),
    ("name: other", "1:1", "name", "file's name"),
    ("description: x", "1:1", "name", "required"),
    ("name: x\nrulez: []", "2:1", "rulez", "did you mean 'rules'?"),
    ("name: x\nrules: {}", "2:1", "rules", "list"),
    ("name: x\nrules:\n  - 5", "3:5", "rules[0]", "object"),
    (RULE + "when: {}", "3:5", "rules[0].then", "required"),
    (RULE + "then: {}", "3:5", "rules[0].then", "must contain one of"),
    (RULE + "then: {customer: pays, reason: no}\n    times: 0", "4:5", "rules[0].times", "at least 1"),
    (RULE + "times: 1.5\n    then: {customer: pays}", "3:5", "rules[0].times", "whole number"),
    ("name: x\nsettings: {mode: demo}", "2:12", "settings.mode", "one of"),
    ("name: x\nsettings: {mod: live}", "2:12", "settings.mod", "did you mean 'mode'?"),
]
WRONG_ITEMS = [
    # list, its item, column, path in the item, a word of the message
    ("rules", "then: {custmer: pays}", 12, "then.custmer", "did you mean 'customer'?"),
    ("rules", "then: {customer: payz}", 12, "then.customer", "did you mean 'pays'?"),
    ("rules", "then: {customer: yes}", 12, "then.customer", "one of"),
    ("rules", "then: {customer: pays, after: 12:30}", 28, "then.after", "duration"),
    ("rules", "then: {customer: pays, after: -PT5S}", 28, "then.after", "duration"),
    ("rules", "then: {customer: pays, card: gold}", 28, "then.card", "one of"),
    ("rules", "then: {credit: soon}", 12, "then.credit", "object"),
    ("rules", "then: {credit: {amount: 0}}", 21, "then.credit.amount", "at least 1"),
    ("rules", "then: {screening: maybe}", 12, "then.screening", "one of"),
    ("rules", "then: {processor: settle}", 12, "then.processor", "did you mean 'settles'?"),
    ("rules", "when: {amount: {above: 5}}", 21, "when.amount.above", "known key"),
    ("rules", "when: {amount: 12.95}", 12, "when.amount", "object"),
    ("rules", "when: {amount: {gte: -1}}", 21, "when.amount.gte", "at least 0"),
    ("rules", "when: {payment_method: []}", 12, "when.payment_method", "at least 1"),
    (
        "rules",
        "when: {payment_method: credit-crad}",
        12,
        "when.payment_method",
        "did you mean 'credit-card'?",
    ),
    ("rules", "when: {customer: Jan}", 12, "when.customer", "object"),
    ("rules", "when: {customer: {country: 5}}", 23, "when.customer.country", "string"),
    ("rules", "when: {attempt: first}", 12, "when.attempt", "whole number"),
    ("rules", "when: {refund: 1}", 12, "when.refund", "true or false"),
    ("webhooks", "then: {answer: 42}", 12, "then.answer", "at least 100"),
    ("webhooks", "when: {status: done}", 12, "when.status", "one of"),
    ("webhooks", "then: {drop: true, swap: true}", 5, "then", "exactly one"),
    ("faults", "then: {status: 200}", 12, "then.status", "at least 400"),
    ("faults", "when: {path: v1}", 12, "when.path", "path"),
    ("faults", "then: {rate_limit: 10}", 12, "then.rate_limit", "string"),
]
EFFECTS = {"rules": "customer: pays", "webhooks": "drop: true", "faults": "reset: true"}
WRONG = WRONG_FILES + [
    (
        f"name: x\n{name}:\n  - {item}" + ("" if "then" in item else f"\n    then: {{{EFFECTS[name]}}}"),
        f"3:{column}",
        f"{name}[0].{path}",
        words,
    )
    for name, item, column, path, words in WRONG_ITEMS
]

"""What was expected of a real CLI and what was seen, a line each."""
import re

PASS, FAIL = "PASS", "FAIL"


class Table:
    """The lines, and how often they differed."""

    def __init__(self):
        self.differences = 0

    def row(self, what, expected, seen, same):
        self.differences += not same
        print(f"{'ok  ' if same else 'DIFF'} {what:<24} {expected:<58} {seen}", flush=True)

    def equal(self, what, expected, seen):
        self.row(what, str(expected), str(seen), expected == seen)

    def said(self, what, pattern, log):
        found = [words for words in log if re.search(pattern, words)]
        self.row(what, f"/{pattern}/", found[0] if found else "nothing", bool(found))

    def records(self, runtime, call, wanted, records):
        """Holds every record against what it must be, `call` being the price of one call of the model."""
        for node, want in wanted.items():
            record = records.get(node, {"verdict": "no record", "cost_usd": 0})
            # Where a CLI may do either of two things in time, either is right.
            told = [compared(it, record, runtime, call) for it in (want, want.get("otherwise")) if it]
            self.row(node, *next((it for it in told if it[2]), told[0]))


def compared(want, record, runtime, call):
    """What was expected of `record`, what was seen, and whether that is the same."""
    usage, calls, more = record.get("usage", {}), want["calls"], want.get("more", 0)
    expected = line(want, want, (calls * 100 + more, calls * 20), price(want, runtime, call))
    tokens = (usage.get("input_tokens", 0), usage.get("output_tokens", 0))
    seen = line(want, record, tokens, priced(want, record))
    pattern, detail = want.get("detail", ""), record.get("detail", "")
    same = expected == seen and re.search(pattern, detail) is not None
    searched, told = f" /{pattern}/" if pattern else "", f" ({detail})" if detail else ""
    return expected + searched, seen + told, same


def dollars(amount):
    return f"${amount:.4f}"


def price(want, runtime, call):
    """What the node must cost when one `call` costs that."""
    if runtime == "codex" or want.get("cost") == "unknown":
        return "unknown"
    if want.get("cost") == "in part":
        return f"at least {dollars(call)}"
    return want.get("cost") or dollars(want["calls"] * call)


def priced(want, record):
    """What it cost, in the same words."""
    cost = record["cost_usd"]
    if record.get("cost_unknown"):
        return f"at least {dollars(cost)}" if cost else "unknown"
    if want.get("cost") == "over $0.5" and cost > 0.5:
        return want["cost"]
    return dollars(cost)


def line(want, record, tokens, cost):
    """Everything that is compared of a node but its detail."""
    parts = [record.get("verdict")] + [record.get(key) for key in ("cause", "provenance") if key in want]
    return ", ".join(map(str, [*parts, f"{tokens[0]}+{tokens[1]} tokens", cost]))

"""Many answers that carry promises, from a few: what `tyrex ledger record` is measured with.

    python bench/answers.py sample.jsonl answers --count 1000000 --parts 16

The sample has answers of an adviser with `promises=True`, as JSON lines. Every answer is repeated
for other customers, so every promise is another one.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

KEPT = ("status", "parameters", "model", "holds_until", "promise", "salt")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("sample", type=Path)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--count", type=int, default=1_000_000)
    arguments.add_argument("--parts", type=int, default=16)
    given = arguments.parse_args()
    lines = map(json.loads, given.sample.read_text(encoding="utf-8").splitlines())
    found = [json.dumps({name: line[name] for name in KEPT})[1:] for line in lines]
    given.folder.mkdir()
    for part in range(given.parts):
        path = given.folder / f"part-{part:03}.jsonl"
        with path.open("w", encoding="utf-8") as out:
            for number in range(part, given.count, given.parts):
                out.write(f'{{"customer": "customer {number}", {found[number % len(found)]}\n')


if __name__ == "__main__":
    main()

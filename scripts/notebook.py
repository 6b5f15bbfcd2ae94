"""Prints a notebook's cells as a page of the book."""

import json
import sys

for cell in json.load(open(sys.argv[1], encoding="utf-8"))["cells"]:
    text = "".join(cell["source"])
    print(f"```python\n{text}\n```\n" if cell["cell_type"] == "code" else f"{text}\n")

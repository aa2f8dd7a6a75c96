"""Print how long the package's files and functions are, as a table: look at the tail, not at the mean.

    python scripts/measure_code.py [--longest N]

Nothing here fails a build; import-linter and ruff do that.
"""

from __future__ import annotations

import argparse
import ast
import statistics
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "samedevice"


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body, less the docstring."""
    total = (function.end_lineno or function.lineno) - function.body[0].lineno + 1
    if ast.get_docstring(function, clean=False) is None:
        return total
    docstring = function.body[0]
    return total - ((docstring.end_lineno or docstring.lineno) - docstring.lineno + 1)


def percentile(values: list[int], part: float) -> int:
    """The value below which `part` (0 to 1) of the sorted values lie."""
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def main() -> None:
    """Measure every file under src/ and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--longest", type=int, default=5, help="how many of the longest functions to name")
    options = parser.parse_args()
    files: dict[str, int] = {}
    functions: list[tuple[int, str]] = []
    documented, public = 0, 0
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text()
        files[str(path.relative_to(SOURCE))] = text.count("\n")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                functions.append((body_lines(node), f"{path.relative_to(SOURCE)}:{node.lineno} {node.name}"))
                if not node.name.startswith("_"):
                    public += 1
                    documented += ast.get_docstring(node) is not None
    lines, bodies = list(files.values()), [length for length, _ in functions]
    print("| measure | median | p90 | max |")
    print("| --- | --- | --- | --- |")
    print(f"| lines a file ({len(lines)}) | {statistics.median(lines):.0f} | {percentile(lines, 0.9)} | {max(lines)} |")
    print(
        f"| lines a function body ({len(bodies)}) | {statistics.median(bodies):.0f} "
        f"| {percentile(bodies, 0.9)} | {max(bodies)} |"
    )
    print(f"\npublic functions with a docstring: {documented} of {public}")
    for length, name in sorted(functions, reverse=True)[: options.longest]:
        print(f"{length:5} {name}")
    for name, length in files.items():
        if length > 400:
            print(f"past 400 lines, which second purpose crept in? {name} ({length})")


if __name__ == "__main__":
    main()

"""Write the pages that come from the code: docs/causes/ and docs/smells/, one page each, and their indexes.

A page has fixed headings, filled from the cause's fields, so that none can be missing. CI runs this and fails where the
pages in the repository differ.
"""

from pathlib import Path

from samedevice.causes.catalogue import SLUGS, all_causes, all_smells
from samedevice.causes.cause import MARK, Cause, Example

DOCS = Path(__file__).parent.parent / "docs"


def main() -> None:
    """Write every page and take away those whose cause is gone."""
    _write(DOCS / "causes", {"index.md": index(), **{f"{cause.slug}.md": page(cause) for cause in all_causes()}})
    _write(DOCS / "smells", {"index.md": smell_index(), **{f"{smell.slug}.md": page(smell) for smell in all_smells()}})


def _write(folder: Path, pages: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.md"):
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        (folder / name).write_text(text, encoding="utf-8")


def index() -> str:
    """The table of all causes."""
    rows = [f"| {c.code} | [{c.slug}]({c.slug}.md) | {c.summary} | {finders(c)} |" for c in all_causes()]
    return "\n".join(
        [
            "# Causes",
            "",
            "One catalogue serves `run`, `lint`, `explain` and `fix`. Codes and names are stable. Every example below",
            "is a script that the tests lint, and run on simulated devices.",
            "",
            "| code | name | what is wrong | found by |",
            "| --- | --- | --- | --- |",
            *rows,
            "",
        ]
    )


def smell_index() -> str:
    """The table of what is no fault."""
    rows = [f"| {c.code} | [{c.slug}]({c.slug}.md) | {c.summary} |" for c in all_smells()]
    return "\n".join(
        [
            "# Smells",
            "",
            "What works, and costs time or ties a program to one machine. `samedevice lint` looks for smells where",
            'they are selected: `--extend-select smells`, or `extend-select = ["smells"]` in `[tool.samedevice]`; a',
            "code or a name selects one. SD901 is always on: it is about comments.",
            "",
            "| code | name | what could be better |",
            "| --- | --- | --- |",
            *rows,
            "",
        ]
    )


def finders(cause: Cause) -> str:
    """Which tools see the cause."""
    return ", ".join(name for name, missing in (("lint", cause.not_static), ("run", cause.not_run)) if missing is None)


def page(cause: Cause) -> str:
    """One cause under the fixed headings."""
    lines = [f"# {cause.code} {cause.slug}", "", "## What it is", "", cause.summary]
    lines += ["", "## Why it fails" if cause.code in SLUGS else "## Why it matters", "", cause.why]
    for number, example in enumerate(cause.examples, 1):
        lines += examples(example, f" ({number})" if len(cause.examples) > 1 else "")
    if cause.clean:
        lines += ["", "## Looks alike and is right"]
        for script in cause.clean:
            lines += ["", *code(script)]
    lines += ["", "## How safe the fix is", "", cause.fix_safety]
    limits = [
        ("`lint` does not see it", cause.not_static),
        ("`run` does not see it", cause.not_run),
        ("No edit is made without you", cause.not_fixed),
    ]
    for what, why in limits:
        lines += ["", f"{what}: {why}."] if why else []
    lines += ["", "## Source", "", f"<{cause.source}>", ""]
    return "\n".join(lines)


def examples(example: Example, number: str) -> list[str]:
    """Wrong and right, one under the other."""
    devices = f" It needs {example.devices} devices." if example.devices > 1 else ""
    mark = f"`{MARK.strip()}` marks the line.{devices}"
    return [
        *("", f"## Wrong{number}", "", mark, "", *code(example.wrong)),
        *("", f"## Right{number}", "", *code(example.right)),
    ]


def code(script: str) -> list[str]:
    """A script as a block."""
    return ["```python", *script.strip().splitlines(), "```"]


if __name__ == "__main__":
    main()

"""What is known about one cause of device faults, and the examples that show it. Data only: nothing here is run."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MARK", "Cause", "Example"]

MARK = "  # !"
"""Ends the lines of a wrong example where the fault is: where it surfaces, or where the mend goes."""


@dataclass(frozen=True, slots=True)
class Example:
    """The same runnable script twice: with the fault, its lines marked by `# !`, and mended."""

    wrong: str
    right: str
    devices: int = 1
    """How many devices a machine needs to run it."""

    @property
    def marked_lines(self) -> tuple[int, ...]:
        """The numbers, from 1, of the lines of `wrong` that carry the mark."""
        return tuple(number for number, line in enumerate(self.wrong.splitlines(), 1) if line.endswith(MARK))

    @property
    def wrong_script(self) -> str:
        """`wrong` as a user would have written it, without the marks."""
        return "\n".join(line.removesuffix(MARK) for line in self.wrong.splitlines()) + "\n"


@dataclass(frozen=True, slots=True)
class Cause:
    """One kind of device fault. From these fields come its documentation page, its tests and `samedevice causes`."""

    code: str
    slug: str
    summary: str
    """One sentence: what is wrong."""
    why: str = ""
    """Why PyTorch fails there, or goes wrong in silence."""
    source: str = ""
    """The PyTorch page or thread that the statement rests on."""
    examples: tuple[Example, ...] = ()
    clean: tuple[str, ...] = ()
    """Scripts that look alike and are right: nothing may be reported for them."""
    fix_safety: str = ""
    """What the mend may change besides the device."""
    not_static: str | None = None
    """Why the linter cannot see this cause in the source; None where it does."""
    not_run: str | None = None
    """Why a simulated run cannot show this cause; None where it does."""
    not_fixed: str | None = None
    """Why no edit is made without a person; None where `lint --fix` turns each wrong example into the right one."""

    @property
    def module(self) -> str:
        """The name of the cause's file and rule: the slug in snake case."""
        return self.slug.replace("-", "_")

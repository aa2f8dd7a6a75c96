import textwrap

import pytest

from samedevice.linting.lint import lint_source


@pytest.fixture
def found():
    """The codes and lines found in a program."""

    def lint(program, **options):
        return [(finding.code, finding.location.line) for finding in lint_source(textwrap.dedent(program), **options)]

    return lint

"""The page that lists the programs says what is run."""

import importlib.util
from pathlib import Path


def test_the_page_is_up_to_date():
    spec = importlib.util.spec_from_file_location("programs_listing", Path(__file__).with_name("listing.py"))
    listing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(listing)
    assert listing.PAGE.read_text() == listing.page(), "run python tests/programs/listing.py"

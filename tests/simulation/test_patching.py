import subprocess
import sys
import textwrap

import pytest

from samedevice.simulation.patching import Applied, ItemPatch, Patch


class Base:
    inherited = "base"

    @staticmethod
    def static():
        return "static"


class Owner(Base):
    own = "own"

    @classmethod
    def class_method(cls):
        return cls.own


def contents(owner):
    return dict(vars(owner))


@pytest.mark.parametrize("name", ["own", "inherited", "static", "class_method", "nowhere"])
@pytest.mark.parametrize("replacement", ["replaced", Patch.ABSENT])
def test_an_attribute_is_as_before(name, replacement):
    before = contents(Owner)
    with Applied([Patch(Owner, name, replacement)]):
        if replacement is Patch.ABSENT:
            assert name not in vars(Owner)
        else:
            assert getattr(Owner, name) == replacement
    assert contents(Owner) == before


def test_patches_of_one_attribute_nest():
    with Applied([Patch(Owner, "own", 1), Patch(Owner, "own", 2)]):
        assert Owner.own == 2
    assert Owner.own == "own"


def test_items_are_as_before():
    mapping = {"kept": 1}
    with Applied(
        [ItemPatch(mapping, "kept", 2), ItemPatch(mapping, "new", 3), ItemPatch(mapping, "gone", Patch.ABSENT)]
    ):
        assert mapping == {"kept": 2, "new": 3}
    assert mapping == {"kept": 1}


def test_a_failing_installation_is_undone():
    class Fails:
        def install(self):
            raise OSError("no")

        def undo(self):
            raise AssertionError("never installed")

    with pytest.raises(OSError, match="no"), Applied([Patch(Owner, "own", 1), Fails()]):
        raise AssertionError("not reached")
    assert Owner.own == "own"


def test_all_are_undone_when_one_undoing_fails():
    class Fails:
        def install(self):
            pass

        def undo(self):
            raise OSError("no")

    with pytest.raises(OSError, match="no"), Applied([Patch(Owner, "own", 1), Fails(), Patch(Owner, "inherited", 2)]):
        pass
    assert (Owner.own, Owner.inherited) == ("own", "base")


def test_suspending_undoes_and_installs_again():
    with Applied([Patch(Owner, "own", 1)]) as patches:
        with patches.suspended():
            assert Owner.own == "own"
            with patches.suspended():
                assert Owner.own == "own"
        assert Owner.own == 1
    assert Owner.own == "own"


def test_what_is_entered_for_good_is_left_when_the_process_ends():
    script = """
        import atexit, contextlib
        from samedevice.simulation.patching import for_good

        @contextlib.contextmanager
        def within():
            print("entered")
            yield "given"
            print("left")

        print(for_good(within()))
        atexit.register(print, "still inside")
        print("end")
        """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:-1] == ["entered", "given", "end", "still inside", "left"]

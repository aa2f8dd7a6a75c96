"""The plugin in runs of its own: two processes, since torch cannot be imported twice into one."""

import pytest
import torch

pytest_plugins = ["pytester"]


@pytest.fixture
def run_tests(pytester):
    def run(text, *arguments):
        pytester.makepyfile(text)
        return pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments)

    return run


def test_a_session_on_simulated_devices(run_tests):
    result = run_tests(
        """
        import pytest
        import torch
        from torch import nn

        @pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
        def test_passes():
            assert torch.zeros(1, device="cuda:1").device == torch.device("cuda:1")

        @pytest.mark.simulated_device("cuda:8")
        def test_the_sessions_devices_stay():
            assert torch.cuda.device_count() == 2

        @pytest.mark.simulated_device("cuda:8")
        def test_wants_others():
            with pytest.raises(RuntimeError, match="same device"):
                torch.zeros(1, device="cuda:7")

        def test_fails():
            model = nn.Linear(4, 2).to("cuda")
            images = torch.rand(8, 4)
            model(images)

        def test_fails_otherwise():
            assert 1 == 2
        """,
        "--samedevice-simulate=cuda:2",
    )
    result.assert_outcomes(passed=2, failed=3)
    result.stdout.fnmatch_lines(
        [
            "samedevice: simulated cuda:2",
            "*- samedevice -*",
            "--samedevice-simulate cuda:2 holds for the whole session; this test's mark asks for cuda:8",
            "*- samedevice -*",
            "*images is on cpu*",
            "  at test_*.py:21 in test_fails: model(images)",
            "*SD1*",
        ]
    )
    assert str(result.stdout).count("- samedevice -") == 2
    assert "samedevice/simulation" not in str(result.stdout)


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="asks for a machine without CUDA")
def test_without_the_option_only_marked_tests_are_simulated(run_tests):
    result = run_tests(
        """
        import pytest
        import torch

        @pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
        def test_skipped():
            pass

        @pytest.fixture
        def tensor():
            return torch.zeros(1, device="cuda")

        @pytest.mark.simulated_device("cuda:2")
        def test_marked(tensor):
            assert tensor.is_cuda
            assert torch.cuda.device_count() == 2

        @pytest.mark.simulated_device()
        def test_marked_by_default():
            assert torch.cuda.device_count() == 1

        def test_unmarked():
            assert not torch.cuda.is_available()
        """,
        "--strict-markers",
    )
    result.assert_outcomes(passed=3, skipped=1)
    assert "samedevice: simulated" not in str(result.stdout)


def test_a_wrong_device_is_wrong_usage(run_tests):
    result = run_tests("def test_it(): pass", "--samedevice-simulate=gpu")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --samedevice-simulate: *gpu*"])


@pytest.mark.skipif(torch.cuda.is_available(), reason="asks for a machine without CUDA")
def test_marks_of_every_form_and_tests_of_unittest(run_tests):
    result = run_tests(
        """
        import unittest
        import pytest
        import torch

        @pytest.mark.simulated_device("gpu")
        def test_wrong():
            pass

        @pytest.mark.simulated_device("cuda", 2)
        def test_too_many():
            pass

        @pytest.mark.simulated_device(device="cuda:3")
        def test_by_name():
            assert torch.cuda.device_count() == 3

        @pytest.mark.simulated_device
        class TestMoves(unittest.TestCase):
            def test_fails(self):
                weight = torch.ones(2, device="cuda")
                weight + torch.ones(2)
        """
    )
    result.assert_outcomes(passed=1, failed=1, errors=2)
    result.stdout.fnmatch_lines(
        [
            "@pytest.mark.simulated_device: cannot simulate 'gpu': *",
            "@pytest.mark.simulated_device: simulated_device() takes from 0 to 1 positional arguments but 2 were given",
            "*- samedevice -*",
            "  at test_*.py:21 in test_fails: weight + torch.ones(2)",
        ]
    )
    assert "samedevice/simulation" not in str(result.stdout)
    assert "INTERNALERROR" not in str(result.stdout)

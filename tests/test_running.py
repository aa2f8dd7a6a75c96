"""A script finds what `python SCRIPT` gives it. Run in this process; one test compares with python itself."""

import os
import pickle
import subprocess
import sys
import textwrap
import threading
import zipfile
from pathlib import Path

import pytest

import samedevice
from samedevice.errors import UsageError
from samedevice.running import RunOptions, run


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(text, name="script.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return name

    return write


def status_of(target, *args, **options):
    return run(RunOptions(target, args, **options)).status


# ---- as python does


def test_names_arguments_and_path(script, capsys):
    script("VALUE = 5", "pack/neighbour.py")
    name = script(
        """
        import sys, neighbour
        print(__name__, __file__, __package__, __spec__, sys.argv, sys.path[0], neighbour.VALUE)
        print(sys.modules["__main__"].__dict__ is globals(), __builtins__.__name__)
        """,
        "pack/script.py",
    )
    assert status_of(name, "--epochs", "3") == 0
    folder = os.path.realpath("pack")
    assert capsys.readouterr().out == (
        f"__main__ {Path(name).absolute()} None None ['{name}', '--epochs', '3'] {folder} 5\nTrue builtins\n"
    )
    del sys.modules["neighbour"]


def test_a_linked_script_finds_its_neighbours(script, capsys):
    script("import sys; print(sys.path[0])", "real/script.py")
    Path("link.py").symlink_to("real/script.py")
    assert status_of("link.py") == 0
    assert capsys.readouterr().out.strip() == os.path.realpath("real")


def test_a_module_of_a_package(script, capsys):
    script("", "pack/__init__.py")
    script("from . import part; import sys; print(__name__, __package__, __spec__.name, sys.argv[1:])", "pack/tool.py")
    script("print('part', __name__)", "pack/part.py")
    assert status_of("pack.tool", "x", module=True) == 0
    assert capsys.readouterr().out == "part pack.part\n__main__ pack pack.tool ['x']\n"
    for name in ("pack", "pack.part"):
        del sys.modules[name]


def test_a_package_runs_its_main_module(script, capsys):
    script("", "whole/__init__.py")
    script("print(__name__, __package__)", "whole/__main__.py")
    assert status_of("whole", module=True) == 0
    assert capsys.readouterr().out == "__main__ whole\n"
    del sys.modules["whole"]


def test_a_folder_and_a_zip_file_run_their_main(script, capsys):
    script("import other; print(other.__name__)", "app/__main__.py")
    script("", "app/other.py")
    assert status_of("app") == 0
    del sys.modules["other"]
    with zipfile.ZipFile("app.zip", "w") as archive:
        archive.write("app/__main__.py", "__main__.py")
        archive.write("app/other.py", "other.py")
    assert status_of("app.zip") == 0
    assert capsys.readouterr().out == "other\nother\n"
    del sys.modules["other"]


def test_everything_is_put_back(script):
    name = script("import sys, atexit, threading; sys.argv.append('x'); sys.path.append('nowhere')")
    before = (sys.modules["__main__"], list(sys.argv), list(sys.path), threading.excepthook)
    status_of(name)
    assert (sys.modules["__main__"], sys.argv, sys.path, threading.excepthook) == before


def test_classes_of_the_script_can_be_pickled(script):
    name = script(
        """
        import pathlib, pickle
        class Point:
            pass
        pathlib.Path("point.pkl").write_bytes(pickle.dumps(Point()))
        assert type(pickle.loads(pathlib.Path("point.pkl").read_bytes())) is Point
        """
    )
    assert status_of(name) == 0
    assert b"__main__" in Path("point.pkl").read_bytes()
    with pytest.raises(AttributeError):
        pickle.loads(Path("point.pkl").read_bytes())


@pytest.mark.parametrize(
    ("end", "status", "printed"),
    [
        ("", 0, ""),
        ("sys.exit()", 0, ""),
        ("sys.exit(0)", 0, ""),
        ("sys.exit(7)", 7, ""),
        ("sys.exit(True)", 1, ""),
        ("sys.exit('no data')", 1, "no data\n"),
        ("sys.exit([1, 2])", 1, "[1, 2]\n"),
        ("raise SystemExit", 0, ""),
    ],
)
def test_exit_status(script, capsys, end, status, printed):
    result = run(RunOptions(script(f"import sys\n{end}")))
    assert result.status == status
    assert result.outcome == ("error" if status else "ok")
    assert capsys.readouterr().err == printed


def test_an_uncaught_exception_prints_the_users_traceback(script, capsys):
    name = script("def f():\n    return 1 / 0\n\nf()\n")
    result = run(RunOptions(name))
    assert (result.status, result.outcome, result.report.findings) == (1, "error", ())
    printed = capsys.readouterr().err
    assert printed.startswith(
        f'Traceback (most recent call last):\n  File "{Path(name).absolute()}", line 4, in <module>'
    )
    assert printed.endswith("ZeroDivisionError: division by zero\n")
    assert "samedevice" not in printed


def test_the_scripts_own_excepthook_is_asked(script, capsys):
    name = script("import sys\nsys.excepthook = lambda kind, error, tb: print('own', kind.__name__)\n1 / 0\n")
    hook = sys.excepthook
    try:
        assert status_of(name) == 1
    finally:
        sys.excepthook = hook
    assert capsys.readouterr() == ("own ZeroDivisionError\n", "")


def test_an_excepthook_that_fails_hides_nothing(script, capsys):
    hook = sys.excepthook
    try:
        assert status_of(script("import sys\nsys.excepthook = None\n1 / 0\n")) == 1
    finally:
        sys.excepthook = hook
    printed = capsys.readouterr().err
    assert "Error in sys.excepthook:" in printed
    assert "ZeroDivisionError" in printed


def test_a_syntax_error_is_the_scripts_own_failure(script, capsys):
    result = run(RunOptions(script("print(1)\nx = = 2\n")))
    assert (result.status, result.outcome) == (1, "error")
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "line 2" in printed.err
    assert "SyntaxError" in printed.err
    assert "Traceback" not in printed.err


def test_an_interrupt(script, capsys):
    result = run(RunOptions(script("raise KeyboardInterrupt")))
    assert (result.status, result.outcome) == (130, "error")
    assert "KeyboardInterrupt" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("target", "module", "message"),
    [
        ("none.py", False, "cannot open none.py: No such file or directory"),
        ("cells.ipynb", False, "cannot run cells.ipynb: a notebook is no script"),
        ("empty", False, "cannot run empty: it holds no __main__.py"),
        ("no_such_module", True, "no module 'no_such_module' can be run from"),
        ("json.no_such", True, "no module 'json.no_such' can be run from"),
    ],
)
def test_nothing_to_run(tmp_path, monkeypatch, target, module, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=message.replace(".", r"\.")):
        run(RunOptions(target, module=module))


def test_a_package_that_fails_to_import_is_the_scripts_own_failure(script, capsys):
    script("import a_module_that_is_missing", "broken/__init__.py")
    script("", "broken/tool.py")
    result = run(RunOptions("broken.tool", module=True))
    assert (result.status, result.outcome) == (1, "error")
    assert "a_module_that_is_missing" in capsys.readouterr().err


def test_threads_and_exit_functions_end_before_the_run_does(script, capsys):
    name = script(
        """
        import atexit, threading, time
        atexit.register(int)  # not a function of the script: left to the interpreter
        @atexit.register
        def last():
            print("last")
        def fails():
            1 / 0
        def forgotten():
            print("never")
        atexit.register(fails)
        atexit.register(forgotten)
        atexit.unregister(forgotten)
        atexit.register(lambda word, times: print(word * times), "first ", times=2)
        def work():
            time.sleep(0.05)
            print("thread")
        threading.Thread(target=work).start()
        print("script")
        """
    )
    assert status_of(name) == 0
    printed = capsys.readouterr()
    assert printed.out == "script\nthread\nfirst first \nlast\n"
    assert "Exception ignored in atexit callback <function fails" in printed.err
    assert "ZeroDivisionError" in printed.err


def test_an_idle_executor_does_not_hold_the_run_up(script):
    name = script(
        """
        from concurrent.futures import ThreadPoolExecutor
        pool = ThreadPoolExecutor(1)
        assert pool.submit(lambda: 3).result() == 3
        """
    )
    assert status_of(name) == 0


def test_the_traceback_and_streams_are_those_of_python(script):
    """Word for word, from two processes."""
    name = script(
        """
        import sys
        print("out", sys.argv[1:])
        print("err", file=sys.stderr)
        def step(text):
            raise ValueError(text)
        try:
            step("first")
        except ValueError as error:
            raise KeyError(sys.stdin.read()) from error
        """
    )
    answers = [
        subprocess.run([sys.executable, *command, name, "a", "-b"], input="typed", capture_output=True, text=True)
        for command in ([], ["-m", "samedevice", "run"])
    ]
    python, ours = ((done.returncode, done.stdout, done.stderr) for done in answers)
    assert ours == python


# ---- device faults

FAULT = """
import torch
from torch import nn

model = nn.Linear(4, 2).to("cuda")
x = torch.rand(8, 4)
"""


def run_simulated(name, **options):
    return run(RunOptions(name, simulate="cuda:2", **options))


def only(result):
    assert (result.status, result.outcome) == (1, "finding")
    (finding,) = result.report.findings
    return finding


@pytest.mark.parametrize("origins", [True, False])
def test_a_fault_that_ends_the_script(script, capsys, origins):
    result = run_simulated(script(FAULT + "model(x)\n"), origins=origins)
    finding = only(result)
    assert (finding.location.file, finding.location.line) == ("script.py", 7)
    assert finding.raised.type == "RuntimeError"
    assert finding.raised.message.startswith("Expected all tensors to be on the same device")
    assert result.report.script == "script.py"
    assert result.report.simulated == ("cuda:0", "cuda:1")
    assert str(Path(samedevice.__file__).parent) not in capsys.readouterr().err


def test_a_fault_behind_another_exception(script):
    name = script(FAULT + "try:\n    model(x)\nexcept RuntimeError as error:\n    raise ValueError('no') from error\n")
    assert only(run_simulated(name)).location.line == 8


@pytest.mark.parametrize(("code", "outcome"), [("3", "finding"), ("'failed'", "finding"), ("0", "ok")])
def test_a_fault_answered_by_sys_exit(script, code, outcome):
    name = script(FAULT + f"import sys\ntry:\n    model(x)\nexcept RuntimeError:\n    sys.exit({code})\n")
    result = run_simulated(name)
    assert result.outcome == outcome
    assert result.status == (1 if outcome == "finding" else 0)


def test_a_fault_that_the_script_lives_with_is_its_own_business(script):
    name = script(FAULT + "try:\n    model(x)\nexcept RuntimeError:\n    model(x.to('cuda'))\n")
    result = run_simulated(name)
    assert (result.status, result.outcome, result.report.findings) == (0, "ok", ())


def test_a_fault_in_a_thread(script, capsys, monkeypatch):
    monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)  # pytest has one of its own
    name = script(FAULT + "import threading\nthreading.Thread(target=lambda: model(x)).start()\n")
    assert only(run_simulated(name)).location.line == 8
    assert "Exception in thread" in capsys.readouterr().err


def test_a_fault_that_several_threads_meet_is_told_once(script, monkeypatch):
    monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)
    work = "def work(rows):\n    model(torch.randn(rows, model.in_features))\n"
    start = "for rows in (2, 3):\n    threading.Thread(target=work, args=(rows,)).start()\n"
    name = script(FAULT + f"import threading\n{work}{start}")
    assert only(run_simulated(name)).location.function == "work"


def test_exit_functions_still_have_their_devices(script, capsys):
    name = script(FAULT + "import atexit\natexit.register(lambda: print(model.weight.device))\n")
    assert run_simulated(name).status == 0
    assert capsys.readouterr().out == "cuda:0\n"


def test_files_elsewhere_keep_their_whole_name(script, tmp_path_factory):
    helper = tmp_path_factory.mktemp("elsewhere") / "helper_elsewhere.py"
    helper.write_text("def use(model, x):\n    return model(x)\n")
    name = script(
        FAULT + f"import sys\nsys.path.append({str(helper.parent)!r})\nimport helper_elsewhere\n"
        "helper_elsewhere.use(model, x)\n"
    )
    assert only(run_simulated(name)).location.file == str(helper)
    del sys.modules["helper_elsewhere"]


def test_a_clean_script_is_as_silent_as_python(script, capsys):
    result = run_simulated(script(FAULT + "print(model(x.to('cuda')).device)\n"))
    assert (result.status, result.outcome) == (0, "ok")
    assert capsys.readouterr() == ("cuda:0\n", "")


def test_without_a_simulation_nothing_is_simulated(script, capsys):
    result = run(RunOptions(script("import torch\nprint(torch.zeros(1).device)\n")))
    assert (result.status, result.report.simulated) == (0, None)
    assert capsys.readouterr().out == "cpu\n"


def test_no_such_device(script):
    with pytest.raises(UsageError, match="gpu"):
        run(RunOptions(script(""), simulate="gpu"))


@pytest.mark.parametrize(("hook", "status"), [("sys.exit(7)", 7), ("1 / 0", 1)])
def test_a_hook_for_uncaught_exceptions_that_raises(script, capsys, hook, status):
    name = script(f"import sys\ndef hook(*error): {hook}\nsys.excepthook = hook\nraise ValueError('first')")
    before = sys.excepthook
    try:
        assert status_of(name) == status
    finally:
        sys.excepthook = before
    printed = capsys.readouterr().err
    assert "interpreter.py" not in printed
    assert "During handling" not in printed
    assert ("Error in sys.excepthook:" in printed) == (status == 1)


def test_a_fault_in_an_exit_function_is_reported(script, capsys):
    name = script(
        """
        import atexit, torch
        def save(): torch.ones(2, device="cuda") + torch.ones(2)
        atexit.register(save)
        """
    )
    result = run(RunOptions(name, simulate="cuda"))
    assert (result.status, len(result.report.findings)) == (1, 1)
    assert "Exception ignored in atexit callback" in capsys.readouterr().err


@pytest.mark.slow
def test_a_simulated_run_gets_classes_and_faults_back_from_spawned_processes(script):
    name = script(
        """
        import multiprocessing, torch
        class Result:
            pass
        def add(_):
            torch.ones(2, device="cuda") + torch.ones(2)
        if __name__ == "__main__":
            context = multiprocessing.get_context("spawn")
            queue = context.Queue()
            process = context.Process(target=queue.put, args=(Result(),))
            process.start()
            assert type(queue.get()) is Result
            process.join()
            with context.Pool(1) as pool:
                pool.map(add, [1])
        """
    )
    command = [sys.executable, "-m", "samedevice", "run", "--simulate", "cuda", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "1 device fault in script.py" in done.stderr

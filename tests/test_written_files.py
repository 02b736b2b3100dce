"""Output goes where a name leads: links stay links, devices and FIFOs stay what they are, others' files keep their lines."""

import json
import os
import signal
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest

import ascend
import mpgemm
from mpgemm.cli import main
from mpgemm.experiments.journal import Journal
from tensorcore_models.files import atomic_writer, write_text

QUICK = ["evaluate", "--distribution", "normal", "--shape", "4", "8", "4", "--methods", "fp32", "fp64", "--no-figures"]


def test_a_link_stays_a_link_and_its_file_is_written(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_text("old")
    os.chmod(tmp_path / "there" / "file", 0o640)
    (tmp_path / "one").symlink_to("there/file")
    (tmp_path / "two").symlink_to("one")
    write_text(tmp_path / "two", "new")
    assert (tmp_path / "two").is_symlink() and (tmp_path / "one").is_symlink()
    assert (tmp_path / "there" / "file").read_text() == "new"
    assert stat.S_IMODE((tmp_path / "there" / "file").stat().st_mode) == 0o640
    assert sorted(os.listdir(tmp_path / "there")) == ["file"]
    (tmp_path / "dangling").symlink_to("later/file")
    write_text(tmp_path / "dangling", "made")
    assert (tmp_path / "dangling").is_symlink() and (tmp_path / "later" / "file").read_text() == "made"
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError):
        write_text(tmp_path / "loop", "x")


@pytest.mark.parametrize("linked", [False, True])
def test_a_fifo_is_written_through(tmp_path, linked):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    if linked:
        (tmp_path / "link").symlink_to("fifo")
    read = []
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    write_text(tmp_path / ("link" if linked else "fifo"), "text" * 50_000)
    reader.join(20)
    assert read == [b"text" * 50_000] and stat.S_ISFIFO(path.lstat().st_mode)


def test_a_device_is_written_through_and_nothing_is_made_beside_it(tmp_path):
    """A link to /dev/null, in a folder that may be written, as /dev may by root."""
    (tmp_path / "null").symlink_to("/dev/null")
    write_text(tmp_path / "null", "gone")
    assert main(["plan", "64", "64", "64", "--chip", "910A", "--csv", str(tmp_path / "null")]) == 0
    assert os.listdir(tmp_path) == ["null"] and (tmp_path / "null").is_symlink()
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_nothing_goes_through_before_the_block_ends(tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    with pytest.raises(RuntimeError), atomic_writer(path) as stream:
        stream.write(b"half")
        raise RuntimeError
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    assert os.read(handle, 10) == b""
    os.close(handle)


def test_standard_output_by_name_keeps_what_is_there(tmp_path):
    """`--csv /dev/stdout > file`: the shell's open file is written, not another one put in its place."""
    code = "from tensorcore_models.files import write_text; write_text('/dev/stdout', 'table '); print('and more')"
    with (tmp_path / "out").open("w") as stream:
        stream.write("before ")
        stream.flush()
        subprocess.run([sys.executable, "-c", code], stdout=stream, check=True)
    assert (tmp_path / "out").read_text() == "before table and more\n"


# -- journals -----------------------------------------------------------------------------------------------------------
FOREIGN = b'{"event": "start", "job": 17}\n\xff\xfe not UTF-8\n'


@pytest.mark.parametrize("more", [[], ["--fresh"]])
def test_anothers_journal_is_refused_as_it_is(tmp_path, capsys, more):
    (tmp_path / "journal.jsonl").write_bytes(FOREIGN)
    assert main([*QUICK, "--out", str(tmp_path), *more]) == 2
    assert (
        "journal.jsonl was written by another program and is not a journal of measurements; name another folder"
        in capsys.readouterr().err
    )
    assert (tmp_path / "journal.jsonl").read_bytes() == FOREIGN and len(os.listdir(tmp_path)) == 1


def test_others_lines_between_ours_stay(tmp_path):
    path = tmp_path / "journal.jsonl"
    Journal(path).add({"x": 1}, {"v": 1})
    path.write_bytes(FOREIGN + path.read_bytes() + path.read_bytes()[:20])
    journal = Journal(path)
    assert journal.get({"x": 1}) == {"v": 1} and journal.dropped == 1
    journal.add({"x": 2}, {"v": 2})
    assert path.read_bytes().startswith(FOREIGN) and len(Journal(path)) == 2


def test_a_journal_that_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "journal.jsonl")
    with pytest.raises(ValueError, match="not a regular file"):
        Journal(tmp_path / "journal.jsonl")


def test_fresh_forgets_through_a_link(tmp_path):
    (tmp_path / "out").mkdir()
    Journal(tmp_path / "there.jsonl").add({"x": 1}, {"v": 1})
    (tmp_path / "out" / "journal.jsonl").symlink_to("../there.jsonl")
    journal = Journal(tmp_path / "out" / "journal.jsonl", fresh=True)
    assert len(journal) == 0 and (tmp_path / "there.jsonl").read_bytes() == b""
    assert (tmp_path / "out" / "journal.jsonl").is_symlink()


# -- names --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("arguments", [[*QUICK, "--out", ""], ["evaluate", "", "b.npy"], ["plan", "--csv", ""]])
def test_an_empty_name_is_refused(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2 and "got an empty word" in capsys.readouterr().err
    assert not os.listdir(tmp_path)


def run_command(*arguments, cwd, **environment):
    return subprocess.run(
        [sys.executable, "-m", "mpgemm", *arguments],
        cwd=cwd,
        capture_output=True,
        env={**os.environ, **environment},
        timeout=100,
    )


@pytest.mark.full
def test_a_name_that_is_not_utf8_gets_its_verdict(tmp_path):
    np.save(tmp_path / "b.npy", np.ones((4, 4), np.float32))
    odd = os.path.join(os.fsencode(tmp_path), b"\xff\xe9.npy")
    try:
        with open(odd, "wb") as stream:
            np.save(stream, np.ones((4, 4), np.float32))
    except OSError:
        pytest.skip("this file system takes no such names")
    for more in ([], ["--json"], ["--csv"]):
        done = run_command(b"evaluate", odd, b"b.npy", *more, "--out", b"out", "--no-figures", cwd=tmp_path)
        assert done.returncode == 0, done.stderr.decode()
        assert b"udcff" in done.stdout or more == ["--csv"]
    assert (
        json.loads((tmp_path / "out" / "results.json").read_text())["inputs"][0]["verdict"]["status"] == "as accurate"
    )
    done = run_command(b"evaluate", odd + b"x", b"b.npy", cwd=tmp_path)
    assert (
        done.returncode == 2
        and b"expected the suffix of a matrix format" in done.stderr
        and b"Traceback" not in done.stderr
    )


def test_a_file_without_its_format_is_told_what_the_command_reads(tmp_path, capsys):
    import ml_dtypes

    x = np.ones((4, 4), ml_dtypes.float8_e4m3fn)
    np.save(tmp_path / "a.npy", x)
    np.save(tmp_path / "b.npy", x.astype("float32"))
    assert main(["evaluate", str(tmp_path / "a.npy"), str(tmp_path / "b.npy")]) == 2
    said = capsys.readouterr().err
    assert "save x.astype('float32'), which keeps every value" in said and "uint8" not in said


# -- what else is refused or done in one line ----------------------------------------------------------------------------
@pytest.mark.parametrize("method", [row.name for row in mpgemm.list_methods()])
def test_empty_products_are_empty(method):
    for m, k, n in ((0, 4, 3), (3, 4, 0), (3, 0, 2), (0, 0, 0)):
        a, b, c = np.zeros((m, k), np.float32), np.zeros((k, n), np.float32), np.ones((m, n), np.float32)
        assert mpgemm.recovered_gemm(a, b, method=method).shape == (m, n)
        assert np.array_equal(mpgemm.recovered_gemm(a, b, c, method=method), c)


def test_a_misspelt_option_of_a_plan_is_named_with_its_neighbour():
    for call in (ascend.plan, ascend.advise):
        with pytest.raises(
            TypeError, match=r"plan has no option bufering \(did you mean 'buffering'\?\); it has .*, buffering, "
        ):
            call(64, 64, 64, "910A", bufering="double")


def test_the_kernels_need_no_import_of_their_own():
    code = "import mpgemm; print(mpgemm.kernels.__all__)"
    assert "matmul" in subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("where", ["mpgemm.cli", "argparse", "mpgemm.cli.info"])
def test_ctrl_c_during_imports_is_one_line(where):
    """The signal comes as the module is looked for, whenever that is."""
    code = f"""
import os, signal, sys
class At:
    def find_spec(self, name, path=None, target=None):
        if name == {where!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.modules.pop("argparse", None)
sys.meta_path.insert(0, At())
sys.argv = ["mpgemm", "info"]
from mpgemm.__main__ import main
sys.exit(main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert done.returncode == 130 and "Traceback" not in done.stderr, done.stderr
    assert done.stderr.strip().startswith("mpgemm") and done.stderr.strip().endswith("interrupted")


def test_an_ignored_ctrl_c_stays_ignored():
    code = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nfrom mpgemm.__main__ import main\nimport sys\n"
    code += "sys.argv = ['mpgemm', '--version']\ntry:\n    main()\nexcept SystemExit:\n    pass\n"
    code += "print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
    assert "True" in subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

"""What all commands share: examples in their help, completion, JSON with a header, tables that fit."""

import argparse
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import example_files
import numpy as np
import pytest

from mpgemm.cli import main
from mpgemm.cli.common.discovery import QUESTIONS, all_commands, by_question, command_module, command_parser
from mpgemm.cli.common.parser import Parser

ALL_EXAMPLES = [(command, arguments) for command in all_commands() for arguments, _ in command_module(command).EXAMPLES]


@pytest.mark.parametrize("command", all_commands())
def test_help_ends_with_examples(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert f"  mpgemm {command}" in text.partition("examples:\n")[2]


@pytest.mark.parametrize("columns", [60, 80])
def test_help_groups_commands_by_question(columns, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(columns))
    with pytest.raises(SystemExit):
        main(["--help"])
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= columns for line in lines)
    question, found = "", {}
    for line in lines:
        question = line[:-1] if line.endswith(":") and not line.startswith(" ") else question
        if (word := re.match(r"  ([a-z-]+) +\S", line)) and question in QUESTIONS:
            found.setdefault(question, []).append(word[1])
    assert found == {question: list(commands) for question, commands in by_question().items()}


def single_valued(command):
    """The options of a command that keep one value, and the words that a value needs."""
    parser = command_parser(command)
    for action in parser._actions:
        if action.option_strings and type(action) is argparse._StoreAction:
            count = action.nargs if isinstance(action.nargs, int) else 1
            value = str(next(iter(action.choices))) if action.choices else "1"
            yield from ((option, [value] * count) for option in action.option_strings)


@pytest.mark.parametrize("command", all_commands())
def test_an_option_that_keeps_one_value_is_refused_when_given_twice(command, capsys):
    for option, values in single_valued(command):
        with pytest.raises(SystemExit) as stop:
            main([command, option, *values, option, *values])
        said = capsys.readouterr().err
        assert stop.value.code == 2 and "is given twice, expected once" in said and said.count("\n") == 1, option


@pytest.fixture
def ruled():
    parser = Parser(prog="p")
    parser.add_argument("files", nargs="*", metavar="FILE")
    for name in ("--drawn", "--seed", "--size"):
        parser.add_argument(name, type=int, default=0)
    parser.add_argument("--all", action="store_true")
    parser.goes_with(("--seed", "--size"), ("--drawn", "files"))
    parser.goes_without(("--size",), ("files",))
    parser.goes_without(("--all",), ("--seed",), "what has no seed")
    return parser


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "--seed 0",
            "--seed goes with --drawn or FILE, so it has no effect here: leave out --seed, or give --drawn or FILE",
        ),  # the default's value is given all the same
        (
            "--seed 1 --size 2",
            "--seed and --size go with --drawn or FILE, so they have no effect here: leave out --seed and --size, or give "
            "--drawn or FILE",
        ),
        ("a b --size 2", "--size goes without FILE, so it has no effect here: leave out --size, or FILE"),
        ("a --seed 1 --all", "--all goes with what has no seed, so it has no effect here: leave out --all, or --seed"),
    ],
)
def test_an_option_without_effect_is_refused(ruled, words, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        ruled.parse_args(words.split())


@pytest.mark.parametrize("words", ["", "a b", "--all", "a --seed 0", "--drawn 0 --seed 3 --size 2"])
def test_an_option_with_effect_is_taken(ruled, words):
    assert ruled.parse_args(words.split()).drawn == 0


@pytest.mark.parametrize("command", all_commands())
def test_rules_of_options_name_options_that_there_are(command):
    parser = command_parser(command)
    known = {*parser._option_string_actions, *(action.dest for action in parser._actions if not action.option_strings)}
    for options, others, _, _ in parser._rules:
        assert {*options, *others} <= known


@pytest.mark.parametrize(("command", "arguments"), ALL_EXAMPLES)
def test_examples_parse(command, arguments):
    args = command_parser(command).parse_args(shlex.split(arguments))
    assert args.command == command


#: Examples that compute a paper's figure or a page's worth of products: minutes each, their parts are tested elsewhere.
LONG = (
    "xue",
    "khattak7",
    "--seconds",
    "--published",
    "--pareto",
    "4096 4096",
    "11008",
    "--waterfall",
    "--shipped digits",
)
#: Lines that are to be pasted, or drawn, and are not wrapped.
CODE = re.compile(r"\s*(//|#|np\.|assert |import |expected|size|Instruction\(|\w+=|\)|tiling|.*(\||[;{}]$))|written")


@pytest.fixture(scope="module")
def examples_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    example_files.write_all(folder)
    return folder


@pytest.mark.sweep(8)
@pytest.mark.parametrize(("command", "arguments"), [row for row in ALL_EXAMPLES if not any(w in row[1] for w in LONG)])
def test_examples_run(command, arguments, examples_folder, monkeypatch, capsys):
    """Each example does what it says on files of its names, and prints no line wider than the terminal."""
    missing = [word for word in NEEDED if word in arguments.split() or word == command]
    if missing:
        pytest.skip(f"needs {NEEDED[missing[0]]}")
    monkeypatch.chdir(examples_folder)
    monkeypatch.setenv("COLUMNS", "60")
    assert main([command, *shlex.split(arguments)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines
    if command != "completion":
        assert not [line for line in lines if len(line) > 60 and not CODE.match(line)]


#: Words of examples that need what a checkout lacks.
NEEDED = {
    "W.safetensors": "a safetensors file",
    "my_model:dot": "a module",
    "chosen.json": "a recording",
    "products.jsonl": "a recording",
    "out": "results",
    "out1": "results",
    "cpu:vdpbf16ps": "AVX512-BF16",
    "e4m3fn": "encodings",
    "distinguish": "an SMT solver",
    "beats": "an SMT solver",
    "campaign": "a GPU; tests/campaign has it",
    "kernel": "Triton; tests/kernels/test_kernel_command.py has it",
    "selftest": "half a minute",
    "check-kernel": "a kernel; tests/ascend/test_emit.py has some",
}

DOCS = [
    line.removeprefix("$ ")
    for page in ("answers.md",)
    for line in (Path(__file__).parents[2] / "docs" / page).read_text(encoding="utf-8").splitlines()
    if line.startswith("$ mpgemm ")
]


@pytest.mark.parametrize("line", DOCS)
def test_commands_of_the_docs_parse(line):
    words = shlex.split(line)[1:]
    assert command_parser(words[0]).parse_args(words[1:]).command == words[0]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_command_and_option(shell, capsys):
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    assert all(command in text for command in all_commands())
    assert "step-orders" in text and "sequential" in text
    if shutil.which(shell):
        assert subprocess.run([shell, "-n"], input=text, text=True).returncode == 0


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
@pytest.mark.parametrize(
    ("words", "expected"),
    [("mpgemm ev", "evaluate"), ("mpgemm evaluate --step-orders ex", "exact"), ("mpgemm compare --bit", "--bits")],
)
def test_bash_completes(words, expected, capsys):
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    given = shlex.split(words)
    script += f'COMP_WORDS=({words}); COMP_CWORD={len(given) - 1}; _mpgemm; echo "${{COMPREPLY[@]}}"\n'
    assert subprocess.run(["bash"], input=script, text=True, capture_output=True).stdout.strip() == expected


JSON_COMMANDS = [
    ["evaluate", "--methods", "fp32", "--distribution", "normal", "--shape", "4", "4", "4", "--json"],
    ["compare", "--methods", "fp16", "--engines", "a100", "--distribution", "normal", "--shape", "4", "4", "4", "--json"],
    ["explain", "--json"],
    ["models", "h100", "--json"],
    ["models", "--methods", "--json"],
    ["plan", "256", "256", "256", "--json", "--top", "1"],
    ["simulate", "--json"],
]  # fmt: skip


@pytest.mark.parametrize("command", JSON_COMMANDS, ids=" ".join)
def test_json_says_what_made_it(command, capsys):
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert found["schema"] == 3 and found["command"] == command
    assert {"mpgemm", "code", "python", "numpy", "blas", "machine"} <= found["environment"].keys()


@pytest.mark.parametrize("columns", [40, 80, 132])
@pytest.mark.parametrize(
    "command", [*JSON_COMMANDS[:2], *JSON_COMMANDS[3:5], JSON_COMMANDS[6]], ids=lambda words: words[0]
)
def test_tables_fit_the_terminal(command, columns, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main([word for word in command if word != "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    ruled = [number for number, line in enumerate(lines) if line and set(line) <= {"-", " "}]
    assert ruled
    for number in ruled:
        assert all(len(line) <= columns for line in lines[max(number - 1, 0) : number + 3]), lines[number + 1]


def test_wide_shows_all_columns(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "60")
    command = [word for word in JSON_COMMANDS[0] if word != "--json"]
    assert main(command) == 0
    assert "with --wide" in capsys.readouterr().out
    assert main([*command, "--wide"]) == 0
    out = capsys.readouterr().out
    assert "max_ulp" in out and "with --wide" not in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("compare --bits -1e-3 --methods fp16", "--bits is -0.001, expected a number above 0"),
        ("compare --bits nan --methods fp16", "--bits is nan"),
        ("tolerance --k 16 --check-rtol -1e-3", "rtol must be a number of at least 0, got -0.001"),
        ("advise-promotion --wanted -1e-3 --shape 2 16 2", "wanted is -0.001"),
        (
            "compare empty.npy ok.npy --methods fp16 --engines a100",
            "so the product is empty; expected at least one element",
        ),
        ("compare --distribution normal --shape 0 4 4 --methods fp16 --engines a100", "the product is empty"),
        ("tolerance --engine a100 empty.npy ok.npy", "an empty product has no error: give at least one element"),
        ("predict ok.npy ok.npy --gpu a100 --operands hulf", "unknown format 'hulf'; did you mean half"),
        ("explain --operands fp9", "unknown format 'fp9'; did you mean fp8"),
        ("models h100 --a-format fp9", "unknown format 'fp9'; did you mean fp8"),
    ],
)
def test_bad_words_are_refused_in_one_line(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("ok.npy", np.ones((4, 4), np.float32))
    np.save("empty.npy", np.ones((0, 4), np.float32))
    assert main(words.split()) == 2
    text = capsys.readouterr().err
    assert message in text and text.count("\n") == 1


#: File: bytes or array. None of them is a matrix of real numbers.
NO_MATRICES = {
    "missing.npy": None, "text.npy": b"hello\n", "zero.npy": b"", "no.pt": b"not torch", "words.csv": b"1,2\n3,x\n",
    "ragged.csv": b"1,2\n3\n", "no.mtx": b"xx\n", "no.safetensors": b"\xff" * 20, "no.npz": b"PK\x03\x04junk", "x.foo": b"",
    "complex.npy": np.ones((4, 4), complex), "texts.npy": np.array([["a", "b"], ["c", "d"]]), "vector.npy": np.ones(4),
    "objects.npy": np.array([[1, "a"], [None, 2]], object), "times.npy": np.zeros((4, 4), "M8[s]"), "wide.npy": np.ones((4, 6)),
    "structured.npy": np.zeros((4, 4), [("x", "f4")]), "truths.npy": np.ones((4, 4), bool),
}  # fmt: skip
TAKES_TWO_FILES = (
    "evaluate {} ok.npy", "compare {} ok.npy --methods fp16 --engines a100", "explain fp16 --engine a100 --files {} ok.npy",
    "explain --engine a100 h100 --files {} ok.npy", "tolerance --engine a100 {} ok.npy",
    "advise-promotion {} ok.npy --engine a100 --operands fp16", "whodunit {} ok.npy ok.npy --methods fp16",
    "whodunit ok.npy ok.npy {} --methods fp16", "predict {} ok.npy --gpu a100 --operands fp16 --input-rounding rne",
    "diff {} ok.npy ok.npy ok.npy --gpus a100 a100 --operands fp16 --input-rounding rne",
    "diff ok.npy ok.npy {} ok.npy --gpus a100 a100 --operands fp16 --input-rounding rne",
)  # fmt: skip


@pytest.mark.sweep(3)
@pytest.mark.parametrize("command", TAKES_TWO_FILES)
def test_what_is_no_matrix_is_refused_in_one_line(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("ok.npy", np.ones((4, 4), np.float32))
    for name, held in NO_MATRICES.items():
        if isinstance(held, bytes):
            Path(name).write_bytes(held)
        elif held is not None:
            np.save(name, held, allow_pickle=True)
        assert main(command.format(name).split()) == 2, name
        text = capsys.readouterr().err
        assert text.startswith("mpgemm ") and text.count("\n") == 1, (name, text)


# -- the JSON is what docs/json.md says -------------------------------------------------------------------------------------
JSON_PAGE = (Path(__file__).parents[2] / "docs" / "json.md").read_text(encoding="utf-8")
JSON_ROWS = dict(
    re.findall(r"^\| `([^|]+)` \| (.+) \|$", JSON_PAGE.partition("| command | fields |")[2].partition("##")[0], re.M)
)
#: For each line of the page a command to run.
JSON_RUNS = {
    "evaluate": "evaluate X.npy W.npy --transpose-b --methods fp32 sgemm_cube --orders termwise --scale-exponents 12",
    "reproduce": "reproduce xue8a --methods fp32 --repeats 1 --shape 4 4 4",
    "reproduce --list": "reproduce --list",
    "compare": "compare A.npy B.npy --methods fp16 --engines a100",
    "explain": "explain fp16 --engine a100 --a 1 2 --b 1 1/3",
    "explain --engine A B": "explain --engine a100 h100 --distribution normal --k 32",
    "explain --function list": "explain --function list",
    "models": "models h100",
    "models INSTRUCTION": "models HMMA.16816.F32 a100",
    "models INSTRUCTION --url`, `--picture": "models hopper:mma.m16n8k16.f32.f16.f16.f32 --picture order.svg",
    "models --methods": "models --methods",
    "models --devices": "models --devices",
    "tolerance": "tolerance --engine h100 --k 32 --check-rtol 1e-2",
    "tolerance --attention": "tolerance --engine ieee --attention A.npy A.npy A.npy",
    "check": "check C.npy A.npy B.npy --engine ieee",
    "advise-promotion": "advise-promotion --engine h100 --shape 2 64 2",
    "advise-promotion --repeats N": "advise-promotion --engine h100 --shape 2 64 2 --repeats 3",
    "curve": "curve --over k 16 32 --points 2 --repeats 2 --methods fp32 fp16@a100",
    "slices": "slices A.npy B.npy --target 12 --methods ozaki_int8",
    "whodunit": "whodunit A.npy B.npy C.npy --methods fp16",
    "identify": "identify --instruction ampere:mma.m16n8k8.f32.f16.f16.f32 --vectors 1000",
    "plan": "plan 256 256 256 --top 1",
    "plan --pareto": "plan 256 256 256 --pareto",
    "plan --list-parameters": "plan --list-parameters",
    "simulate": "simulate 256 256 256",
    "simulate --published": "simulate --published",
    "predict": "predict A.npy B.npy --gpu h100 --library cutlass",
    "diff": "diff A.npy B.npy C1.npy C2.npy --gpus a100 h100",
    "info": "info",
    "distinguish`, `beats": "beats ma ma --engine v100",
    "simulate --calibrate": "simulate --calibrate profile.csv --chip 910B3",
    "simulate --measured": "simulate --measured profile.csv --chip 910B3",
    "check-kernel": "check-kernel own.cpp 32 32 32 --entry launch --cores 1 --arguments c,a,b,nullptr",
    "read": "read gemm.ptx",
    "read --arguments": "read gemm.ptx --arguments fp16:32x32 fp16:32x32 fp32:32x32 32 32 32",
    "read --cubin": "read gemm.ptx --cubin gemm.sass",
    "read KERNEL OTHER": "read gemm.ptx other.ptx --arguments fp16:32x32 fp16:32x32 fp32:32x32 32 32 32",
    "selftest": "selftest --seconds 1",
    "selftest --rerun": "selftest --rerun outside.npz",
}  # fmt: skip
#: Lines whose commands need more than files: not held to the page here.
ELSEWHERE = {"kernel"}
#: Lines whose commands end with status 1: two kernels with different bits, a kernel with a race.
JSON_WRONG = {"check-kernel"}


def test_the_page_of_the_json_has_a_run_for_each_line():
    assert set(JSON_ROWS) == set(JSON_RUNS) | ELSEWHERE


@pytest.mark.sweep(6)
@pytest.mark.parametrize("name", JSON_RUNS)
def test_json_has_the_fields_of_the_page(name, examples_folder, monkeypatch, capsys):
    if name == "check-kernel" and not any(shutil.which(each) for each in ("c++", "g++", "clang++")):
        pytest.skip("needs a C++ compiler")
    monkeypatch.chdir(examples_folder)
    words = [*JSON_RUNS[name].split(), "--json"]
    assert main(words) == (name in JSON_WRONG)
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert found.pop("schema") == 3 and found.pop("command") == words and found.pop("environment")
    outside = re.sub(r"\([^()]*\)", "", JSON_ROWS[name])  # what is in parentheses lies deeper
    assert set(re.findall(r"`(\w+)`", outside)) == set(found)
    deeper = {
        inner for group in re.findall(r"\(([^()]*)\)", JSON_ROWS[name]) for inner in re.findall(r"`(\w+)`", group)
    }
    assert deeper <= _names(found)


def _section(title: str) -> dict[str, str]:
    """Fields that a section's table names, with what it says of them."""
    rows = re.findall(r"^\| (`.+?) \| (.+) \|$", JSON_PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0], re.M)
    return {name: text for names, text in rows for name in re.findall(r"`(\w+)`", names)}


def test_error_reports_verdicts_and_recommendations_have_the_fields_of_the_page(examples_folder, monkeypatch, capsys):
    """All fields that are there are named, and none that is not; seeds bring the intervals of means."""
    monkeypatch.chdir(examples_folder)
    drawn = ["--distribution", "normal", "--shape", "8", "16", "8", "--json"]
    assert main(["evaluate", *drawn, "--repeats", "3"]) == 0
    found = json.loads(capsys.readouterr().out)
    prose = JSON_PAGE.partition("## Errors\n")[2].partition("|")[0]
    report = set(_section("Errors")) | set(re.findall(r"`(\w+)`", prose.partition(" has ")[2]))
    assert set(found["records"][0]["errors"]) == report
    verdict, named = found["inputs"][0]["verdict"], _section("Verdict")
    assert set(verdict) == set(named)
    said = set(re.findall(r"`(\w+)`", re.sub(r"\([^()]*: (`mean`[^()]*)\)", "", named["judgements"])))
    assert said == set(verdict["judgements"][0])
    assert set(re.findall(r"`(\w+)`", named["recommended"])) == set(verdict["recommended"])
    interval = next(iter(verdict["judgements"][0]["intervals"].values()))
    assert set(
        re.findall(r"`(\w+)`", re.search(r"of the mean over the seeds: ([^;]*);", named["judgements"])[1])
    ) == set(interval)
    assert main(["compare", *drawn, "--methods", "fp16", "--engines", "a100", "--bits", "8"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["fp32"][next(iter(found["fp32"]))]) == report
    text = re.sub(r"\([^()]*\)", "", JSON_PAGE.partition("## Recommendations\n")[2].partition("An element of")[0])
    assert set(re.findall(r"`(\w+)`", text)) - {"recommendations", "compare"} == set(found["recommendations"][0])
    of_records = JSON_PAGE.partition("The elements of `records`")[2].partition("\n#")[0]
    assert set(re.findall(r"`(\w+)`", of_records)) <= set(found["records"][0])


def _names(value):
    """All names in a JSON value."""
    if isinstance(value, dict):
        return set(value) | {name for item in value.values() for name in _names(item)}
    return {name for item in value for name in _names(item)} if isinstance(value, list) else set()


@pytest.mark.parametrize(
    ("command", "start"),
    [
        ("evaluate --distribution normal --shape 4 8 4 --methods fp32 sgemm_cube", "Verdict: "),
        ("compare --distribution normal --shape 4 8 4 --methods ootomo --engines a100", "Verdict, normal"),
        ("tolerance --k 16 --shape 4 16 4 --quiet", "Verdict, hopper"),
    ],
)
def test_the_verdict_is_the_first_thing_that_is_printed(command, start, capsys):
    assert main(command.split()) == 0
    assert capsys.readouterr().out.startswith(start)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["check", "a.npy", "b.npy", "c.npy", "--enigne", "h100"], "did you mean --engine?"),
        (["explain", "A.npy", "B.npy", "--engine", "a100", "h100"], "give matrix files with --files"),
    ],
)
def test_unknown_words_are_answered_with_what_was_meant(words, hint, capsys):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2 and hint in capsys.readouterr().err

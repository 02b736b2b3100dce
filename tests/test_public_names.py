"""The names and signatures that users rely on exist and do what they say."""

import ast
import dataclasses
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest

import ascend
import mpgemm
import tensorcore_models as tcm
from ascend.operand_formats import FORMATS as OPERAND_FORMATS

ROOT = Path(__file__).resolve().parents[1]
HOPPER = "hopper:mma.m16n8k16.f32.f16.f16.f32"
PACKAGES = ("tensorcore_models", "ascend", "mpgemm")


def parameters(function):
    return list(inspect.signature(function).parameters)


def defaults(function):
    return {name: p.default for name, p in inspect.signature(function).parameters.items() if p.default is not p.empty}


@pytest.fixture(scope="module")
def hopper():
    return tcm.get_instruction("hopper", "mma.m16n8k16.f32.f16.f16.f32")


@pytest.fixture(scope="module")
def pair():
    rng = np.random.default_rng(0)
    return rng.standard_normal((20, 40)).astype(np.float32), rng.standard_normal((40, 12)).astype(np.float32)


ARCHITECTURES = "volta turing ampere ada hopper blackwell rtx_blackwell cdna1 cdna2 cdna3 arm x86"


@pytest.mark.parametrize("arch", ARCHITECTURES.split())
def test_every_architecture_has_instructions(arch):
    rows = tcm.list_instructions(arch)
    assert rows
    assert {row.arch for row in rows} == {arch}
    assert all(row in tcm.list_instructions() for row in rows)


@pytest.mark.parametrize(("device", "arch"), [("h200", "hopper"), ("h100", "hopper"), ("mi300x", "cdna3")])
def test_devices_are_aliases(device, arch):
    assert tcm.list_instructions(device) == tcm.list_instructions(arch)


def test_an_instruction_by_two_spellings_and_its_fields(hopper):
    assert tcm.get_instruction(HOPPER) == hopper
    assert (hopper.arch, hopper.name) == tuple(HOPPER.split(":"))
    assert (hopper.m, hopper.n, hopper.k, hopper.blocks) == (16, 8, 16, 1)
    assert (hopper.a_format, hopper.b_format) == ("fp16", "fp16")
    assert (hopper.c_format, hopper.d_format) == ("fp32", "fp32")
    assert hopper.scale_format is None
    assert hopper.block_size is None
    with pytest.raises(dataclasses.FrozenInstanceError):
        hopper.accumulator.fraction_bits = 3
    narrow = dataclasses.replace(hopper.accumulator, fraction_bits=13)
    assert narrow.fraction_bits == 13
    assert hopper.with_rules() == hopper


def test_the_default_instruction_names_the_paths_where_it_is_ambiguous():
    assert tcm.default_instruction("h100", a_format="fp16", d_format="fp32").a_format == "fp16"
    with pytest.raises(ValueError, match=r"wgmma.*mma|mma.*wgmma"):
        tcm.default_instruction("h100", a_format="e4m3fn", d_format="fp32")
    assert tcm.default_instruction("h100", a_format="e4m3fn", d_format="fp32", path="wgmma").arch == "hopper"


def test_instruction_bits_values_and_gemm_agree(hopper):
    assert parameters(hopper.mma_bits) == ["a", "b", "c", "scale_a", "scale_b", "input_scale"]
    assert parameters(hopper.gemm)[:3] == ["a", "b", "c"]
    assert {
        "alpha": 1.0, "beta": 1.0, "scale_a": None, "scale_b": None, "input_rounding": None,
        "k_order": "sequential", "promote_every": None, "promote_rounding": "rne",
    }.items() <= defaults(hopper.gemm).items()  # fmt: skip
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((16, 16)).astype(np.float16), rng.standard_normal((16, 8)).astype(np.float16)
    c = rng.standard_normal((16, 8)).astype(np.float32)
    d = hopper.mma_bits(a.view(np.uint16), b.view(np.uint16), c.view(np.uint32))
    assert np.array_equal(hopper.mma(a, b, c).view(np.uint32), d)
    assert np.array_equal(hopper.gemm(a, b, c).view(np.uint32), d)
    assert np.array_equal(tcm.reference.mma_bits(hopper, a.view(np.uint16), b.view(np.uint16), c.view(np.uint32)), d)


def test_engines_of_ones_own(pair):
    core = tcm.MatrixEngine(
        tcm.FusedDotAdd(terms=16, fraction_bits=25, output_rounding="rz"),
        a_format="fp16", b_format="fp16", c_format="fp32", d_format="fp32",
    )  # fmt: skip
    a, b = (x.astype(np.float16) for x in pair)
    bits = core.gemm_bits(a.view(np.uint16), b.view(np.uint16))
    assert core.k >= 16
    assert np.array_equal(core.gemm(a, b).view(np.uint32), bits)

    def product(x, y, z):
        return x.astype(np.float32) @ y.astype(np.float32) + z

    own = tcm.as_engine(product, a_format="fp16", b_format="fp16", d_format="fp32", k=16)
    assert own.gemm(a, b).shape == (20, 12)


FORMATS = "fp64 fp32 tf32 bf16 fp16 e5m2 e4m3fn e5m2fnuz e4m3fnuz e4m3 e3m4 e3m2 e2m3 e2m1 ue8m0 ue4m3"


@pytest.mark.parametrize("name", FORMATS.split())
def test_every_format_holds_one(name):
    assert tcm.get_format(name).name == name
    assert tcm.decode(tcm.encode(1.0, name), name) == 1.0


@pytest.mark.parametrize("rounding", ["rne", "rna", "rz", "ru", "rd", "ro", "sr"])
def test_every_rounding_gives_a_neighbour(rounding):
    assert tcm.round_to(1.0 + 2.0**-13, "fp16", rounding=rounding) in (1.0, 1.0 + 2.0**-10)
    assert defaults(tcm.encode)["rounding"] == "rne"
    assert defaults(tcm.encode)["saturate"] is None


def test_threads_can_be_set():
    try:
        tcm.set_num_threads(1)
        assert tcm.get_num_threads() == 1
    finally:
        tcm.set_num_threads(None)


def test_ascend_planning():
    chip = ascend.get_chip("910A")
    block = ascend.Blocking(bm=176, bk=64, bn=176)
    assert block in ascend.feasible_blocks(chip)
    assert block.n_fused(chip, buffering="double", words=1) == block.n_fused(chip)
    assert 0 < block.fusion_efficiency(chip) <= 1
    m, k, n = 704, 256, 704
    assert ascend.operational_intensity(block, m, k, n, chip) > 0
    assert ascend.traffic(block, m, k, n, chip)
    assert ascend.roofline(block, m, k, n, chip, peak=None)
    expected = {"terms": 3, "buffering": "double", "rank": "time", "max_error": None, "data": None, "top": 10}
    assert expected.items() <= defaults(ascend.plan).items()
    assert parameters(ascend.plan)[:4] == ["m", "k", "n", "chip"]
    assert len(ascend.plan(m, k, n, chip, top=2, simulated=4)) == 2


def test_ascend_simulation(tmp_path):
    chip = ascend.get_chip("910A")
    timeline = ascend.simulate(
        ascend.build_schedule(128, 128, 128, chip, ascend.Blocking(bm=64, bk=64, bn=64), terms=3, buffering="double")
    )
    assert timeline.tflops > 0
    assert timeline.seconds > 0
    assert timeline.utilization
    assert timeline.stalls
    timeline.to_trace(tmp_path / "trace.json")
    assert (tmp_path / "trace.json").stat().st_size


def test_cube_gemm(pair):
    expected = {
        "c": None, "blocking": None, "order": "termwise", "scale_exponent": 12, "low_low": False,
        "step_order": "sequential", "overflow": None, "group": 16,
    }  # fmt: skip
    assert expected.items() <= defaults(ascend.cube_gemm).items()
    for exponent in (12, (10, 11), "auto"):
        assert ascend.cube_gemm(*pair, scale_exponent=exponent).dtype == np.float32


def test_load_chip_reads_toml(tmp_path):
    from importlib.resources import files

    source = next(path for path in (files("ascend") / "chips").iterdir() if "910A" in path.name)
    (tmp_path / "my.toml").write_text(source.read_text())
    assert ascend.load_chip(tmp_path / "my.toml") == ascend.get_chip("910A")


METHODS = """fp16 bf16 tf32 fp8 fp32 fp64 markidis markidis_scaled egemm ootomo ootomo_tf32 ootomo_inside ma sgemm_cube
multiword bf16x3 bf16x6 bf16x9 tf32x3 mixpert quantensor ozaki_int8"""


def test_recovery_methods_are_there(pair, hopper):
    assert set(METHODS.split()) <= {row.name for row in mpgemm.list_methods()}
    assert defaults(mpgemm.recovered_gemm)["method"] == "ootomo"
    c = mpgemm.recovered_gemm(*pair, method="ootomo", engine=HOPPER)
    assert np.array_equal(c, mpgemm.recovered_gemm(*pair, method="ootomo", engine=hopper))


def test_exact_references_and_errors(pair):
    a, b = pair
    exact = mpgemm.exact_gemm(a, b)
    rounded = exact.rounded("fp32")
    assert np.all(np.abs(exact.error_of(rounded)) <= np.spacing(np.abs(rounded)) / 2)
    small = mpgemm.mp_gemm(a[:2], b[:, :2], prec=None)
    assert np.float32(float(small[0, 0])) == pytest.approx(rounded[0, 0])
    one = mpgemm.errors(rounded, a, b)
    assert one.effective_bits() == mpgemm.errors(rounded, a, b, reference="mpmath").effective_bits()


def test_compare_gives_frozen_records_in_every_form(pair):
    comparison = mpgemm.compare(["markidis", "ootomo"], [HOPPER], *pair)
    records = list(comparison)
    assert [record.method for record in records] == ["markidis", "ootomo"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        records[0].method = "x"
    assert "ootomo" in str(comparison)
    assert "ootomo" in comparison.to_json()
    assert "ootomo" in comparison.to_csv()


# -- docstrings ----------------------------------------------------------------------------------------------------------
MODULES = [
    f"{package.__name__}.{path.stem}"
    for package in (mpgemm, ascend, tcm)
    for path in sorted(Path(package.__file__).parent.glob("*.py"))
    if not path.stem.startswith("_")
]


def public_objects(module):
    """(name, object, its syntax tree) of the functions, classes and methods that a module defines."""
    for node in ast.parse(Path(module.__file__).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node.name, getattr(module, node.name), node
            for member in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
                    yield f"{node.name}.{member.name}", getattr(getattr(module, node.name), member.name), member


def raises(node) -> bool:
    """Whether a function's own body, or a class's construction, has a `raise` with an exception."""
    bodies = [node.body]
    if isinstance(node, ast.ClassDef):
        bodies = [m.body for m in node.body if getattr(m, "name", "") in ("__init__", "__post_init__")]
    left = [statement for body in bodies for statement in body]
    while left:
        found = left.pop()
        if isinstance(found, ast.Raise) and found.exc is not None:
            return True
        if not isinstance(found, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            left.extend(ast.iter_child_nodes(found))
    return False


def imported(name):
    """The module; the test is skipped where the module's extra is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        assert "pip install 'mpgemm[" in str(error)
        pytest.skip(str(error))


def is_exported(name, what):
    """Whether users are told of it: what a package exports, and all in the modules of mpgemm, some of which are public."""
    return name.startswith("mpgemm.") or what.partition(".")[0] in (*ascend.__all__, *tcm.__all__)


@pytest.mark.parametrize("name", MODULES)
def test_what_is_public_is_documented(name):
    for what, value, node in public_objects(imported(name)):
        text = inspect.getdoc(value)
        assert text, f"{name}.{what} has no docstring"
        said = "Raises\n------" in text or not (raises(node) and is_exported(name, what))
        assert said, f"{name}.{what} raises, its docstring does not say what"


@pytest.mark.parametrize("package", (mpgemm, ascend, tcm))
def test_exported_functions_describe_their_arguments(package):
    for what in package.__all__:
        value = getattr(package, what)
        if inspect.isfunction(value) and len(parameters(value)) > 1:
            assert "Parameters\n----------" in inspect.getdoc(value), f"{package.__name__}.{what}"


def undescribed(docstring):
    """Entries of a numpydoc section that end after their type."""
    lines = docstring.splitlines()
    entries = [i for i, line in enumerate(lines) if re.fullmatch(r"[\w*, ]+ : .+", line)]
    return [lines[i] for i in entries if i + 1 == len(lines) or not lines[i + 1].startswith(" ")]


@pytest.mark.parametrize("name", MODULES)
def test_described_arguments_are_described(name):
    for what, value, _ in public_objects(imported(name)):
        assert not undescribed(inspect.getdoc(value)), f"{name}.{what}"


def choices(annotation):
    """The values of every Literal of an annotation."""
    if get_origin(annotation) is Literal:
        return {*get_args(annotation)}
    return {value for part in get_args(annotation) for value in choices(part)}


def test_described_choices_are_those_that_there_are():
    members = {what: getattr(package, what) for package in (mpgemm, ascend, tcm) for what in package.__all__}
    for what, value in (members | {"Blocking.n_fused": ascend.Blocking.n_fused}).items():
        hints = get_type_hints(value) if isinstance(value, type) or inspect.isfunction(value) else {}
        for names, said in re.findall(r"^([\w, ]+) : (\{.*?\})", inspect.getdoc(value) or "", re.M):
            for name in names.split(", "):
                known = {*OPERAND_FORMATS} if name == "operand" else choices(hints.get(name))
                assert not known or known == {*ast.literal_eval(said)}, f"{what}: {name}"


# -- __all__ -------------------------------------------------------------------------------------------------------------
PUBLIC = ["mpgemm", "mpgemm.inputs", "ascend", "tensorcore_models"]
ROOMS = ("accumulators", "catalogue", "compiled", "hardware", "libraries", "probing", "reference")
PUBLIC += [f"tensorcore_models.{name}" for name in ROOMS]


@pytest.mark.parametrize("name", PUBLIC)
def test_all_names_what_the_package_offers(name):
    package = importlib.import_module(name)
    assert package.__all__ == sorted(set(package.__all__), key=package.__all__.index)
    assert all(hasattr(package, word) for word in package.__all__)
    source = Path(package.__file__)
    stub = source.with_suffix(".pyi")
    tree = ast.parse((stub if stub.exists() else source).read_text(encoding="utf-8"))
    imports = [alias for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    if stub.exists():  # "import x as x" is public for type checkers, "import x" is not
        listed = {alias.name: alias.asname for alias in imports}
        found = {f.__name__ for f in tcm.accumulators.FAMILIES} if package is tcm.accumulators else set()
        assert listed == {word: word for word in package.__all__ if word in listed or word not in found}  # in its file
        assert set(package.__all__) <= set(dir(package))


# -- stubs of compiled modules ---------------------------------------------------------------------------------------------
STUBS = [stub for package in PACKAGES for stub in sorted((ROOT / package).rglob("*.pyi")) if stub.stem != "__init__"]


def stated(node: ast.FunctionDef) -> list[str]:
    return [x.arg for x in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]


def test_stubs_say_the_names_and_parameters_that_compiled_modules_have():
    assert len(STUBS) > 15
    for stub in STUBS:
        name = ".".join(stub.relative_to(ROOT).with_suffix("").parts)
        module, public = importlib.import_module(name), set()
        for node in ast.parse(stub.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                assert parameters(getattr(module, node.name)) == stated(node), f"{name}.{node.name}"
            if isinstance(node, ast.ClassDef):
                found = getattr(module, node.name)
                for method in (x for x in node.body if isinstance(x, ast.FunctionDef) and x.name[0] != "_"):
                    assert parameters(getattr(found, method.name)) == stated(method), f"{name}.{method.name}"
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                public.add(node.name)
            if isinstance(node, ast.AnnAssign):
                assert isinstance(node.target, ast.Name) and hasattr(module, node.target.id), f"{name}: {node.target}"
        there = {x for x, value in vars(module).items() if inspect.isroutine(value) and value.__module__ == name}
        assert {x for x in there if x[0] != "_"} <= public, f"{name}: no stub of {sorted(there - public)}"


def public_classes():
    """Name of each public class of the packages -> the modules that define one of that name."""
    found: dict[str, list[str]] = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for name in re.findall(r"^class ([A-Za-z]\w*)", path.read_text(encoding="utf-8"), re.M):
                found.setdefault(name, []).append(str(path.relative_to(ROOT)))
    return found


def test_a_class_name_means_one_thing():
    names = public_classes()
    assert {name: paths for name, paths in names.items() if len(paths) > 1} == {} and len(names) > 300


@pytest.mark.parametrize("package", (mpgemm, tcm))
def test_a_name_that_a_package_does_not_have(package):
    with pytest.raises(AttributeError, match=f"module {package.__name__!r} has no attribute 'gem'"):
        package.gem  # noqa: B018


def test_importing_the_package_imports_nothing_else():
    code = (
        "import sys, mpgemm; print('numpy' in sys.modules, sorted(m for m in sys.modules if m.startswith('mpgemm.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "False []\n", done.stderr


def test_methods_load_no_runners_of_gpus():
    """`evaluate` and `compare` loaded CUDA's runners for a question about the CPU and for the names of engines."""
    code = (
        "import sys, mpgemm.experiments.methods, mpgemm.recovery.engines; from tensorcore_models import hardware;"
        "print('cuda' in hardware.PREFIXES, [m for m in sys.modules if m.startswith('tensorcore_models.hardware.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "True ['tensorcore_models.hardware.lookup']\n", done.stderr


def test_the_verdict_from_python():
    a = np.random.default_rng(0).standard_normal((32, 64))
    found = mpgemm.verdict(a, a.T)
    assert found.status == "as accurate" and repr(found) == "<Verdict: as accurate; termwise order, s_b = 12>"
    assert "<li>" in found._repr_html_()
    report = mpgemm.errors(np.float32(a) @ np.float32(a.T), np.float32(a), np.float32(a.T))
    assert len(repr(report)) < 120 and "<table>" in report._repr_html_()
    result = mpgemm.recovered_gemm_report(np.float32(a), np.float32(a.T), method="ootomo", engine="h100")
    assert (
        repr(result).startswith("<RecoveryResult 32 x 32 float32: ootomo on hopper:")
        and "<td>ootomo</td>" in result._repr_html_()
    )
    with pytest.raises(ValueError, match="2 dimensions"):
        mpgemm.verdict(a[0], a)
    pytest.importorskip("pandas")
    assert result.to_dataframe()["passes"][0] == 3
    assert len(found.to_dataframe()) == 4 and report.to_dataframe()["effective_bits"][0] == report.effective_bits()

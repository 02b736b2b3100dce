"""Chips: the built-in rows, the file readers, what-if changes."""

import re

import pytest

import ascend
from ascend.chips.chip import KINDS, PARAMETERS
from ascend.chips.files import parse_ini, parse_toml

BUILT_IN = [
    "310", "310P3", "910A", "910B1", "910B2", "910B3", "910B4", "910PremiumA", "910ProA", "910ProB", "950", "A3",
]  # fmt: skip
MINIMAL_INI = """[version]
SoC_version=AscendTest
[SoCInfo]
ai_core_cnt=4
l2_size=1048576
[AICoreSpec]
cube_freq=1000
cube_m_size=16
cube_n_size=16
cube_k_size=16
l0_a_size=65536
l0_b_size=65536
l0_c_size=262144
l1_size=1048576
ub_size=262144
[AICoreMemoryRates]
ddr_read_rate=32
l2_read_rate=110
l2_write_rate=86
l1_to_l0_a_rate=512
l1_to_l0_b_rate=256
l1_to_ub_rate=128
l0_c_to_ub_rate=256
ub_to_l2_rate=64
ub_to_ddr_rate=64
ub_to_l1_rate=128
"""


def test_built_in_chips():
    assert sorted(ascend.list_chips()) == BUILT_IN


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_number_has_unit_and_provenance(name):
    rows = ascend.get_chip(name).describe()
    assert [row[0] for row in rows] == list(PARAMETERS)
    assert all(unit and kind in KINDS and source for _, _, unit, kind, source in rows)


def test_910a():
    chip = ascend.get_chip("910A")
    assert (chip.cores, chip.frequency_mhz, chip.cube_flops_per_cycle()) == (32, 1000, 8192)
    assert chip.peak_flops() == 262.144e12
    assert chip.hbm_bytes_per_cycle / chip.cores == 37.5
    assert chip.ub_bytes == 248 * 1024
    assert chip.provenance["mmad_head"].kind == "assumed"  # measured on another chip


def test_910b3_fp32_peak():
    assert ascend.get_chip("910B3").peak_flops("fp32") == pytest.approx(73.73e12, rel=5e-5)  # as published, rounded
    with pytest.raises(ValueError, match="multiplies fp16, int8, got fp32"):
        ascend.get_chip("910A").peak_flops("fp32")


@pytest.mark.parametrize("name", ["910A", "Ascend910A", "ascend910a", " 910a "])
def test_names(name):
    assert ascend.get_chip(name) is ascend.get_chip("910A")


def test_bare_910b_names_the_candidates():
    for name in ("910B", "Ascend910B"):
        with pytest.raises(ValueError, match="910B1, 910B2, 910B3, 910B4"):
            ascend.get_chip(name)


@pytest.mark.parametrize(
    ("name", "chip"),
    [("Ascend910_9382", "A3"), ("Ascend910_9392", "A3"), ("910_9391", "A3"), ("910c", "A3"), ("Ascend910B2C", "910B2"),
     ("Ascend910B4-1", "910B4"), ("Ascend950PR", "950"), ("Ascend310P3", "310P3")],
)  # fmt: skip
def test_names_as_cann_spells_them(name, chip):
    assert ascend.get_chip(name) is ascend.get_chip(chip)


@pytest.mark.parametrize(("name", "chip"), [("Ascend910_9362", "A3"), ("Ascend950PR_9599", "950")])
def test_a_chip_of_a_series_with_other_cores_is_no_alias(name, chip):
    with pytest.raises(ValueError, match=f"series of {chip}.*--chip {chip} --set cores=N"):
        ascend.get_chip(name)


def test_unknown_chip_names_the_known_ones():
    with pytest.raises(ValueError, match="910PremiumA"):
        ascend.get_chip("911")


@pytest.mark.parametrize("name", ["910A", "910ProA", "910ProB", "910PremiumA", "910B1", "310P3", "310", "910B"])
def test_platform_files_load(shared, name):
    chip = ascend.load_chip(shared / "ascend_platform_config" / f"Ascend{name}.ini")
    assert chip.soc_version == f"Ascend{name}"
    assert chip.provenance["l1_bytes"].kind == "nominal"
    assert chip.provenance["mmad_head"].kind == "assumed"
    if name != "910B":
        built_in = ascend.get_chip(name)
        nominal = [p for p in PARAMETERS if built_in.provenance[p].source.startswith("CANN platform file")]
        assert len(nominal) > 10
        assert {p: getattr(built_in, p) for p in nominal} == {p: getattr(chip, p) for p in nominal}


def test_built_in_910a_and_its_platform_file_differ_in_memory_bandwidth(shared):
    from_file = ascend.load_chip(shared / "ascend_platform_config" / "Ascend910A.ini")
    assert from_file.hbm_bytes_per_second == 1.024e12  # 32 bytes a cycle a core
    assert ascend.get_chip("910A").hbm_bytes_per_second == 1.2e12  # the paper
    differing = {
        p for p in PARAMETERS if getattr(from_file, p) != pytest.approx(getattr(ascend.get_chip("910A"), p), rel=1e-3)
    }
    assert differing == {"hbm_bytes_per_second", "ub_bytes"}


def test_latencies_are_carried_over_in_time():
    slow = parse_ini(MINIMAL_INI.replace("cube_freq=1000", "cube_freq=1850"), "x.ini")
    assert slow.gm_to_l1_latency == pytest.approx(193)
    assert parse_ini(MINIMAL_INI, "x.ini").gm_to_l1_latency == pytest.approx(193 / 1.85)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("l1_size=1048576\n", ""), r"x\.ini: these keys are missing, add them: AICoreSpec\.l1_size"),
        (("ddr_read_rate=32\n", ""), r"x\.ini: these keys are missing, add them: AICoreMemoryRates\.ddr_read_rate"),
        (
            ("l1_size=1048576", "l1_size=1 MiB"),
            r"x\.ini, line 14, key AICoreSpec\.l1_size: expected an integer, got '1 MiB'",
        ),
        (("l1_size=1048576", "l1_size=0"), r"x\.ini, line 14, key AICoreSpec\.l1_size: l1_bytes must be at least 1"),
        (("l1_size=1048576", "l1_size"), r"x\.ini, line 14: expected key=value, got l1_size"),
        (("[AICoreSpec]", "[AICoreSpec"), r"x\.ini, line 6: expected '\]' at the end of a section's name"),
        (("[version]\n", ""), r"x\.ini, line 1: key SoC_version comes before any"),
        (
            ("l1_size=1048576", "l1_size=1048576\nl1_size=4"),
            r"x\.ini, line 15: key AICoreSpec\.l1_size is given twice \(first on line 14\): keep one of the two lines",
        ),
    ],
)
def test_malformed_platform_files(change, message):
    with pytest.raises(ValueError, match=message):
        parse_ini(MINIMAL_INI.replace(*change), "x.ini")


def toml_of_910a() -> str:
    from importlib import resources

    return (resources.files("ascend.chips") / "910A.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("pattern", "replacement", "message"),
    [
        (r"^cores = .*\n", "", r"c\.toml: these keys are missing, add them: cores \(SoCInfo\.ai_core_cnt\)"),
        (r"^cores = .*", "cores = 32", r"c\.toml, line \d+: cores must be \{ value"),
        (
            r"(^cores = .*)value = 32",
            r"\1value = 3.5",
            r"c\.toml, line \d+: cores must be a whole number \(cores\), got 3\.5",
        ),
        (r"(^cores = .*)value = 32", r"\1value = -1", r"line \d+: cores must be at least 1"),
        (
            r"(^cores = .*)value = 32",
            r"\1value = nan",
            r"line \d+: cores must be at least 1 \(cores\) and finite, got nan",
        ),
        (
            r"(^cores = .*)value = 32",
            r"\1value = inf",
            r"line \d+: cores must be at least 1 \(cores\) and finite, got inf",
        ),
        (r"(^cores = .*)value = 32", r'\1value = "x"', r"line \d+: cores must be a number"),
        (r'(^cores = .*)unit = "cores"', r'\1unit = "B"', r"line \d+: cores must have the unit 'cores', got 'B'"),
        (
            r'(^cores = .*)kind = "nominal"',
            r'\1kind = "guess"',
            r"line \d+: cores: kind must be one of nominal, measured",
        ),
        (r"^cores = ", "kores = ", r"line \d+: unknown parameter kores"),
        (r"^cores = ", "cores == ", r"c\.toml: .*line \d+"),
        (r"^name = .*\n", "", r"c\.toml: key name is missing"),
        (r"^non_overlapped_fraction = 0\.07719", "mmad_head = 3", r"line \d+: only non_overlapped_fraction"),
        (
            r"^sync_cycles_per_block = 17\.663",
            'sync_cycles_per_block = "a"',
            r"line \d+: sync_cycles_per_block must be a number",
        ),
    ],
)
def test_malformed_toml(pattern, replacement, message):
    text, count = re.subn(pattern, replacement, toml_of_910a(), flags=re.MULTILINE)
    assert count == 1
    with pytest.raises(ValueError, match=message):
        parse_toml(text, "c.toml")


def test_toml_round_trip(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(toml_of_910a(), encoding="utf-8")
    assert ascend.load_chip(path) == ascend.get_chip("910A")


def test_files_that_are_no_chip(tmp_path):
    with pytest.raises(ValueError, match=r"must end in \.toml or \.ini"):
        ascend.load_chip(tmp_path / "x.json")
    with pytest.raises(OSError):
        ascend.load_chip(tmp_path / "missing.toml")
    (tmp_path / "binary.ini").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="not UTF-8"):
        ascend.load_chip(tmp_path / "binary.ini")


def test_replace_marks_what_changed():
    chip = ascend.get_chip("910A")
    other = chip.replace(hbm_bytes_per_second=2e12)
    assert other.hbm_bytes_per_second == 2e12 and chip.hbm_bytes_per_second == 1.2e12
    assert other.provenance["hbm_bytes_per_second"] == ("assumed", "what-if")
    assert other.provenance["cores"] == chip.provenance["cores"]
    with pytest.raises(ValueError, match="no parameter bandwidth"):
        chip.replace(bandwidth=1)
    with pytest.raises(ValueError, match="above 0"):
        chip.replace(l2_read_rate=0)
    with pytest.raises(ValueError, match="must be at most 1"):
        chip.replace(non_overlapped_fraction=1.5)


def test_calibration_is_kept_apart():
    chip = ascend.get_chip("910A")
    assert chip.sync_cycles_per_block == chip.non_overlapped_fraction == 0
    fitted = chip.with_calibration()
    assert fitted.sync_cycles_per_block > 0 and fitted.non_overlapped_fraction > 0
    assert fitted.provenance["sync_cycles_per_block"].kind == "calibrated"
    with pytest.raises(ValueError, match="no calibrated parameters"):
        ascend.get_chip("310").with_calibration()

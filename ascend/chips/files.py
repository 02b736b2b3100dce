"""This module reads chips: the built-in TOML rows, a user's TOML file, CANN's platform files (.ini)."""

import difflib
import json
import re
import tomllib
from collections.abc import Callable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from ascend.chips.chip import CALIBRATED_PARAMETERS, FACTS, KINDS, PARAMETERS, Chip, Provenance, check_value


def list_chips() -> list[str]:
    """Return the names of the built-in chips."""
    return [chip.name for chip in _built_in().values()]


@cache
def _built_in() -> dict[str, Chip]:
    """Return the built-in chips keyed by lower-case SoC_version."""
    chips = [
        parse_toml(entry.read_text(encoding="utf-8"), entry.name)
        for entry in sorted(resources.files("ascend.chips").iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".toml")
    ]
    return {chip.soc_version.lower(): chip for chip in chips}


def get_chip(name: str | Chip) -> Chip:
    """Return a built-in chip by its name ("910A"), its SoC_version ("Ascend910A") or an unambiguous beginning ("310P").

    A :class:`Chip` is returned as it is.

    Raises
    ------
    ValueError
        If the name is unknown (the message lists the nearest and all known names), or is "910B" alone, which names two
        generations.
    """
    if isinstance(name, Chip):
        return name
    key = str(name).strip().lower()
    key = key if key.startswith("ascend") else "ascend" + key
    chips = _built_in()
    if key in chips:
        return chips[key]
    for chip in chips.values():
        if key.removeprefix("ascend") in map(str.lower, (chip.name, *chip.aliases)):
            return chip
    if key == "ascend910b":
        second = ", ".join(chip.name for chip in chips.values() if chip.name.startswith("910B"))
        raise ValueError(
            f"'{name}' names two generations of chips: for the second generation give its SoC_version, {second}; for the "
            f"first (Ascend910B: 30 cores, 900 MHz) give its platform file of CANN (.ini)"
        )
    begun = [chip for version, chip in chips.items() if version.startswith(key) and len(key) > len("ascend910")]
    if len(begun) == 1:
        return begun[0]
    plain = key.removeprefix("ascend")
    for chip in chips.values():
        for known in (chip.soc_version.lower().removeprefix("ascend"), *map(str.lower, chip.aliases)):
            if "_" in plain and plain.startswith(known):  # Ascend910_9362, Ascend950PR_9599
                raise ValueError(
                    f"'{name}' belongs to the series of {chip.name}, but its number of cores N is not known here: "
                    f"give N with --chip {chip.name} --set cores=N, or get_chip('{chip.name}').replace(cores=N)"
                )
    near = difflib.get_close_matches(key.removeprefix("ascend"), [chip.name.lower() for chip in chips.values()], 3)
    hint = f"; did you mean {' or '.join(name.upper() for name in near)}?" if near else "."
    raise ValueError(
        f"unknown chip '{name}'{hint} Built-in chips: {', '.join(list_chips())}. For another chip give CANN's platform file "
        f"(such as {key.capitalize()}.ini) or a .toml file"
    )


def load_chip(path: str | Path) -> Chip:
    """Read a chip from a TOML row (.toml) or a CANN platform file (.ini).

    Raises
    ------
    ValueError
        If the file is malformed; the message names file, line and key.
    OSError
        If the file cannot be read.
    """
    path = Path(path)
    if path.suffix.lower() not in (".toml", ".ini"):
        raise ValueError(f"the name of a chip file must end in .toml or .ini, got {path}")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path}: not UTF-8 text ({error.reason} at byte {error.start}): convert the file to UTF-8"
        ) from None
    return (parse_toml if path.suffix.lower() == ".toml" else parse_ini)(text, path.name)


# ---------------------------------------------------------------- TOML


def parse_toml(text: str, file_name: str) -> Chip:
    """Return a chip from the text of a TOML row; errors (ValueError) name the file, line and key."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{file_name}: not valid TOML: {error}") from None

    def where(key: str) -> str:
        return f"{file_name}, line {_line_of_key(text, key)}"

    known = ("name", "soc_version", "aliases", "sources", "parameters", "arithmetic", "calibrated")
    for key in document:
        if key not in known:
            raise ValueError(f"{where(key)}: unknown key {key}; known: {', '.join(known)}")
    for key in ("name", "soc_version", "parameters"):
        if key not in document:
            raise ValueError(f"{file_name}: key {key} is missing: add it")
    sources, rows = document.get("sources", {}), document["parameters"]
    values: dict[str, Any] = {}
    provenance: dict[str, Provenance] = {}
    for name, row in rows.items():
        values[name], provenance[name] = _toml_row(name, row, sources, where(name))
    _fill_defaults(values, provenance, file_name)
    facts = _facts(document.get("arithmetic", {}), sources, provenance, where, bool(values["fixpipe"]))
    calibrated = dict(document.get("calibrated", {}))
    calibration_source = str(calibrated.pop("source", ""))
    for name, value in calibrated.items():
        if name not in CALIBRATED_PARAMETERS:
            raise ValueError(f"{where(name)}: only {', '.join(CALIBRATED_PARAMETERS)} can be calibrated, got {name}")
        check_value(name, PARAMETERS[name], value, where(name))
    return Chip(
        name=str(document["name"]), soc_version=str(document["soc_version"]), **values, **facts, provenance=provenance,
        aliases=tuple(map(str, document.get("aliases", ()))),
        calibrated=calibrated, calibration_source=calibration_source,
    )  # fmt: skip


def _facts(
    rows: dict, sources: dict, provenance: dict[str, Provenance], where: Callable[[str], str], second_generation: bool
) -> dict[str, Any]:
    """Return the named choices of [arithmetic]; a missing choice follows the chip's generation and is labelled assumed."""
    found = {"overflow": "inf" if second_generation else "saturate"}
    provenance["overflow"] = Provenance("assumed", "as the other chips with and without FIXPIPE")
    for name, row in rows.items():
        if name not in FACTS:
            raise ValueError(f"{where(name)}: unknown fact {name}; known: {', '.join(FACTS)}")
        if not isinstance(row, dict) or set(row) != {"value", "kind", "source"} or row["kind"] not in KINDS:
            raise ValueError(
                f"{where(name)}: {name} must be {{ value = ..., kind = ..., source = ... }} with a kind of "
                f"{', '.join(KINDS)}, got {row!r}"
            )
        if row["value"] not in FACTS[name]:
            known = ", ".join(filter(None, FACTS[name]))
            raise ValueError(f"{where(name)}: {name} must be one of {known}, got {row['value']!r}")
        found[name] = row["value"]
        provenance[name] = Provenance(row["kind"], str(sources.get(row["source"], row["source"])))
    return found


def _toml_row(name: str, row: Any, sources: dict, where: str) -> tuple[float, Provenance]:
    """Return the value and provenance of `name = { value, unit, kind, source }`."""
    if name not in PARAMETERS:
        raise ValueError(f"{where}: unknown parameter {name}; known: {', '.join(PARAMETERS)}")
    if not isinstance(row, dict) or set(row) != {"value", "unit", "kind", "source"}:
        raise ValueError(
            f"{where}: {name} must be {{ value = ..., unit = ..., kind = ..., source = ... }}, got {row!r}"
        )
    parameter = PARAMETERS[name]
    if row["unit"] != parameter.unit:
        raise ValueError(f"{where}: {name} must have the unit {parameter.unit!r}, got {row['unit']!r}")
    if row["kind"] not in KINDS:
        raise ValueError(f"{where}: {name}: kind must be one of {', '.join(KINDS)}, got {row['kind']!r}")
    check_value(name, parameter, row["value"], where)
    value = int(row["value"]) if parameter.integer else row["value"]
    return value, Provenance(row["kind"], str(sources.get(row["source"], row["source"])))


def _line_of_key(text: str, key: str) -> int:
    """Return the line (from 1) where `key` is assigned; 1 if it cannot be found."""
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(rf"""\s*(\[\s*)?["']?{re.escape(key)}["']?\s*[\].=]""", line):
            return number
    return 1


def _has_default(name: str) -> bool:
    row = PARAMETERS[name]
    return row.default is not None or row.default_nanoseconds is not None or bool(row.default_from)


def _fill_defaults(values: dict, provenance: dict, where: str) -> None:
    """Add the defaults of missing numbers, labelled assumed. Raises ValueError for a number without a default."""
    missing = [name for name in PARAMETERS if name not in values and not _has_default(name)]
    if missing:
        keys = [f"{name} ({PARAMETERS[name].ini_key})" if PARAMETERS[name].ini_key else name for name in missing]
        raise ValueError(f"{where}: these keys are missing, add them: {', '.join(keys)}")
    for name, row in PARAMETERS.items():
        if name not in values:
            if row.default_from:
                values[name] = values[row.default_from]
            elif row.default_nanoseconds is not None:
                values[name] = row.default_nanoseconds * values["frequency_mhz"] / 1e3
            else:
                values[name] = row.default
            provenance[name] = Provenance("assumed", row.default_source)


def chip_text(chip: Chip, note: str) -> str:
    """Return a chip as the text of a TOML row that :func:`load_chip` reads; `note` is its first line, a comment."""

    def text(value: str) -> str:
        return json.dumps(value, ensure_ascii=False)

    lines = [f"# {note}", f"name = {text(chip.name)}", f"soc_version = {text(chip.soc_version)}", "", "[parameters]"]
    for name, row in PARAMETERS.items():
        where = chip.provenance[name]
        lines.append(
            f"{name} = {{ value = {getattr(chip, name)!r}, unit = {text(row.unit)}, kind = {text(where.kind)}, "
            f"source = {text(where.source)} }}"
        )
    lines += ["", "[arithmetic]"]
    for name in filter(lambda fact: getattr(chip, fact), FACTS):
        where = chip.provenance.get(name, Provenance("assumed", "of the built-in chip"))
        lines.append(
            f"{name} = {{ value = {text(getattr(chip, name))}, kind = {text(where.kind)}, source = {text(where.source)} }}"
        )
    if chip.calibrated:
        lines += ["", "[calibrated]", *(f"{name} = {value!r}" for name, value in chip.calibrated.items())]
        lines.append(f"source = {text(chip.calibration_source)}")
    return "\n".join(lines) + "\n"


# ---------------------------------------------------------------- CANN platform files


def parse_ini(text: str, file_name: str) -> Chip:
    """Return a chip from the text of a CANN platform file; the provenance of its numbers is nominal.

    The memory bandwidth of the chip is ddr_read_rate (bytes per cycle and core) times cores times clock.
    """
    entries = _ini_entries(text, file_name)
    source = f"CANN platform file {file_name}"
    values: dict[str, Any] = {}
    provenance: dict[str, Provenance] = {}
    for name, row in PARAMETERS.items():
        if row.ini_key in entries:
            values[name] = _ini_number(row.ini_key, *entries[row.ini_key], file_name)
            check_value(name, row, values[name], f"{file_name}, line {entries[row.ini_key][1]}, key {row.ini_key}")
            provenance[name] = Provenance("nominal", source)
    missing = [row.ini_key for name, row in PARAMETERS.items() if row.ini_key and not _has_default(name)
               and row.ini_key not in entries]  # fmt: skip
    rate_key, version_key = "AICoreMemoryRates.ddr_read_rate", "version.SoC_version"
    missing += [key for key in (rate_key, version_key) if key not in entries]
    if missing:
        raise ValueError(f"{file_name}: these keys are missing, add them: {', '.join(missing)}")
    rate = _ini_number(rate_key, *entries[rate_key], file_name)
    values["hbm_bytes_per_second"] = rate * values["cores"] * values["frequency_mhz"] * 1e6
    provenance["hbm_bytes_per_second"] = Provenance("nominal", f"{source}: ddr_read_rate * cores * clock")
    _fill_defaults(values, provenance, file_name)
    facts = _facts({}, {}, provenance, str, bool(values["fixpipe"]))
    version = entries[version_key][0]
    return Chip(
        name=version.removeprefix("Ascend"), soc_version=version, **values, **facts, provenance=provenance
    )  # fmt: skip


def _ini_entries(text: str, file_name: str) -> dict[str, tuple[str, int]]:
    """Return "Section.key" -> (value, line number)."""
    entries: dict[str, tuple[str, int]] = {}
    section = None
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        if line.startswith("["):
            if not line.endswith("]"):
                raise ValueError(f"{file_name}, line {number}: expected ']' at the end of a section's name, got {line}")
            section = line[1:-1].strip()
            continue
        key, equals, value = line.partition("=")
        if not equals or not key.strip():
            raise ValueError(f"{file_name}, line {number}: expected key=value, got {line}")
        if section is None:
            raise ValueError(
                f"{file_name}, line {number}: key {key.strip()} comes before any [section] line: move it below its [section] "
                "line"
            )
        name = f"{section}.{key.strip()}"
        if name in entries:
            raise ValueError(
                f"{file_name}, line {number}: key {name} is given twice (first on line {entries[name][1]}): keep one of the "
                "two lines"
            )
        entries[name] = (value.strip(), number)
    return entries


def _ini_number(key: str, value: str, line: int, file_name: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise ValueError(f"{file_name}, line {line}, key {key}: expected an integer, got {value!r}") from None

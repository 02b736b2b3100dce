"""Reads the findings in a folder of results: question, verdicts, recommendations, caveats, and the sources of engine models.

The findings come from the JSON files that commands write. Damaged files are named among the caveats and otherwise left out.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import tensorcore_models as tcm
from tensorcore_models.atlas.evidence import MEANING, level_of, links_of

#: The Ascend cube that `mpgemm evaluate` runs its methods on.
CUBE = "ascend:cube.m16n16k16.f32.f16.f16.f32"
#: Methods of `mpgemm evaluate` that run on the cube.
ON_CUBE = ("sgemm_cube", "fp16")
_INSTRUCTION = re.compile(r"[a-z0-9_]+:[a-z][\w.]*")


@dataclass(frozen=True)
class EngineBasis:
    """`EngineBasis` names a modelled engine and the evidence and source of its model, with links as (name, address)."""

    name: str
    evidence: str
    source: str
    links: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Findings:
    """`Findings` holds the statements of a page above its tables."""

    question: str = ""
    verdicts: list[tuple[str, list[str]]] = field(default_factory=list)  #: Verdict on each input, with its reasons.
    recommendations: list[str] = field(default_factory=list)
    caveats: list[str] = field(default_factory=list)
    engines: list[EngineBasis] = field(default_factory=list)
    #: Version, command, date and environment of the results, by name.
    origin: dict[str, str] = field(default_factory=dict)


def findings_of(folder: Path) -> Findings:
    """Return the findings of all JSON files of a folder."""
    found = Findings()
    questions: list[str] = []
    for path in sorted(folder.glob("*.json")):
        data = _read(path, found.caveats)
        if data is None:
            continue
        _origin(path, data, found.origin)
        try:
            questions += _add(data, found)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            found.caveats.append(f"{path.name} does not have the expected layout ({type(error).__name__}: {error}).")
    engines = {engine.name: engine for engine in found.engines}
    return Findings(
        " ".join(dict.fromkeys(questions)), found.verdicts, list(dict.fromkeys(found.recommendations)),
        list(dict.fromkeys(found.caveats)), list(engines.values()), found.origin,
    )  # fmt: skip


def _read(path: Path, caveats: list[str]) -> dict[str, Any] | None:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        caveats.append(f"{path.name} is damaged and was left out ({error}).")
        return None
    return data if isinstance(data, dict) else {"rows": data}


def _origin(path: Path, data: Mapping, origin: dict[str, str]) -> None:
    environment = data.get("environment")
    for name, value in environment.items() if isinstance(environment, Mapping) else ():
        origin.setdefault(str(name), str(value)[:16] if name == "code" else str(value))
    command = data.get("command")
    if isinstance(command, list):
        origin.setdefault("command", " ".join(map(str, command)))
    written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    origin.setdefault("date", f"{written:%Y-%m-%d %H:%M} UTC")


def _add(data: Mapping, found: Findings) -> list[str]:
    """Add the statements of one file to the findings, and return the questions that it answers."""
    records = [record for record in data.get("records", []) if isinstance(record, Mapping)]
    found.engines.extend(_engines(records))
    if "campaign" in data:
        return [_add_campaign(data, found)]
    if "inputs" in data:
        groups = list(dict.fromkeys(entry["group"] for entry in data.get("summaries", [])))
        for entry in data["inputs"]:
            _add_verdict(entry, found)
        found.caveats.extend(
            f"{check['case']}: the exact reference disagrees with mpmath on {check['checked'] - check['agreeing']} entries."
            for check in data.get("verified", []) if check["checked"] != check["agreeing"]
        )  # fmt: skip
        return [f"Is SGEMM-cube accurate enough for {_listed(groups)}, compared with native FP16 and FP32?"]
    if records and "engine" in records[0]:
        _add_comparison(records, data, found)
        return [
            f"Which method is cheap and accurate enough for {_listed(cases_of(records))} on {_listed(asked(records))}?"
        ]
    return []


def _add_campaign(data: Mapping, found: Findings) -> str:
    """Add the results of a campaign on a GPU to the findings, and return its question."""
    campaign = data["campaign"]
    for row in campaign["parts"]:
        said = (
            f"{row['compared']} results compared, {row['differ']} differ" if row["compared"] else f"{row['rows']} rows"
        )
        reasons = [
            f"{row[key]} {text}." for key, text in (("failed", "rows failed"), ("left", "rows had no time")) if row[key]
        ]
        found.verdicts.append((f"{row['part']}: {said}.", reasons))
    found.caveats.extend(f"{row['job']}: {row['said']}." for row in data.get("ended_badly", []))
    for name, value in campaign["device"].items():
        found.origin.setdefault(str(name), str(value))
    return f"Does {campaign['device']['gpu']} give the bits of the models?"


def _listed(names: Sequence[str], most: int = 4) -> str:
    shown = [*names[:most], *([f"{len(names) - most} more"] if len(names) > most else [])]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}" if shown else "these inputs"


def sentences_of(verdict: object) -> list[str]:
    """Return the sentences of a verdict (decision, reasons, recommendation), an empty list if there is no verdict."""
    if not isinstance(verdict, Mapping):
        return []
    return [str(line).strip().removeprefix("Verdict: ") for line in verdict["text"]]


def _add_verdict(entry: Mapping, found: Findings) -> None:
    lines = sentences_of(entry.get("verdict"))
    if lines:
        found.verdicts.append((f"{entry['case']}: {lines[0]}", lines[1:-1]))
        found.recommendations.extend(f"{entry['case']}: {line}" for line in lines[1:][-1:])
    if entry.get("note"):
        generated = "distribution" in (entry.get("identity") or {})
        found.caveats.append(f"{entry['case']}{' is generated' * generated}: {entry['note'].rstrip('.')}.")


def cases_of(records: Sequence[Mapping]) -> list[str]:
    """Return the names of the inputs of records; the seeds of a distribution are one input."""
    return list(dict.fromkeys(str(record.get("group") or record["case"]) for record in records))


def asked(records: Sequence[Mapping]) -> list[str]:
    """Return the names by which the engines of records were asked for."""
    return list(dict.fromkeys(str(record.get("requested") or record["engine"]) for record in records))


def _add_comparison(records: Sequence[Mapping], data: Mapping, found: Findings) -> None:
    remarks = data.get("remarks") or {}
    for case in cases_of(records):
        errors: dict[tuple[str, str], list[float]] = {}
        for record in records:
            if cases_of([record]) == [case] and not record.get("results_not_finite") and _error(record) is not None:
                errors.setdefault((record["method"], asked([record])[0]), []).append(_error(record) or 0.0)
        if errors:
            (method, engine), seeds = min(errors.items(), key=lambda item: median(item[1]))
            of = f" (median of {len(seeds)} seeds)" if len(seeds) > 1 else ""
            text = f"{case}: {method} on {engine} has the smallest error, {median(seeds):.2e}{of}."
            found.verdicts.append((text, []))
        found.recommendations.extend(f"{case}: {line}" for line in remarks.get(case, ()))
    for row in [] if remarks else data.get("recommendations", []):
        what = f"{row['method']} is the cheapest that reaches" if row["method"] else "no method compared here reaches"
        found.recommendations.append(f"{row['case']}, {row['engine']}: {what} {row['wanted']}.")
    for row in data.get("skipped", []):
        found.caveats.append(f"{row['method']} was not run on {row['engine']}: {row['reason']}.")
    found.caveats.extend(line for line in data.get("notes", ()) if not line.startswith("Left out: "))
    lost = [r for r in records if any(r.get(f"overflow_{x}") for x in "ab")]
    if lost:
        names = _listed(list(dict.fromkeys(str(record["method"]) for record in lost)))
        found.caveats.append(f"{names} lost elements beyond the range of the words; the overflow columns count them.")


def _error(record: Mapping) -> float | None:
    value = record.get("relative_frobenius")
    return float(value) if isinstance(value, int | float) else None


def _engines(records: Sequence[Mapping]) -> Iterator[EngineBasis]:
    """Yield the bases of the instructions that the methods and engines of records name."""
    names: dict[str, None] = {}
    for record in records:
        method = str(record.get("method", ""))
        if "engine" not in record and method.startswith(ON_CUBE):
            names[CUBE] = None
        names |= dict.fromkeys(_INSTRUCTION.findall(f"{record.get('engine', '')} {method.removeprefix('engine:')}"))
    for name in names:
        try:
            row = tcm.get_instruction(name)
        except ValueError:
            continue  # a method's option or another engine, not an instruction
        note = f"{row.source}. {row.note}".rstrip(". ") + "."
        yield EngineBasis(str(row), f"{row.evidence}: {MEANING[level_of(row)]}", note, tuple(links_of(row)))

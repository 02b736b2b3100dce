"""This module says which matrix instructions this CPU runs, and why it cannot run others."""

import os
import platform
from dataclasses import dataclass

from .._kernels.cpu_units import cpu_units
from ..catalogue import list_instructions
from ..engines.instruction import Instruction

#: Environment variable that overrides AMX for tests: "refused" behaves as if the operating system refused the permission,
#: "emulated" lets mpgemm.sgemm run on the emulated unit.
ENVIRONMENT = "MPGEMM_AMX"
SETTINGS = ("", "refused", "emulated")


def setting() -> str:
    """Return the value of :data:`ENVIRONMENT`, "" if it is not set; raises ValueError if it is not in :data:`SETTINGS`."""
    value = os.environ.get(ENVIRONMENT, "")
    if value not in SETTINGS:
        known = ", ".join(SETTINGS[1:])
        raise ValueError(f"environment variable {ENVIRONMENT} is {value!r}, expected one of {known}, or unset")
    return value


def number_of(row: Instruction) -> int:
    """Return the kernel's number of an instruction; raises ValueError if CPU engines do not run it."""
    name = row.name.partition(".")[0]
    if not has_engine(row):
        raise ValueError(f"{row} has no CPU engine, expected one of {', '.join(cpu_units.NAMES)}")
    return cpu_units.NAMES.index(name)


def has_engine(row: Instruction) -> bool:
    """Return whether a row has a CPU engine; Arm's extended mode (".ebf") has none, because engines do not change FPCR."""
    known = row.arch in ("x86", "arm") and row.name.partition(".")[0] in cpu_units.NAMES
    return known and not row.name.endswith(".ebf")


def status(row: Instruction) -> str:
    """Return the reason why this machine cannot run an x86 or Arm instruction, "" if it can; requests AMX's registers."""
    if row.path == "amx" and setting() == "refused":
        return f"{cpu_units.STATES[-1]} ({ENVIRONMENT}=refused)"
    number = cpu_units.state(number_of(row))
    return cpu_units.STATES[number] if number else ""


def available(emulated: bool = False) -> list[Instruction]:
    """Return the catalogue's rows that this machine runs or emulates."""
    rows = [row for arch in ("x86", "arm") for row in list_instructions(arch) if has_engine(row)]
    return [row for row in rows if (cpu_units.is_emulated(number_of(row)) if emulated else not status(row))]


@dataclass(frozen=True)
class Machine:
    """`Machine` describes this machine for a campaign: its CPU, operating system and architecture in the catalogue."""

    name: str
    driver: str
    arch: str


def this_machine(emulated: bool = False) -> Machine:
    """Return the description of this machine's CPU, or of the emulation of x86 instructions on it."""
    system = f"{platform.system()} {platform.release()}"
    arch = "arm" if platform.machine().lower() in ("aarch64", "arm64") and not emulated else "x86"
    return Machine(f"emulation on {processor()}" if emulated else processor(), system, arch)


def processor() -> str:
    """Return the maker, model and stepping of the CPU that the operating system reports."""
    facts: dict[str, str] = {}
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                key, separator, value = line.partition(":")
                if not separator:
                    break
                facts[key.strip()] = value.strip()
    except OSError:
        pass
    name = facts.get("model name") or platform.processor() or platform.machine()
    numbers = [f"{key} {facts[key]}" for key in ("cpu family", "model", "stepping", "microcode") if key in facts]
    return ", ".join([name, *numbers])

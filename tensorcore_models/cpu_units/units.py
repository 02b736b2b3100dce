"""Which matrix instructions this CPU runs, and why not the others."""

import os
import platform
from dataclasses import dataclass

from .._kernels.cpu_units import cpu_units
from ..catalogue import list_instructions
from ..engines.instruction import Instruction

#: Environment variable that replaces what the machine says about AMX, for tests: "refused" (as if the operating system had
#: refused the permission) or "emulated" (mpgemm.sgemm runs on the emulated unit).
ENVIRONMENT = "MPGEMM_AMX"
SETTINGS = ("", "refused", "emulated")


def setting() -> str:
    """Return the value of :data:`ENVIRONMENT`, "" where it is not set; raises ValueError if it is none of :data:`SETTINGS`."""
    value = os.environ.get(ENVIRONMENT, "")
    if value not in SETTINGS:
        known = ", ".join(SETTINGS[1:])
        raise ValueError(f"environment variable {ENVIRONMENT} is {value!r}, expected one of {known}, or unset")
    return value


def number_of(row: Instruction) -> int:
    """Return the kernel's number of an instruction; raises ValueError if CPU engines do not run it."""
    name = row.name.partition(".")[0]
    if not has_engine(row):
        raise ValueError(f"{row} is not a CPU instruction with an engine; known: {', '.join(cpu_units.NAMES)}")
    return cpu_units.NAMES.index(name)


def has_engine(row: Instruction) -> bool:
    """Return whether CPU engines run a row where the machine can: FPCR is left as it is, so that Arm's extended mode has
    none."""
    known = row.arch in ("x86", "arm") and row.name.partition(".")[0] in cpu_units.NAMES
    return known and not row.name.endswith(".ebf")


def status(row: Instruction) -> str:
    """Return why this machine cannot run an instruction of x86 or Arm, "" if it can; asks the system for AMX's registers."""
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
    """This machine as a campaign describes what it ran on: the CPU, the operating system, the architecture of the catalogue."""

    name: str
    driver: str
    arch: str


def this_machine(emulated: bool = False) -> Machine:
    """Return the CPU at hand, or the emulation on it (of x86's instructions)."""
    system = f"{platform.system()} {platform.release()}"
    arch = "arm" if platform.machine().lower() in ("aarch64", "arm64") and not emulated else "x86"
    return Machine(f"emulation on {processor()}" if emulated else processor(), system, arch)


def processor() -> str:
    """Maker, model and stepping of the CPU as the operating system tells them."""
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

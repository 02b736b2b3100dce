"""`mpgemm completion` prints a script that completes commands, options and choices in bash, zsh or fish."""

import argparse

from mpgemm.cli.common.discovery import all_commands, command_parser
from mpgemm.reporting.output import Output

QUESTION = "keep results, check the installation"
SUMMARY = "print a script that completes commands and options in bash, zsh or fish"
EXAMPLES = (
    ("bash", "print the script for bash; to load it into the current shell: source <(mpgemm completion bash)"),
    ("fish", "print the script for fish; to load it into the current shell: mpgemm completion fish | source"),
)

SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "shell",
        choices=SHELLS,
        help="shell for which the script is printed. bash loads it by source <(mpgemm completion bash), zsh by "
        "source <(mpgemm completion zsh), fish by mpgemm completion fish | source",
    )


_BASH = """_mpgemm() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}"
    local command="${{COMP_WORDS[1]}}" words=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="{commands}"
    else
        case "$command $previous" in
{choices}
        esac
        if [ -z "$words" ]; then
            case "$command" in
{options}
            esac
        fi
    fi
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _mpgemm mpgemm"""

_ZSH = "autoload -U +X bashcompinit && bashcompinit\n"


def run(args: argparse.Namespace) -> Output:
    """Carry out the command."""
    words = {name: _words(name) for name in all_commands()}
    if args.shell == "fish":
        return Output(text=[_fish(words)])
    return Output(text=[(_ZSH if args.shell == "zsh" else "") + _bash(words)])


def _words(command: str) -> dict[str, list[str]]:
    """Return the choices of each option of a command; the key "" is for positional words."""
    found: dict[str, list[str]] = {"": []}
    for action in command_parser(command)._actions:
        choices = [str(choice) for choice in action.choices or ()]
        if not action.option_strings:
            found[""] += choices
        for option in action.option_strings:
            found[option] = choices
    return found


def _bash(words: dict[str, dict[str, list[str]]]) -> str:
    choices = [
        f'            "{command} {option}") words="{" ".join(values)}" ;;'
        for command, options in words.items()
        for option, values in options.items()
        if option and values
    ]
    options = [
        f'                {command}) words="{" ".join([*found[""], *(o for o in found if o)])}" ;;'
        for command, found in words.items()
    ]
    return _BASH.format(commands=" ".join(words), choices="\n".join(choices), options="\n".join(options))


def _fish(words: dict[str, dict[str, list[str]]]) -> str:
    lines = [f"complete -c mpgemm -n __fish_use_subcommand -a '{' '.join(words)}'"]
    for command, options in words.items():
        start = f"complete -c mpgemm -n '__fish_seen_subcommand_from {command}'"
        for option, values in options.items():
            name = f" -l {option[2:]}" if option.startswith("--") else f" -s {option[1:]}" if option else ""
            given = f" -xa '{' '.join(values)}'" if values and option else f" -a '{' '.join(values)}'" if values else ""
            lines += [f"{start}{name}{given}"] if name or given else []
    return "\n".join(lines)

"""Runs one solver on an SMT-LIB script from standard input and prints its answer; it is started as a script, by path.

It imports only the solver, so that it starts fast and can be stopped at any time. Its arguments are the back end and the limit
of its memory in MiB (0: none).
"""

import sys


def run_bitwuzla(script: str) -> str:
    import bitwuzla

    options = bitwuzla.Options()
    options.set(bitwuzla.Option.PRODUCE_MODELS, True)
    bitwuzla.Parser(bitwuzla.TermManager(), options).parse(script, False, False)  # prints the answers
    return ""


def run_z3(script: str) -> str:
    import z3

    context, (question, values, names) = z3.main_ctx().ref(), script.partition("(get-value")
    printed = z3.Z3_eval_smtlib2_string(context, question)
    if values and printed.startswith("sat"):  # asking for values without a model would be an error
        printed += z3.Z3_eval_smtlib2_string(context, values + names)
    return printed


def run_cvc5(script: str) -> str:
    import cvc5

    solver = cvc5.Solver()
    solver.setOption("bitblast", "eager")
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, script, "script")
    printed = []
    while not (command := parser.nextCommand()).isNull():
        printed.append(command.invoke(solver, parser.getSymbolManager()))
    return "".join(printed)


RUNS = {"bitwuzla": run_bitwuzla, "z3": run_z3, "cvc5": run_cvc5}


def main() -> int:
    name, mebibytes = sys.argv[1], int(sys.argv[2])
    if mebibytes:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (mebibytes << 20, mebibytes << 20))
    script = sys.stdin.read()
    try:
        print(RUNS[name](script))
    except MemoryError:
        print("memory")
    return 0


if __name__ == "__main__":
    sys.exit(main())

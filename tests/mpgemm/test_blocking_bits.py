"""What a blocking changes in the result: only the length of the chain in L0C."""

import ascend
from mpgemm.cli import main
from mpgemm.experiments import blocking_bits as experiment

CHIP = ascend.get_chip("910A")


def test_only_the_chain_length_changes_bits(monkeypatch):
    blocks = ascend.feasible_blocks(CHIP)[::40]
    monkeypatch.setattr(ascend, "feasible_blocks", lambda chip: blocks)
    found = experiment.blocking_bits(CHIP, 8, 8192, 8, lengths=3)
    lengths = {experiment.chain_length(block, CHIP, 8192) for block in blocks}
    assert found.blocks == len(blocks) == sum(found.chains.values())
    assert set(found.chains) == lengths
    assert found.mixed == 0
    assert 1 < found.results <= len(lengths)


def test_one_group_is_one_chain_with_or_without_seeding(monkeypatch):
    block = min(ascend.feasible_blocks(CHIP), key=lambda b: b.bm)
    monkeypatch.setattr(ascend, "feasible_blocks", lambda chip: [block])
    found = experiment.blocking_bits(CHIP, 4, 512, 4)
    (errors,) = found.errors.values()
    assert errors["re-seeded L0C"] == errors["termwise, sequential"]
    assert set(errors) == {label for label, _ in experiment.VARIANTS}
    assert errors["exact steps"] != errors["termwise, sequential"]


def test_command(monkeypatch, capsys):
    blocks = ascend.feasible_blocks(CHIP)[::600]
    monkeypatch.setattr(ascend, "feasible_blocks", lambda chip: blocks)
    assert main(["plan", "--bits"]) == 0
    assert f"{len(blocks)} feasible blocks give" in capsys.readouterr().out

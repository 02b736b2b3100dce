"""This package runs a campaign on real hardware: decisive experiments, comparison with the models, recording.

``python -m tensorcore_models.hardware.campaign --out DIR`` runs it; docs/hardware.md describes it.
"""

"""A campaign on real hardware: decisive experiments, comparison with the models, recording, libraries.

``python -m tensorcore_models.hardware.campaign --out DIR`` runs it; docs/hardware.md describes it.
"""

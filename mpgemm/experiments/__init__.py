"""Experiments: methods run on cases, judged, compared, advised; what they share is `cases`, `tasks`, `journal` and `outcome`."""

"""Methods run on cases, judged, compared, advised; `cases`, `tasks`, `journal` and `outcome` are what experiments share."""

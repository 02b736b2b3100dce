"""This package derives AscendC's TCubeTiling: the fields that describe a schedule, and the published rules on them."""

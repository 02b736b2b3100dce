"""What several commands have in common: parser, options with what becomes of them, how results are shown."""

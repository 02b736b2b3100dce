"""Parts that several commands share: parser, options and their effects, how results are shown."""

"""Matrix engines: custom units and users' functions in `engine`, instructions of the catalogue in `instruction`."""

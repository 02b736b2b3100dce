"""Matrix engines: what every engine has in `engine`, custom units, users' functions, instructions of the catalogue."""

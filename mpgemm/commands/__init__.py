"""One module for each command of the `mpgemm` program."""

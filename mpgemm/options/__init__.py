"""What may be said to each command: its arguments. A module here imports no more than `mpgemm COMMAND --help` needs."""

"""The timing interpreter: operations of a schedule on the pipes of a core, simulated and recorded."""

"""Why and by how much a result may be wrong: `bounds`, `tolerances`, `attribution`."""

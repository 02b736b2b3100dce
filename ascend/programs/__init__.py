"""A core's pipes execute programs: operations, templates, loops and phases; `passes` makes those of the vector units."""

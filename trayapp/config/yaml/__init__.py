"""YAML texts as nodes that know their place, and changes to them by the fewest bytes."""

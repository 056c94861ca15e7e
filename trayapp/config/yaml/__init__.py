"""YAML texts as nodes with positions, and edits that change the fewest bytes."""

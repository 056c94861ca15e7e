"""A YAML parser that returns nodes with positions, and edits that change the fewest bytes."""

"""The panel: who is admitted, and what its pages show and do, in a real browser."""

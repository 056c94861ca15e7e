"""The panel: who comes in, what its pages show and do, in a real browser."""

"""Tool schemas in a form that any client accepts, and validation of arguments against them."""

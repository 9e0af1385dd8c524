"""Programs in tables, by subject. The tests in semantics/tests run them."""

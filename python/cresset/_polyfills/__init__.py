"""Polyfills: Python functions which the evaluator enters in place of builtins and of functions of torch."""

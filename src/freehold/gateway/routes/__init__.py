"""The API: one module for each noun, each with one or two groups of routes and the models of their bodies.

The name of every model ends in `Body`.
"""

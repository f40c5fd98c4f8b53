"""The course of a simulation: its scenario, what happens when, what is reported."""

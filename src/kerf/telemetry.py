"""Structured logs. Metrics join here when there is a server to show them."""

import logging

import structlog


def logger(name: str) -> structlog.stdlib.BoundLogger:
    """A logger that carries the controller's name."""
    bound: structlog.stdlib.BoundLogger = structlog.get_logger(controller=name)
    return bound


def silence() -> None:
    """No logs at all: for the simulator, whose report says everything."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))

"""The Python libraries that run the shared scenarios."""

from collections.abc import Callable

from ..support import Broker
from .base import Library, Refused
from .with_pika import Pika
from .with_py_amqp import PyAmqp

__all__ = ["LIBRARIES", "Library", "Refused"]

LIBRARIES: dict[str, Callable[[Broker], Library]] = {
    "pika": Pika,
    "py-amqp": PyAmqp,
}

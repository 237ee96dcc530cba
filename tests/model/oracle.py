"""A RabbitMQ with its management API, for what only that can do."""

from __future__ import annotations

from pathlib import Path

from tests.support.ports import free_port
from tests.support.rabbitmq import RabbitMQServer


class ManagedRabbitMQ(RabbitMQServer):
    """As its parent, with the API on a port of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.api_port = free_port()

    @property
    def api_url(self) -> str:
        """Without a slash at the end."""
        return f"http://{self.host}:{self.api_port}/api"

    def _env(self) -> dict[str, str]:
        env = super()._env()
        Path(env["RABBITMQ_ENABLED_PLUGINS_FILE"]).write_text("[rabbitmq_management].\n")
        with Path(env["RABBITMQ_CONFIG_FILE"]).open("a") as settings:
            settings.write(f"management.tcp.ip = {self.host}\n")
            settings.write(f"management.tcp.port = {self.api_port}\n")
        return env

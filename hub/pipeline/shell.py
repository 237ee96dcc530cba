"""A Python shell with a Spark session, and with the server's streams at hand."""

from __future__ import annotations

import code
import importlib
import rlcompleter
import sys
from typing import TYPE_CHECKING, Any, Final

from .options import ServerLogin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BANNER: Final = """\
Spark {version} on Python {python}, with the server at {url}.
  spark                          the Spark session
  stream("prices")               a stream as a data frame; more options by name, such as
                                 stream("prices", startingOffset="latest")
  stream("prices", follow=True)  the same for writeStream, as new messages arrive
Ctrl-D leaves."""


class Streams:
    """Opens the streams of a virtual host as data frames."""

    def __init__(self, session: SparkSession, server: ServerLogin, vhost: str) -> None:
        self._session = session
        self._options = {**server.options(), "vhost": vhost}

    def __call__(self, name: str, *, follow: bool = False, **options: Any) -> DataFrame:
        """Returns a stream as a data frame, of `spark.readStream` with `follow`. `options` are
        those of the data source."""
        given = self._options | {"stream": name} | {key: str(one) for key, one in options.items()}
        if follow:
            return self._session.readStream.format("warren").options(**given).load()
        return self._session.read.format("warren").options(**given).load()


def run_shell(session: SparkSession, server: ServerLogin, vhost: str) -> None:
    """Returns when the user leaves the shell."""
    names: dict[str, Any] = {"spark": session, "stream": Streams(session, server, vhost)}
    _complete(names)
    banner = BANNER.format(version=session.version, python=sys.version.split()[0], url=server.url)
    code.interact(banner, local=names, exitmsg="")


def _complete(names: dict[str, Any]) -> None:
    """Has the tab key complete names, where Python was built with readline."""
    try:
        readline = importlib.import_module("readline")
    except ImportError:
        return
    readline.set_completer(rlcompleter.Completer(names).complete)
    readline.parse_and_bind("tab: complete")

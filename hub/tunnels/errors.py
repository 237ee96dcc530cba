"""The errors of tunnels, each with its HTTP status."""

from __future__ import annotations

from ..errors import HubError


class TunnelError(HubError):
    """A request can't be tunnelled, or a call of an application is refused."""


class UnknownTunnel(TunnelError):
    """No application has the label, or the token is another one."""

    status = 404
    title = "No such tunnel"


class ReleasedTunnel(TunnelError):
    """The label was released, by its application, its owner or an administrator."""

    status = 410
    title = "Tunnel released"

    def __init__(self, label: str) -> None:
        super().__init__("was released", field="label", value=label)


class EnrolmentRefused(TunnelError):
    """The label is taken, reserved, or beyond a limit."""

    status = 403
    title = "Enrolment refused"


class EnrolsTooOften(TunnelError):
    """Too many labels were enrolled within a short time."""

    status = 429
    title = "Too many enrolments"
    retry_after_s = 5


class NoPoll(TunnelError):
    """The application did not poll in time."""

    status = 503
    title = "Application not connected"
    retry_after_s = 5


class NoApplicationReply(TunnelError):
    """The application did not reply in time."""

    status = 504
    title = "No reply"


class TunnelFull(TunnelError):
    """A limit of the label, or of all tunnels together, is reached."""

    status = 503
    title = "Tunnel full"
    retry_after_s = 1


class PollReplaced(TunnelError):
    """Another poll came at the same Request URL."""

    status = 409
    title = "Poll replaced"


class BadReply(TunnelError):
    """The reply is not one whole HTTP response."""

    title = "Bad reply"


class UnknownRequest(TunnelError):
    """A reply names no request that waits for one."""

    status = 404
    title = "No such request"


class AnsweredRequest(TunnelError):
    """A second reply to a request."""

    status = 410
    title = "Request answered"


class TunnelLoop(TunnelError):
    """The request has passed this hub's tunnels too often."""

    status = 508
    title = "Loop detected"

"""User data in several parts, as cloud-init and nodeadm read it.

What makes it hard is that a user's own parts must arrive as they are: with all their headers, and whatever lines they
have. So the boundary is one that no part contains.
"""

from dataclasses import dataclass
from email import message_from_string
from email.message import Message

from kerf.clouds.aws.nodeclass.unusable import Unusable
from kerf.clouds.aws.userdata.facts import INVALID_USER_DATA

SHELL = 'text/x-shellscript; charset="us-ascii"'
_VERSION = "MIME-Version: 1.0"
_BOUNDARY = "//"


@dataclass(frozen=True, slots=True)
class Part:
    """One part: its headers (name, value), of which the first is the content type, and its text."""

    headers: tuple[tuple[str, str], ...]
    text: str

    @classmethod
    def of(cls, content_type: str, text: str) -> "Part":
        """A part without further headers."""
        return cls((("Content-Type", content_type),), text)


def is_mime(text: str) -> bool:
    """Whether a user wrote an archive of parts, by its first line."""
    return text.lstrip().startswith(("MIME-Version:", "Content-Type:"))


def parts_of(text: str) -> tuple[Part, ...]:
    """The parts of an archive, in their order. Raises Unusable where it is none."""
    try:
        message = message_from_string(text.replace("\r", "").lstrip())
        payload = message.get_payload()
        # A boundary that never comes makes one text of it all.
        if not message.is_multipart() or not isinstance(payload, list):
            raise Unusable(INVALID_USER_DATA, "spec.userData: expected multipart MIME with a boundary that occurs")
        return tuple(_part(each) for each in payload if isinstance(each, Message))
    except RecursionError:
        raise Unusable(INVALID_USER_DATA, "spec.userData: expected MIME whose parts are not nested so deep") from None


def _part(message: Message) -> Part:
    if not message.is_multipart():
        return Part(tuple(message.items()), str(message.get_payload()))
    _, _, body = message.as_string().partition("\n\n")
    return Part(tuple(message.items()), body)


def archive(parts: tuple[Part, ...]) -> str:
    """The parts as one text, with lines that end as on Linux."""
    boundary = _BOUNDARY
    while any(f"--{boundary}" in part.text for part in parts):
        boundary += "/"
    lines = [_VERSION, f'Content-Type: multipart/mixed; boundary="{boundary}"', ""]
    for part in parts:
        lines += [f"--{boundary}", *(f"{name}: {value}" for name, value in part.headers), "", part.text]
    return "\n".join([*lines, f"--{boundary}--", ""]).replace("\r", "")

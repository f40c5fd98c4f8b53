"""How AWS APIs write requests and replies: forms and XML of EC2 and IAM, JSON of SSM, SQS and Pricing.

EC2 numbers the elements of a list in the names of form fields (`Filter.1.Value.2`) and repeats `<item>` in XML. So a
request and a reply are read as plain mappings and lists, and written back from them.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode
from xml.etree import ElementTree
from xml.sax.saxutils import escape

EC2, QUERY, JSON, REST = "ec2", "query", "json", "rest-json"
"""Protocols, as botocore names them."""
EC2_NAMESPACE = "http://ec2.amazonaws.com/doc/2016-11-15/"
_XML = "text/xml;charset=UTF-8"

Tree = dict[str, Any]
"""A request or a reply: mappings, lists and texts."""


@dataclass(frozen=True, slots=True)
class WireReply:
    """An HTTP reply."""

    status: int
    body: bytes
    content_type: str = _XML
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_good(self) -> bool:
        """Whether the call was carried out."""
        return self.status < 300


class CallRefused(Exception):
    """A call that the cloud refuses with an error code."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        self.code, self.message, self.status = code, message, status
        super().__init__(f"{code}: {message}")


def nested(pairs: Iterable[tuple[str, str]]) -> Tree:
    """Form fields as a tree: `A.1.B=x` is `{"A": [{"B": "x"}]}`. Elements keep the order of their numbers."""
    root: Tree = {}
    for name, value in pairs:
        at = root
        *path, last = name.split(".")
        for part in path:
            at = at.setdefault(part, {})
        at[last] = value
    listed = _with_lists(root)
    assert isinstance(listed, dict)
    return listed


def _with_lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if value and all(key.isdigit() for key in value):
        return [_with_lists(value[key]) for key in sorted(value, key=int)]
    return {key: _with_lists(child) for key, child in value.items()}


def fields(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """A tree as form fields; the inverse of `nested`."""
    if isinstance(value, Mapping):
        for key, child in value.items():
            yield from fields(child, f"{name}.{key}" if name else key)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for number, child in enumerate(value, 1):
            yield from fields(child, f"{name}.{number}")
    else:
        yield name, str(value)


def form(tree: Tree) -> bytes:
    """A tree as the body of a form."""
    return urlencode(list(fields(tree))).encode()


def of_form(body: bytes) -> Tree:
    """The body of a form as a tree."""
    return nested(parse_qsl(body.decode(), keep_blank_values=True))


def xml(name: str, value: Any) -> str:
    """One element and what is in it: mappings are elements, lists are `<item>`s, None is left out."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        text = "".join(xml(key, child) for key, child in value.items())
    elif isinstance(value, list | tuple):
        text = "".join(xml("item", child) for child in value)
    elif isinstance(value, bool):
        text = "true" if value else "false"
    else:
        text = escape(str(value))
    return f"<{name}>{text}</{name}>"


def of_xml(body: bytes) -> Tree:
    """The tree of an XML reply, without namespaces. Elements with children `item` or `member` alone are lists."""
    found = _tree(ElementTree.fromstring(body))
    return found if isinstance(found, dict) else {}


def _tree(element: ElementTree.Element) -> Any:
    children = [(_local(child.tag), _tree(child)) for child in element]
    if not children:
        return element.text or ""
    # The groups of an interface of a launch template are the one list of EC2 with other names.
    names = ("groupId",) if _local(element.tag) == "groupSet" else ()
    if all(name in ("item", "member", *names) for name, _ in children):
        return [child for _, child in children]
    return dict(children)


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def listed(tree: Tree, name: str) -> list[Any]:
    """The list under `name`; empty where the element is missing or empty."""
    found = tree.get(name)
    return found if isinstance(found, list) else []


def ec2_reply(action: str, tree: Tree) -> WireReply:
    """A reply of EC2 that carries the tree."""
    text = "".join(xml(key, value) for key, value in tree.items())
    body = f'<{action}Response xmlns="{EC2_NAMESPACE}"><requestId>faultproxy</requestId>{text}</{action}Response>'
    return WireReply(200, body.encode())


def json_reply(value: object, content_type: str = "application/x-amz-json-1.1") -> WireReply:
    """A reply in JSON."""
    return WireReply(200, json.dumps(value).encode(), content_type)


def error_reply(protocol: str, refused: CallRefused) -> WireReply:
    """An error as a service of that protocol writes it."""
    code, message = refused.code, refused.message
    if protocol in (JSON, REST):
        body = json.dumps({"__type": code, "message": message}).encode()
        return WireReply(refused.status, body, "application/x-amz-json-1.1", {"x-amzn-ErrorType": code})
    error = xml("Error", {"Code": code, "Message": message})
    if protocol == EC2:
        text = f"<Response><Errors>{error}</Errors><RequestID>faultproxy</RequestID></Response>"
    else:
        text = f"<ErrorResponse>{error}<RequestId>faultproxy</RequestId></ErrorResponse>"
    return WireReply(refused.status, text.encode())

"""What boto3 reads by itself: variables and files of AWS. A mistake there is the user's: a command ends with exit 2.

boto3 says it by errors of its own and of Python, some of them only at the first call, without the name of the variable,
and some with the value, which may be a secret: a header that cannot be sent, a URL with a password.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from kerf.errors import InputError, brief, cut

_TOKEN_FILE = "AWS_WEB_IDENTITY_TOKEN_FILE"
_TOKEN_KEY = "web_identity_token_file"
_BEFORE = "AWS_ACCESS_KEY_ID"
"""Where boto3 looks before it: with this the file is not needed."""
_PROFILE = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE")
_AUTHORITIES = "AWS_CA_BUNDLE"
_ENDPOINT_WORDS = "Invalid endpoint: "
_MOST_LETTERS = 400
_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN")
_HEADER = "AWS_CONTAINER_AUTHORIZATION_TOKEN"
_BETWEEN = re.compile(r"""([\s"']+)""")
_SCHEME = re.compile("https?://")


def check_keys() -> None:
    """Raises InputError where a variable with a secret has what no key has; the value is never said.

    Most often it is the line end of a file that was read into it: a header that has one cannot be sent.
    """
    for name in (*_KEYS, _HEADER):
        value = os.environ.get(name, "")
        bare = value.replace(" ", "") if name == _HEADER else value
        if not (bare.isascii() and all("!" <= letter <= "~" for letter in bare)):
            hint = f"a line end, perhaps of a file: export {name}=$(cat FILE) leaves it out"
            raise InputError(f"{name}: expected printable letters of ASCII alone, got others among them (hint: {hint})")


def masked(text: str) -> str:
    """A text of boto3 without what may be secret in its URLs: names with passwords, and queries. Cost: its length."""
    return "".join(map(_masked_word, _BETWEEN.split(text)))


def _masked_word(word: str) -> str:
    begin = _SCHEME.search(word)
    before, at, after = word.rpartition("@")
    if at and ":" in (before[begin.end() :] if begin is not None else before):
        word = f"{before[: begin.end()] if begin is not None else ''}***@{after}"
    address, mark, _ = word.partition("?")
    return f"{address}?***" if mark and _SCHEME.search(address) is not None else word


def check_files(profiles: Mapping[str, Mapping[str, object]]) -> None:
    """Raises InputError where a token or the authorities are to be read from a file that cannot be read.

    `profiles` are those of the files of AWS, by name.
    """
    _check_file(_AUTHORITIES, os.environ.get(_AUTHORITIES, ""), "name a file in PEM, or unset the variable")
    if os.environ.get(_BEFORE):
        return
    named = next(filter(None, map(os.environ.get, _PROFILE)), "")
    token = os.environ.get(_TOKEN_FILE, "")
    if token:
        # With a profile the file may not be needed.
        hint = "a service account with a role has it mounted: restart the pod, or unset the variable"
        _check_file(_TOKEN_FILE, "" if named else token, hint)
        return
    name, seen = named or "default", set[str]()
    while name in profiles and name not in seen:
        seen.add(name)
        profile = profiles[name]
        if "role_arn" not in profile:
            return
        if _TOKEN_KEY in profile:
            _check_file(
                f"profile {cut(name, 80)}: {_TOKEN_KEY}", str(profile[_TOKEN_KEY]), "correct it in the file of AWS"
            )
            return
        name = str(profile.get("source_profile"))


def _check_file(place: str, path: str, hint: str) -> None:
    try:
        if path:
            with open(path, "rb"):
                return
    except IsADirectoryError as error:
        # Authorities may be a folder of certificates.
        if place != _AUTHORITIES:
            raise _unread(place, path, error, hint) from error
    except (OSError, ValueError) as error:
        raise _unread(place, path, error, hint) from error


def _unread(place: str, path: str, error: Exception, hint: str) -> InputError:
    why = error.strerror if isinstance(error, OSError) else error
    return InputError(f"{place}: expected a file that can be read, got {brief(path)}: {why} (hint: {hint})")


@contextmanager
def as_wrong_input() -> Iterator[None]:
    """While boto3 reads its settings. Raises InputError for what it cannot use of them; other errors pass."""
    from botocore import exceptions as boto

    try:
        yield
    except boto.ProfileNotFound as error:
        got = brief(error.kwargs.get("profile", ""))
        expected = f"AWS_PROFILE: expected a profile of the AWS config or credentials file, got {got}"
        raise InputError(f"{expected} (hint: aws configure list-profiles shows them)") from error
    except boto.ConfigParseError as error:
        got = brief(error.kwargs.get("path", ""))
        expected = f"AWS_CONFIG_FILE: expected sections with key = value, got {got}"
        raise InputError(f"{expected} (hint: correct the file, or unset the variable)") from error
    except boto.InvalidRegionError as error:
        got = brief(error.kwargs.get("region_name", ""))
        raise InputError(f"region of AWS: expected a name such as us-east-1, got {got}") from error
    except (boto.BotoCoreError, ValueError) as error:
        # Each wrong setting has a class of its own, without one that is common to them.
        if isinstance(error, boto.BotoCoreError) and not type(error).__name__.startswith("Invalid"):
            raise
        said = " ".join(str(error).split())
        if said.startswith(_ENDPOINT_WORDS):
            got = brief(masked(said.removeprefix(_ENDPOINT_WORDS)))
            expected = f"AWS_ENDPOINT_URL: expected a URL such as http://localhost:4566, got {got}"
            raise InputError(f"{expected} (hint: begin with http:// or https://)") from error
        expected = "variables and files of AWS: expected what boto3 can use, got"
        raise InputError(f"{expected}: {cut(masked(said), _MOST_LETTERS)}") from error

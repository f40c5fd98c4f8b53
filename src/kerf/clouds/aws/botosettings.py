"""What boto3 reads by itself: variables and files of AWS. A mistake there is the user's: a command ends with exit 2.

boto3 says it by errors of its own and of Python, some of them only at the first call, without the name of the variable,
and some with the value, which may be a secret: a header that cannot be sent, a URL with a password.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from kerf.errors import InputError, brief, cut

_TOKEN_FILE = "AWS_WEB_IDENTITY_TOKEN_FILE"
_BEFORE = ("AWS_ACCESS_KEY_ID", "AWS_PROFILE")
"""Where boto3 looks before it: with one of these the file may not be needed."""
_ENDPOINT_WORDS = "Invalid endpoint: "
_MOST_LETTERS = 400
_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN")
_HEADER = "AWS_CONTAINER_AUTHORIZATION_TOKEN"
_PASSWORD = re.compile(r"""[^\s/"'@]+:[^\s"'@]*@""")
_QUERY = re.compile(r"""(https?://[^\s"'?]*)\?[^\s"']*""")


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
    """A text of boto3 without what may be secret in its URLs: names with passwords, and queries."""
    return _QUERY.sub(r"\1?***", _PASSWORD.sub("***@", text))


def check_token_file() -> None:
    """Raises InputError where the token of IRSA is to be read from a file that cannot be read."""
    path = os.environ.get(_TOKEN_FILE, "")
    if not path or any(os.environ.get(name) for name in _BEFORE):
        return
    try:
        with open(path, "rb"):
            return
    except OSError as error:
        hint = "a service account with a role has it mounted: restart the pod, or unset the variable"
        expected = f"{_TOKEN_FILE}: expected a file that can be read, got {brief(path)}: {error.strerror}"
        raise InputError(f"{expected} (hint: {hint})") from error


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
    except (boto.InvalidConfigError, boto.InvalidRetryConfigurationError, ValueError) as error:
        said = " ".join(str(error).split())
        if said.startswith(_ENDPOINT_WORDS):
            got = brief(masked(said.removeprefix(_ENDPOINT_WORDS)))
            expected = f"AWS_ENDPOINT_URL: expected a URL such as http://localhost:4566, got {got}"
            raise InputError(f"{expected} (hint: begin with http:// or https://)") from error
        expected = "variables and files of AWS: expected what boto3 can use, got"
        raise InputError(f"{expected}: {cut(masked(said), _MOST_LETTERS)}") from error

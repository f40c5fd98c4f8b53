"""AWS by boto3: `Api` over clients that live in threads of their own.

boto3 blocks, and a blocked event loop would lose the lease. So each call runs in one of a few threads, and waits for
its token before it takes one. boto3's own retries are off, because they know nothing of the other loops: a read is
repeated here, a few times; a write is repeated by its caller, who knows its token. A call that is cancelled goes on in
its thread: a launch may still happen.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kerf.cloudprovider import Throttled
from kerf.clouds.aws.api import EC2, IAM, PRICING, SERVICES, ApiFailed, Reply
from kerf.clouds.aws.botosettings import as_wrong_input, check_files, check_keys, masked
from kerf.clouds.aws.buckets import Buckets, is_read
from kerf.clouds.aws.partitions import price_region_of
from kerf.clouds.aws.replies import NotWhole, reading
from kerf.clouds.aws.threads import Threads
from kerf.errors import CloudError, InputError, cut
from kerf.telemetry import CLOUD_CALLS, CLOUD_SECONDS

THREADS, _FEW = 12, 3
"""Of EC2, and of each other service: one that hangs holds up no call of another. The queue's long poll holds one."""
_CONNECT_S, _READ_S = 5, 60
"""Longer than a long poll of 20 s."""
_FIRST_RETRY_S, _ATTEMPTS = 0.5, 4
_RETRY_AFTER_S = 5.0
_MOST_LETTERS = 400
_THROTTLED = ("RequestLimitExceeded", "RequestThrottled", "TooManyRequestsException", "Unavailable", "SlowDown")
_UNAVAILABLE = 503
_IN_XML = (EC2, IAM)
"""Services that answer in XML (EC2 and IAM API references: `DescribeInstances` of none is `<reservationSet/>`)."""
_PROCESS = "custom-process"
"""botocore's name of what runs `credential_process`."""
_HINTS = {
    "ExpiredToken": "the credentials have expired",
    "ExpiredTokenException": "the credentials have expired",
    "RequestExpired": "the credentials have expired, or the clock of this machine is wrong",
    "RequestTimeTooSkewed": "the clock of this machine is wrong",
    "AuthFailure": "AWS does not know these credentials, or the region is not enabled for the account",
    "InvalidClientTokenId": "AWS does not know these credentials",
    "InvalidSignatureException": "the secret key is wrong, or the clock of this machine is",
    "UnrecognizedClientException": "AWS does not know these credentials",
    "SignatureDoesNotMatch": "the secret key is wrong, or the clock of this machine is",
    "OptInRequired": "the account is not subscribed to this service",
    "PendingVerification": "AWS is still verifying the account",
}


class ConnectionFailed(CloudError):
    """AWS did not answer, or answered with something that is no reply; a write may have happened."""


class NoCredentials(CloudError):
    """There is nothing to sign a call with, or no way to get it."""


class BotoApi:
    """`kerf.clouds.aws.api.Api` over boto3. Close it at the end.

    Making one, and its first call of a service, raise InputError for what cannot be used of AWS's variables and files.
    """

    def __init__(
        self,
        region: str,
        *,
        endpoint: str | None = None,
        buckets: Buckets | None = None,
        threads: int = THREADS,
    ) -> None:
        self._boto, self._config = _boto3(threads)
        self.region, self._endpoint, self._buckets = region, endpoint, buckets or Buckets()
        self._threads = {each: Threads(threads if each == EC2 else min(threads, _FEW)) for each in SERVICES}
        self._clients: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._guard: Callable[[], None] = lambda: None

    def check(self) -> None:
        """Raises InputError for settings with which some client cannot be made. Connects nowhere. Cost: 0.3 s."""
        for service in SERVICES:
            # With keys that are given none are looked for, which could mean to ask a service.
            self._made(service, aws_access_key_id="none", aws_secret_access_key="none")

    def guarded_by(self, guard: Callable[[], None]) -> None:
        """Ask `guard` before each call that changes something; it raises where this replica may not."""
        self._guard = guard

    async def call(self, service: str, operation: str, **parameters: object) -> Reply:
        """See Api. Raises ConnectionFailed and NoCredentials too. Reads are tried four times."""
        return await self._called(None, service, operation, parameters)

    async def call_unless(self, check: Callable[[], None], service: str, operation: str, **parameters: object) -> Reply:
        """See Api; as `call`."""
        return await self._called(check, service, operation, parameters)

    async def _called(
        self, check: Callable[[], None] | None, service: str, operation: str, parameters: dict[str, object]
    ) -> Reply:
        attempts = _ATTEMPTS if is_read(operation) else 1
        for attempt in range(1, attempts + 1):
            await self._buckets.take(operation, check)
            if not is_read(operation):
                self._guard()
            try:
                return await self._once(service, operation, parameters)
            except (Throttled, ConnectionFailed) as error:
                if isinstance(error, Throttled):
                    self._buckets.empty(operation)
                if attempt == attempts:
                    raise
            await self._buckets.sleep(_FIRST_RETRY_S * 2 ** (attempt - 1))
        raise AssertionError("a loop without attempts")

    async def pages(self, service: str, operation: str, key: str, **parameters: object) -> Sequence[Any]:
        """See Api. Each page takes a token."""
        name = "Marker" if service == IAM else "NextToken"
        found: list[Any] = []
        while True:
            reply = await self.call(service, operation, **parameters)
            # In XML an empty list is an empty element, so one that is missing was torn off, and says nothing about what
            # there is. JSON leaves an empty list out.
            with reading(operation):
                found.extend(reply[key] if service in _IN_XML else reply.get(key) or ())
            token = reply.get(name)
            if not token:
                return found
            if token == parameters.get(name):
                raise NotWhole(f"{operation}: the reply is not whole: its next page is itself")
            parameters[name] = token

    def close(self) -> None:
        """Let the threads end; no call comes after that."""
        for threads in self._threads.values():
            threads.close()

    async def _once(self, service: str, operation: str, parameters: dict[str, object]) -> Reply:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        outcome = "failed"
        try:
            reply = await self._threads[service].run(lambda: self._blocking(service, operation, parameters))
            outcome = "done"
        except Throttled:
            outcome = "throttled"
            raise
        except ApiFailed:
            outcome = "refused"
            raise
        finally:
            CLOUD_CALLS.labels(service, operation, outcome).inc()
            CLOUD_SECONDS.labels(service, operation).observe(loop.time() - began_s)
        return reply

    def _blocking(self, service: str, operation: str, parameters: dict[str, object]) -> Reply:
        """Runs in a thread."""
        from botocore import xform_name

        try:
            method: Callable[..., dict[str, Any]] = getattr(self._client(service), xform_name(operation))
            reply = method(**parameters)
        except InputError:
            raise
        except Exception as error:
            raise _translated(operation, error) from error
        said = reply.pop("ResponseMetadata", {})
        if _is_of_another(said):
            raise _stranger(operation, said)
        return reply

    def _client(self, service: str) -> Any:
        # A session is not thread-safe; its clients are.
        with self._lock:
            if service not in self._clients:
                self._clients[service] = self._made(service)
            return self._clients[service]

    def _made(self, service: str, **keys: str) -> Any:
        region = (price_region_of(self.region) if service == PRICING else "") or self.region
        with as_wrong_input():
            return self._boto.client(
                service, region_name=region, endpoint_url=self._endpoint, config=self._config, **keys
            )


def _boto3(threads: int) -> tuple[Any, Any]:
    """(a session, how its clients behave). Raises InputError where boto3 is not there, or its settings are wrong."""
    try:
        import boto3
        from botocore import session
        from botocore.config import Config
    except ImportError as error:
        raise InputError("--cloud aws needs boto3 (hint: pip install 'kerf-autoscaler[aws]')") from error
    config = Config(
        retries={"total_max_attempts": 1, "mode": "standard"},
        max_pool_connections=threads,
        connect_timeout=_CONNECT_S,
        read_timeout=_READ_S,
        user_agent_extra="kerf",
    )
    check_keys()
    with as_wrong_input():
        core = session.Session()
        profiles = core.full_config.get("profiles", {})
    check_files(profiles)
    with as_wrong_input():
        return boto3.session.Session(botocore_session=core), config


def _translated(operation: str, error: Exception) -> Exception:
    """An error of botocore as a CloudError, in one line; our own bug as it is."""
    from botocore import exceptions as boto
    from botocore.parsers import ResponseParserError

    if isinstance(error, boto.ClientError):
        return _refused(operation, error)
    if isinstance(error, boto.NoCredentialsError | boto.PartialCredentialsError):
        return NoCredentials(f"{operation}: there are no AWS credentials (hint: IRSA or EKS Pod Identity)")
    if isinstance(error, boto.CredentialRetrievalError) and error.kwargs.get("provider") == _PROCESS:
        # Whatever a program writes may be a part of a secret.
        return NoCredentials(f"{operation}: the AWS credentials could not be got: the credential_process has failed")
    if isinstance(error, boto.CredentialRetrievalError | boto.TokenRetrievalError | boto.MetadataRetrievalError):
        return NoCredentials(f"{operation}: the AWS credentials could not be got: {_line(error)}")
    if isinstance(error, OSError) and error.filename:
        # Only tokens and credentials are read from files during a call.
        return NoCredentials(f"{operation}: the AWS credentials could not be got: {_line(error)}")
    if isinstance(error, ResponseParserError) or _is_of_parser(error):
        return ConnectionFailed(f"{operation}: what answers there is not AWS: the reply cannot be read")
    if isinstance(error, boto.EndpointConnectionError):
        return ConnectionFailed(f"{operation}: nothing answers there (hint: is the region right?): {_line(error)}")
    if isinstance(error, boto.HTTPClientError) and _is_of_header(error.kwargs.get("error")):
        # Its text has the header, which has the credentials.
        return InputError(
            "variables and files of AWS: expected credentials that a header can have, got other letters among them "
            "(hint: look for line ends in the file of credentials)"
        )
    if isinstance(error, boto.HTTPClientError):
        return ConnectionFailed(f"{operation}: the connection failed before the reply: {_line(error)}")
    if isinstance(error, boto.BotoCoreError):
        return CloudError(f"{operation}: {_line(error)}")
    return error


def _is_of_parser(error: Exception) -> bool:
    """Whether botocore failed by a well-formed reply that is no reply: a list in JSON, a date that is none."""
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_globals.get("__name__") != "botocore.parsers":
        frame = frame.tb_next
    return frame is not None


def _is_of_header(error: object) -> bool:
    """Whether http.client could not send a header. Its error is a ValueError, as are those of URLs."""
    return isinstance(error, UnicodeEncodeError) or (isinstance(error, ValueError) and "header" in str(error).lower())


def _refused(operation: str, error: Any) -> CloudError:
    said = error.response.get("Error", {})
    code, message = str(said.get("Code", "")), " ".join(str(said.get("Message", "")).split())
    metadata = error.response.get("ResponseMetadata", {})
    status = metadata.get("HTTPStatusCode")
    if _is_of_another(metadata):
        return _stranger(operation, metadata)
    if code in _THROTTLED or code.startswith("Throttl") or status == _UNAVAILABLE:
        return Throttled(_RETRY_AFTER_S)
    if isinstance(status, int) and status >= 500:
        return ConnectionFailed(f"{operation}: AWS failed: {code} {cut(message, _MOST_LETTERS)}")
    hint = f" (hint: {_HINTS[code]})" if code in _HINTS else ""
    return ApiFailed(operation, code, cut(message, _MOST_LETTERS) + hint)


def _is_of_another(metadata: Mapping[str, Any]) -> bool:
    """Whether a page came instead of a reply: botocore reads a well-formed one as a reply in which nothing is set.

    AWS gives each reply an id and says XML or JSON; some stand-ins for AWS give no id.
    """
    kind = _content_type(metadata)
    return "html" in kind or not (metadata.get("RequestId") or "xml" in kind or "json" in kind)


def _content_type(metadata: Mapping[str, Any]) -> str:
    return str(metadata.get("HTTPHeaders", {}).get("content-type", "")).lower()


def _stranger(operation: str, metadata: Mapping[str, Any]) -> ConnectionFailed:
    kind = "a page in HTML" if "html" in _content_type(metadata) else "neither XML nor JSON, without a request id"
    status = metadata.get("HTTPStatusCode")
    return ConnectionFailed(
        f"{operation}: what answers there is not AWS, perhaps a proxy: {kind}, with status {status}"
    )


def _line(error: Exception) -> str:
    return cut(masked(" ".join(str(error).split())), _MOST_LETTERS)
